// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_BENCH_OPTIONS_HPP
#define SLICE_EXT_TOOL_BENCH_OPTIONS_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slice_ext::tool
{

enum class BenchMode {
	off,              // sections are not extended
	on,               // requests while the thread has the lock
	on_while_waiting, // requests already while it spins for the lock
};

// "off", "on", "on-while-waiting".
const char *bench_mode_name(BenchMode mode);

struct BenchOptions {
	std::vector<int> cpus;
	std::vector<unsigned> threads;       // per CPU
	std::vector<std::uint64_t> sections; // ns
	std::vector<BenchMode> modes;
	bool modes_given = false;       // it is an error, then, if sections cannot be extended
	std::optional<double> pause_us; // nullopt: as long as the section
	unsigned sleepers = 0;          // per CPU
	double seconds = 5;             // per row and round
	unsigned rounds = 1;
	std::optional<unsigned> delay_us;
	bool json = false;
	bool quiet = false;
};

// Lists with commas, ascending or not, without an entry twice. All throw std::invalid_argument with
// a text for the user.
// "1,2,4,8" or "1-8": 1 to 64.
std::vector<unsigned> parse_thread_counts(std::string_view text);
// "200ns,1us,0.1ms": 50 ns to 10 ms, in ns.
std::vector<std::uint64_t> parse_sections(std::string_view text);
// "off,on,on-while-waiting".
std::vector<BenchMode> parse_modes(std::string_view text);

// 200 ns, 20 us, 1.5 us.
std::string section_text(std::uint64_t ns);

} // namespace slice_ext::tool

#endif
