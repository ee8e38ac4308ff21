// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_KERNEL_FACTS_HPP
#define SLICE_EXT_TOOL_KERNEL_FACTS_HPP

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace slice_ext::tool
{

// What the running kernel tells about itself. Everything that may be missing or unreadable in a
// sandbox is optional; nothing here fails.
struct KernelFacts {
	std::string release;
	std::string version;
	std::string machine;
	std::string command_line; // "" unreadable
	std::string clocksource;  // "" unreadable
	std::vector<int> cpus;    // the calling thread may run on
	bool hypervisor = false;  // the CPU says that it is a virtual one
	bool high_res_timers = false;
	std::optional<bool> preempt_rt;
	std::string preempt_mode; // PREEMPT_DYNAMIC only: none, voluntary, full, lazy
	std::optional<std::int64_t> base_slice_ns;
	std::optional<std::int64_t> delay_us; // kernel.sched_preempt_delay_us
	std::optional<bool> boot_switch;      // rseq_slice_ext= on the command line
	std::optional<bool> guard_dropped;    // nullopt: no such switch, or debugfs not readable
	bool debugfs_readable = false;
	std::optional<bool> test_taint; // something that may only be used in tests was used
	bool machine_counters = false;
	bool thread_counters = false;
};

// ROOT is put before every path, for tests.
KernelFacts read_kernel_facts(const std::string &root = "");

// The value of the last rseq_slice_ext= of a kernel command line; nullopt: none, or not a boolean.
std::optional<bool> boot_switch_of(const std::string &command_line);

// The environment block of every JSON report.
nlohmann::json environment_json(const KernelFacts &facts);

// A red-flag text when the measuring switch drops or may have dropped the guard; "" otherwise.
std::string guard_warning(const KernelFacts &facts);

} // namespace slice_ext::tool

#endif
