// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_KERNEL_COUNTERS_HPP
#define SLICE_EXT_TOOL_KERNEL_COUNTERS_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slice_ext::tool
{

// Counters by their kernel name: requests, granted, kept, denied_*, ended_*.
using Counters = std::map<std::string, std::uint64_t>;

// What a parser made of a text: a value, or the reason why there is none.
template <typename T> struct Parsed {
	std::optional<T> value;
	std::string error;
};

// /proc/preempt_delay: a row per counter, a column per CPU.
struct MachineCounters {
	std::vector<int> cpus;
	std::map<std::string, std::vector<std::uint64_t>> rows;

	Counters total() const;
};

// An unknown row is kept, a malformed one fails the whole text: a wrong figure is worse than none.
Parsed<MachineCounters> parse_preempt_delay(std::string_view text);

// The preempt_delay.* lines of /proc/<pid>/sched. A text without any gives the error
// kNoTaskCounters: the kernel lacks the feature, or was built without scheduler debugging.
constexpr const char *kNoTaskCounters = "no preempt_delay counters";
Parsed<Counters> parse_task_sched(std::string_view text);

// Reads the machine-wide file, or the calling thread's own. Not for use inside a section: both make
// system calls. PROC is the mount point of procfs.
Parsed<Counters> read_machine_counters(const std::string &proc = "/proc");
Parsed<Counters> read_own_counters(const std::string &proc = "/proc");

// after - before by name; a counter that ran backwards counts as 0, one missing before as from 0.
Counters operator-(const Counters &after, const Counters &before);
Counters &operator+=(Counters &sum, const Counters &more);

// The figures the reports show. nullopt: the kernel does not count it.
struct CounterSummary {
	std::optional<std::uint64_t> requests, granted, kept, yielded, expired, denied;
};
CounterSummary summarize(const Counters &counters);

} // namespace slice_ext::tool

#endif
