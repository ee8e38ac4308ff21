// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_OPTIONS_HPP
#define SLICE_EXT_TOOL_DEMO_OPTIONS_HPP

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slice_ext::tool
{

enum class Mode { both, off, on };

struct DemoOptions {
	static constexpr unsigned kMaxHoldUs = 1000;
	static constexpr unsigned kMaxThreadsPerCpu = 64;

	std::vector<int> cpus;
	unsigned lockers = 3;  // per CPU
	unsigned sleepers = 1; // per CPU
	double hold_low_us = 20;
	double hold_high_us = 20;
	double pause_us = 5;
	bool rt = false;
	int rt_priority = 95;
	unsigned rt_interval_us = 997;
	double seconds = 5; // per phase
	unsigned rounds = 1;
	Mode mode = Mode::both;
	bool heartbeat = true; // the holder renews a time stamp, which only an RT thread looks at
	bool abuse = false;
	bool extend_while_waiting = false;
	std::optional<unsigned> delay_us;
	bool json = false;
	bool quiet = false;
};

// "20" or "15-50", in microseconds: shortest and longest hold. Throws std::invalid_argument.
std::pair<unsigned, unsigned> parse_hold(std::string_view text);

// CPUs of LIST, all of which must be in ALLOWED; ALLOWED for an empty LIST.
// Throws std::invalid_argument.
std::vector<int> choose_cpus(std::string_view list, const std::vector<int> &allowed);

} // namespace slice_ext::tool

#endif
