// SPDX-License-Identifier: MIT
#include <slice_ext/slice_ext.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "command.hpp"
#include "exit_status.hpp"
#include "kernel_facts.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr int kSchemaVersion = 1;

struct Answer {
	slice_ext_info info = {};
	int prctl_result = 0; // 0 or 1, or a negative errno
	// What enabling a thread answered: the query cannot know everything without changing
	// something.
	slice_ext_reason enabling = SLICE_EXT_AVAILABLE;
	slice_ext_reason verdict = SLICE_EXT_AVAILABLE;
};

std::string errno_name(int number)
{
	switch (number) {
	case EINVAL:
		return "EINVAL";
	case EPERM:
		return "EPERM";
	case EACCES:
		return "EACCES";
	case ENOSYS:
		return "ENOSYS";
	case ENXIO:
		return "ENXIO";
	case SLICE_EXT_ABI_ENOTSUPP:
		return "error 524, ENOTSUPP";
	default:
		return "error " + std::to_string(number);
	}
}

const char *owner_name(slice_ext_owner owner)
{
	switch (owner) {
	case SLICE_EXT_OWNER_NONE:
		return "none";
	case SLICE_EXT_OWNER_LIBC:
		return "libc";
	case SLICE_EXT_OWNER_SELF:
		return "self";
	case SLICE_EXT_OWNER_OTHER:
		return "other";
	}
	return "?";
}

Answer ask()
{
	Answer answer;
	slice_ext_query(&answer.info);
	const int result = prctl(SLICE_EXT_ABI_PR, SLICE_EXT_ABI_PR_GET, 0, 0, 0);
	answer.prctl_result = result < 0 ? -errno : result;

	// In a thread of its own: this one stays as it was started.
	std::thread([&answer] {
		answer.enabling = static_cast<slice_ext_reason>(slice_ext_enable());
	}).join();

	answer.verdict = answer.enabling;
	if (answer.verdict == SLICE_EXT_AVAILABLE && answer.info.reason != SLICE_EXT_NO_AREA)
		answer.verdict = answer.info.reason;
	if (answer.verdict == SLICE_EXT_AVAILABLE && answer.info.delay_us == 0)
		answer.verdict = SLICE_EXT_SYSCTL_ZERO;
	return answer;
}

std::string verdict_text(const Answer &answer, const KernelFacts &facts)
{
	if (answer.verdict != SLICE_EXT_AVAILABLE)
		return slice_ext_reason_text(answer.verdict);
	if (!facts.high_res_timers)
		return "The kernel has the feature, but high-resolution timers are not active: it refuses "
		       "every request.";
	return "Sections can be extended.";
}

std::string next_step(const Answer &answer, const KernelFacts &facts)
{
	if (answer.verdict != SLICE_EXT_AVAILABLE)
		return slice_ext_reason_hint(answer.verdict);
	if (!facts.high_res_timers)
		return "Boot without highres=off and nohz=off, on a machine with a one-shot timer.";
	return "Run 'slice-ext demo' to see what it gains; link libslice-ext to use it.";
}

bool usable(const Answer &answer, const KernelFacts &facts)
{
	return answer.verdict == SLICE_EXT_AVAILABLE && facts.high_res_timers;
}

std::string feature_line(const Answer &answer)
{
	std::string text;
	if (answer.prctl_result >= 0 || answer.prctl_result == -SLICE_EXT_ABI_ENOTSUPP ||
	    answer.info.reason == SLICE_EXT_OFF_AT_BOOT ||
	    answer.info.feature_size >= SLICE_EXT_ABI_RSEQ_END)
		text = "in this kernel";
	else if (answer.info.reason == SLICE_EXT_BLOCKED_PRCTL)
		text = "unknown, a sandbox refuses the question";
	else
		text = "not in this kernel";
	text += " (prctl " + std::to_string(SLICE_EXT_ABI_PR) + ": ";
	text += answer.prctl_result < 0 ? errno_name(-answer.prctl_result)
	                                : std::to_string(answer.prctl_result);
	text += "; AT_RSEQ_FEATURE_SIZE " + std::to_string(answer.info.feature_size) +
	        ", AT_RSEQ_ALIGN " + std::to_string(answer.info.feature_align) + ")";
	return text;
}

std::string boot_line(const Answer &answer, const KernelFacts &facts)
{
	std::string text;
	if (answer.verdict == SLICE_EXT_OFF_AT_BOOT)
		text = "off";
	else if (answer.prctl_result >= 0)
		text = "on";
	else
		text = "-";
	if (facts.boot_switch)
		text += std::string(" (rseq_slice_ext=") + (*facts.boot_switch ? "1" : "0") +
		        " on the kernel command line)";
	return text;
}

std::string length_line(const KernelFacts &facts)
{
	if (!facts.delay_us)
		return "- (no readable " SLICE_EXT_ABI_SYSCTL ")";
	std::string text = std::to_string(*facts.delay_us) + " us (kernel.sched_preempt_delay_us)";
	if (*facts.delay_us == 0)
		text += ": every request is refused";
	return text;
}

std::string area_line(const slice_ext_info &info)
{
	if (info.owner == SLICE_EXT_OWNER_NONE)
		return "nobody registered one";
	std::string text = std::string("registered by ") + owner_name(info.owner);
	if (info.area_size != 0)
		text += ", " + std::to_string(info.area_size) + " bytes";
	return text;
}

std::string guard_line(const KernelFacts &facts)
{
	if (facts.guard_dropped)
		return *facts.guard_dropped ? "DROPPED"
		                            : "in force (this kernel has the measuring switch)";
	return facts.debugfs_readable ? "no switch to drop it"
	                              : "unknown (debugfs is not readable)";
}

std::string counters_line(const KernelFacts &facts)
{
	if (facts.machine_counters && facts.thread_counters)
		return "machine-wide and per thread";
	if (facts.machine_counters)
		return "machine-wide (" SLICE_EXT_ABI_PROC_COUNTERS ")";
	return facts.thread_counters ? "per thread" : "none";
}

void print_text(const Answer &answer, const KernelFacts &facts)
{
	const auto line = [](const char *name, const std::string &value) {
		std::printf("%-19s%s\n", name, value.c_str());
	};
	line("kernel", facts.release + " " + facts.machine + ", " + facts.version);
	line("feature", feature_line(answer));
	line("at boot", boot_line(answer, facts));
	line("longest extension", length_line(facts));
	line("rseq area", area_line(answer.info));
	line("enabling a thread", answer.enabling == SLICE_EXT_AVAILABLE
	                                  ? "works"
	                                  : slice_ext_reason_name(answer.enabling));
	line("real-time guard", guard_line(facts));
	line("counters", counters_line(facts));
	line("timers", facts.high_res_timers ? "high resolution" : "not high resolution");
	const std::string warning = guard_warning(facts);
	if (!warning.empty())
		std::printf("\nWARNING: %s\n", warning.c_str());
	else if (facts.test_taint.value_or(false) && facts.guard_dropped)
		std::printf(
			"\nnote: the kernel is tainted by a test facility since boot; dropping the guard "
			"does that.\n");
	std::printf("\nverdict: %s: %s\nnext step: %s\n", usable(answer, facts) ? "yes" : "no",
	            verdict_text(answer, facts).c_str(), next_step(answer, facts).c_str());
}

void print_json(const Answer &answer, const KernelFacts &facts)
{
	const slice_ext_info &info = answer.info;
	nlohmann::json report = {
		{"schema", "slice-ext/status"},
		{"schema_version", kSchemaVersion},
		{"environment", environment_json(facts)},
		{"available", usable(answer, facts)},
		{"reason", slice_ext_reason_name(answer.verdict)},
		{"verdict", verdict_text(answer, facts)},
		{"next_step", next_step(answer, facts)},
		{"prctl_get", answer.prctl_result},
		{"enabling", slice_ext_reason_name(answer.enabling)},
		{"rseq",
	         {{"owner", owner_name(info.owner)},
	          {"area_size", info.area_size},
	          {"feature_size", info.feature_size},
	          {"feature_align", info.feature_align}}},
		{"boot_switch",
	         facts.boot_switch ? nlohmann::json(*facts.boot_switch) : nlohmann::json()},
		{"counters",
	         {{"machine", facts.machine_counters}, {"thread", facts.thread_counters}}},
	};
	std::printf("%s\n",
	            report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

int run_status(bool json)
{
	const KernelFacts facts = read_kernel_facts();
	const Answer answer = ask();
	if (json)
		print_json(answer, facts);
	else
		print_text(answer, facts);
	return usable(answer, facts) ? kExitOk : kExitUnavailable;
}

} // namespace

void add_status_command(CLI::App &app, int &status)
{
	CLI::App *command = app.add_subcommand(
		"status", "What this kernel and process can do, why not, what to do");
	auto json = std::make_shared<bool>(false);
	command->add_flag("--json", *json, "Print the report as JSON");
	command->footer("Exit status: 0 sections can be extended, 3 they cannot.");
	command->callback([json, &status] { status = run_status(*json); });
}

} // namespace slice_ext::tool
