// SPDX-License-Identifier: MIT
#include "kernel_facts.hpp"

#include <slice_ext/abi.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <sstream>

#include "cpu_list.hpp"
#include "kernel_counters.hpp"
#include "text_file.hpp"

namespace slice_ext::tool
{

namespace
{

// TAINT_TEST of the kernel: an in-kernel test was run, or the guard was dropped.
constexpr std::int64_t kTaintTest = std::int64_t(1) << 18;

std::string line_of(const std::string &path)
{
	const std::optional<std::string> text = read_text(path);
	return text ? std::string(trimmed(*text)) : "";
}

std::optional<std::int64_t> number_in(const std::string &path)
{
	const std::optional<std::string> text = read_text(path);
	return text ? parse_integer(*text) : std::nullopt;
}

// The word in parentheses of "none voluntary (full)".
std::string chosen_of(const std::string &line)
{
	const std::size_t open = line.find('(');
	const std::size_t close = line.find(')', open);
	return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

bool cpu_has_flag(const std::string &cpuinfo, const std::string &flag)
{
	std::istringstream lines(cpuinfo);
	std::string line;
	while (std::getline(lines, line))
		if (line.rfind("flags", 0) == 0)
			return (line + ' ').find(' ' + flag + ' ') != std::string::npos;
	return false;
}

template <typename T> nlohmann::json or_null(const std::optional<T> &value)
{
	return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json or_null(const std::string &text)
{
	return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

} // namespace

std::optional<bool> boot_switch_of(const std::string &command_line)
{
	constexpr std::string_view name = "rseq_slice_ext=";
	std::optional<bool> result;
	std::istringstream words(command_line);
	std::string word;
	while (words >> word) {
		if (word.rfind(name, 0) != 0)
			continue;
		const std::string value = word.substr(name.size());
		if (value == "1" || value == "y" || value == "Y" || value == "on" || value == "t")
			result = true;
		else if (value == "0" || value == "n" || value == "N" || value == "off" ||
		         value == "f")
			result = false;
	}
	return result;
}

KernelFacts read_kernel_facts(const std::string &root)
{
	KernelFacts facts;
	utsname name = {};
	uname(&name);
	facts.release = name.release;
	facts.version = name.version;
	facts.machine = name.machine;
	facts.command_line = line_of(root + "/proc/cmdline");
	facts.boot_switch = boot_switch_of(facts.command_line);
	facts.clocksource =
		line_of(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	try {
		facts.cpus = allowed_cpus();
	} catch (const std::exception &) {
	}
	facts.hypervisor =
		cpu_has_flag(read_text(root + "/proc/cpuinfo").value_or(""), "hypervisor");

	// The kernel reports its timer resolution: 1 ns once high resolution is active, a tick
	// before.
	timespec resolution = {};
	facts.high_res_timers = clock_getres(CLOCK_MONOTONIC, &resolution) == 0 &&
	                        resolution.tv_sec == 0 && resolution.tv_nsec == 1;

	if (const std::optional<std::int64_t> realtime = number_in(root + "/sys/kernel/realtime"))
		facts.preempt_rt = *realtime != 0;
	else if (!facts.version.empty())
		facts.preempt_rt = facts.version.find("PREEMPT_RT") != std::string::npos;

	facts.debugfs_readable =
		access((root + "/sys/kernel/debug/sched").c_str(), R_OK | X_OK) == 0;
	facts.preempt_mode = chosen_of(line_of(root + "/sys/kernel/debug/sched/preempt"));
	facts.base_slice_ns = number_in(root + "/sys/kernel/debug/sched/base_slice_ns");
	facts.delay_us = number_in(root + SLICE_EXT_ABI_SYSCTL);
	const std::string guard = line_of(root + SLICE_EXT_ABI_DEBUGFS_UNGUARDED);
	if (!guard.empty())
		facts.guard_dropped = guard != "0" && guard != "N";
	if (const std::optional<std::int64_t> taint = number_in(root + "/proc/sys/kernel/tainted"))
		facts.test_taint = (*taint & kTaintTest) != 0;
	facts.machine_counters = read_machine_counters(root + "/proc").value.has_value();
	facts.thread_counters = read_own_counters(root + "/proc").value.has_value();
	return facts;
}

nlohmann::json environment_json(const KernelFacts &facts)
{
	return {
		{"kernel_release", facts.release},
		{"kernel_version", facts.version},
		{"machine", facts.machine},
		{"kernel_command_line", or_null(facts.command_line)},
		{"clocksource", or_null(facts.clocksource)},
		{"allowed_cpus", format_cpu_list(facts.cpus)},
		{"hypervisor", facts.hypervisor},
		{"high_res_timers", facts.high_res_timers},
		{"preempt_rt", or_null(facts.preempt_rt)},
		{"preempt_mode", or_null(facts.preempt_mode)},
		{"base_slice_ns", or_null(facts.base_slice_ns)},
		{"sched_preempt_delay_us", or_null(facts.delay_us)},
		{"guard_dropped", or_null(facts.guard_dropped)},
		{"test_taint", or_null(facts.test_taint)},
		{"tool_version", SLICE_EXT_TOOL_VERSION},
	};
}

std::string guard_warning(const KernelFacts &facts)
{
	if (facts.guard_dropped.value_or(false))
		return "THE REAL-TIME GUARD IS DROPPED: extensions delay real-time threads on this kernel. "
		       "That is for measuring only. To restore it: echo 0 > " SLICE_EXT_ABI_DEBUGFS_UNGUARDED;
	return "";
}

} // namespace slice_ext::tool
