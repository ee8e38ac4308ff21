// SPDX-License-Identifier: MIT
#include "demo/report.hpp"

#include <slice_ext/abi.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "cpu_list.hpp"
#include "exit_status.hpp"
#include "text_table.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr int kSchemaVersion = 1;
constexpr double kTail = 0.999;

using Figure = std::optional<double>;

std::string format(const char *pattern, double value)
{
	char text[64];
	std::snprintf(text, sizeof text, pattern, value);
	return text;
}

double per_second(const ArmResult &arm)
{
	return arm.seconds > 0 ? static_cast<double>(arm.sections) / arm.seconds : 0;
}

Figure counted(const std::optional<std::uint64_t> &count)
{
	return count ? Figure(static_cast<double>(*count)) : std::nullopt;
}

CounterSummary summary_of(const ArmResult &arm)
{
	const std::optional<Counters> counters = arm.counters();
	return counters ? summarize(*counters) : CounterSummary{};
}

// Without counters of the kernel, what the threads themselves saw: each yield was in a grant.
Figure yields_of(const ArmResult &arm)
{
	const CounterSummary summary = summary_of(arm);
	if (summary.yielded)
		return counted(summary.yielded);
	const Outcomes &seen = arm.outcomes;
	if (seen.undisturbed + seen.yielded + seen.ended == 0)
		return std::nullopt;
	return static_cast<double>(seen.yielded + seen.withdrawn_yielded);
}

struct Row {
	const char *name;
	const char *pattern;
	std::function<Figure(const ArmResult &)> figure;
	enum class Change { none, ratio, difference } change;
};

Figure microseconds(double ns)
{
	return ns / 1000;
}

std::vector<Row> rows_of(const DemoOptions &options)
{
	using Arm = const ArmResult &;
	using Change = Row::Change;
	std::vector<Row> rows = {
		{"sections per second", "%.0f", [](Arm a) { return Figure(per_second(a)); },
	         Change::ratio},
		{"lock wait, average, us", "%.1f",
	         [](Arm a) { return microseconds(a.wait.mean()); }, Change::ratio},
		{"lock wait, 99.9 %, us", "%.1f",
	         [](Arm a) { return microseconds(static_cast<double>(a.wait.quantile(kTail))); },
	         Change::ratio},
		{"lock wait, worst, us", "%.1f",
	         [](Arm a) { return microseconds(static_cast<double>(a.wait.max())); },
	         Change::ratio},
		{options.rt ? "holder preempted, by ordinary threads" : "holder preempted", "%.0f",
	         [](Arm a) {
			 return a.switches ? Figure(static_cast<double>(a.switches->by_ordinary()))
		                           : std::nullopt;
		 },
	         Change::difference},
	};
	if (options.rt)
		rows.push_back({"holder preempted, by the real-time thread", "%.0f",
		                [](Arm a) {
					return a.switches ? Figure(static_cast<double>(
								    a.switches->only_by_rt))
			                                  : std::nullopt;
				},
		                Change::none});
	rows.insert(rows.end(),
	            {{"grants", "%.0f", [](Arm a) { return counted(summary_of(a).granted); },
	              Change::none},
	             {"  ended by yield", "%.0f", yields_of, Change::none},
	             {"  ended by expiry", "%.0f",
	              [](Arm a) { return counted(summary_of(a).expired); }, Change::none},
	             {"denials", "%.0f", [](Arm a) { return counted(summary_of(a).denied); },
	              Change::none}});
	if (options.rt) {
		rows.push_back({"real-time wake-up latency, average, us", "%.1f",
		                [](Arm a) { return microseconds(a.rt_latency.mean()); },
		                Change::difference});
		rows.push_back({"real-time wake-up latency, worst, us", "%.1f",
		                [](Arm a) {
					return microseconds(
						static_cast<double>(a.rt_latency.max()));
				},
		                Change::difference});
	}
	return rows;
}

std::string change_text(const Row &row, const Figure &without, const Figure &with)
{
	if (row.change == Row::Change::none)
		return "";
	if (!without || !with)
		return "-";
	if (row.change == Row::Change::ratio)
		return *without > 0 ? "x" + format("%.2f", *with / *without) : "-";
	const std::string text = format(row.pattern, *with - *without);
	return *with > *without ? "+" + text : text;
}

std::string cell(const Row &row, const Figure &figure)
{
	return figure ? format(row.pattern, *figure) : "-";
}

std::string hold_text(const DemoOptions &options)
{
	std::string text = format("%g", options.hold_low_us);
	if (options.hold_high_us > options.hold_low_us)
		text += ".." + format("%g", options.hold_high_us);
	return text + " us";
}

std::string plural(unsigned count, const char *noun)
{
	return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string heading(const DemoReport &report)
{
	const DemoOptions &options = report.options;
	std::string text = plural(options.lockers, "locker");
	if (options.sleepers > 0)
		text += " and " + plural(options.sleepers, "short sleeper");
	if (options.rt)
		text += " and a SCHED_FIFO " + std::to_string(options.rt_priority) + " thread";
	text += " on each of " + plural(static_cast<unsigned>(options.cpus.size()), "CPU") + " (" +
	        format_cpu_list(options.cpus) + "), one spinlock held " + hold_text(options) + "\n";
	text += "kernel " + report.facts.release;
	if (report.facts.delay_us)
		text += ", extension up to " +
		        std::to_string(options.delay_us ? *options.delay_us
		                                        : *report.facts.delay_us) +
		        " us";
	text += "; measured without for " +
	        format("%.1f", report.without ? report.without->seconds : 0) + " s, with for " +
	        format("%.1f", report.with ? report.with->seconds : 0) + " s";
	if (options.abuse)
		text += "; ABUSE: requests always, never gives the CPU back";
	if (options.extend_while_waiting)
		text += "; requests while it waits, too";
	return text + "\n";
}

std::string notes(const DemoReport &report)
{
	std::string text;
	if (report.section_cost_ns)
		text += "Cost of an undisturbed section (enter and leave): " +
		        format("%.1f", *report.section_cost_ns) + " ns.\n";
	const std::int64_t longest = report.options.delay_us ? *report.options.delay_us
	                                                     : report.facts.delay_us.value_or(-1);
	if (report.with && longest >= 0 && report.options.hold_high_us > longest)
		text += "The lock is held longer than an extension lasts: not every section can end in "
			"one.\n";
	const bool no_switches = (report.without && !report.without->switches) ||
	                         (report.with && !report.with->switches);
	if (no_switches)
		text += "Holder preemptions are unknown: the threads have no rseq area to see them by.\n";
	if (report.with && !report.with->counters())
		text += "Grants, expiries and denials are unknown: this kernel has no such counters.\n";
	else if (report.with && !report.with->own_counters)
		text += "Grants, expiries and denials are those of the whole machine.\n";
	if (const std::string warning = guard_warning(report.facts); !warning.empty())
		text += "WARNING: " + warning + "\n";
	if (report.ended_by_signal)
		text += "Ended early by signal " + std::to_string(report.ended_by_signal) + ".\n";
	return text;
}

// "hres 432, work 6": the kernel's names, the most frequent first.
std::string denial_reasons(const ArmResult &arm)
{
	std::vector<std::pair<std::uint64_t, std::string>> reasons;
	for (const auto &[name, count] : arm.counters().value_or(Counters{}))
		if (name.rfind("denied_", 0) == 0 && count > 0)
			reasons.emplace_back(count, name.substr(name.find('_') + 1));
	std::sort(reasons.rbegin(), reasons.rend());
	std::string text;
	for (const auto &[count, name] : reasons)
		text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
	return text;
}

std::string why_never_extended(const DemoReport &report)
{
	std::string text = "FAILED: this kernel has the feature, but not one section was extended.";
	if (!report.facts.high_res_timers)
		return text + " Its high-resolution timers are not active.";
	if (!report.with->counters())
		return text;
	const std::string reasons = denial_reasons(*report.with);
	return text + (reasons.empty()
	                       ? " It was never asked to: nothing wanted the CPU of a holder."
	                       : " It refused: " + reasons + ".");
}

bool was_extended(const ArmResult &arm)
{
	const CounterSummary summary = summary_of(arm);
	if (summary.granted)
		return *summary.granted > 0;
	return arm.outcomes.yielded + arm.outcomes.withdrawn_yielded > 0;
}

nlohmann::json or_null(const std::optional<std::uint64_t> &value)
{
	return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json histogram_json(const Histogram &values)
{
	if (values.count() == 0)
		return nullptr;
	return {{"count", values.count()},         {"min_ns", values.min()},
	        {"mean_ns", values.mean()},        {"p50_ns", values.quantile(0.5)},
	        {"p99_ns", values.quantile(0.99)}, {"p99_9_ns", values.quantile(kTail)},
	        {"max_ns", values.max()}};
}

nlohmann::json arm_json(const std::optional<ArmResult> &arm)
{
	if (!arm)
		return nullptr;
	const CounterSummary summary = summary_of(*arm);
	const Figure yields = yields_of(*arm);
	nlohmann::json json = {
		{"seconds", arm->seconds},
		{"sections", arm->sections},
		{"sections_per_second", per_second(*arm)},
		{"lock_wait", histogram_json(arm->wait)},
		{"lock_hold", histogram_json(arm->hold)},
		{"holder_preempted", nullptr},
		{"grants", or_null(summary.granted)},
		{"yields",
	         yields ? nlohmann::json(static_cast<std::uint64_t>(*yields)) : nlohmann::json()},
		{"expiries", or_null(summary.expired)},
		{"denials", or_null(summary.denied)},
		{"outcomes",
	         {{"undisturbed", arm->outcomes.undisturbed},
	          {"yielded", arm->outcomes.yielded},
	          {"ended", arm->outcomes.ended},
	          {"withdrawn_yielded", arm->outcomes.withdrawn_yielded}}},
		{"counters", nullptr},
		{"machine_counters", nullptr},
		{"rt_latency", histogram_json(arm->rt_latency)},
	};
	if (arm->switches)
		json["holder_preempted"] = {{"sections", arm->switches->sections},
		                            {"by_ordinary", arm->switches->by_ordinary()},
		                            {"only_by_rt", arm->switches->only_by_rt}};
	if (arm->own_counters)
		json["counters"] = *arm->own_counters;
	if (arm->machine_counters)
		json["machine_counters"] = *arm->machine_counters;
	return json;
}

const char *mode_name(Mode mode)
{
	switch (mode) {
	case Mode::both:
		return "both";
	case Mode::off:
		return "off";
	case Mode::on:
		return "on";
	}
	return "?";
}

nlohmann::json options_json(const DemoOptions &options)
{
	return {
		{"cpus", format_cpu_list(options.cpus)},
		{"lockers_per_cpu", options.lockers},
		{"sleepers_per_cpu", options.sleepers},
		{"hold_us", {options.hold_low_us, options.hold_high_us}},
		{"pause_us", options.pause_us},
		{"rt", options.rt},
		{"rt_priority", options.rt_priority},
		{"rt_interval_us", options.rt_interval_us},
		{"seconds_per_phase", options.seconds},
		{"rounds", options.rounds},
		{"mode", mode_name(options.mode)},
		{"abuse", options.abuse},
		{"extend_while_waiting", options.extend_while_waiting},
		{"delay_us",
	         options.delay_us ? nlohmann::json(*options.delay_us) : nlohmann::json()},
	};
}

} // namespace

Verdict judge(const DemoReport &report)
{
	for (const auto &arm : {report.without, report.with})
		if (arm && !arm->exclusive)
			return {kExitFailed,
			        "FAILED: two threads were in the locked section at once."};
	const bool wants_with =
		report.options.mode != Mode::off && report.unavailable_reason.empty();
	const bool wants_without = report.options.mode != Mode::on;
	const bool incomplete = (wants_with && !report.with) || (wants_without && !report.without);
	if (incomplete && report.ended_by_signal)
		return {kExitSignalBase + report.ended_by_signal,
		        "Ended before there was anything to compare."};
	for (const auto &arm : {report.without, report.with})
		if (arm && arm->sections == 0)
			return {kExitFailed, "FAILED: no thread ever got the lock."};
	if (report.with && !was_extended(*report.with)) {
		if (report.options.abuse && !report.with->counters())
			return {kExitOk,
			        "Whether sections were extended is unknown: an abuser does not see it, "
			        "and this kernel does not count it."};
		return {kExitFailed, why_never_extended(report)};
	}
	if (!report.unavailable_reason.empty())
		return {report.options.mode == Mode::on ? kExitUnavailable : kExitOk,
		        "Run without extension only. " + report.unavailable_text +
		                "\nnext step: " + report.unavailable_hint};
	if (!report.with || !report.without)
		return {kExitOk, "One arm only, nothing to compare."};

	std::string text = format("With extension: %.2f times the sections per second",
	                          per_second(*report.with) / per_second(*report.without));
	if (report.with->switches && report.without->switches)
		text += "; holder preempted by ordinary threads " +
		        std::to_string(report.without->switches->by_ordinary()) + " -> " +
		        std::to_string(report.with->switches->by_ordinary());
	if (report.options.rt)
		text += format("; worst real-time latency %.1f",
		               static_cast<double>(report.without->rt_latency.max()) / 1000) +
		        format(" -> %.1f us",
		               static_cast<double>(report.with->rt_latency.max()) / 1000);
	return {kExitOk, text + "."};
}

std::vector<std::vector<std::string>> table_rows(const DemoReport &report)
{
	std::vector<std::vector<std::string>> rows = {{"", "without", "with", "change"}};
	for (const Row &row : rows_of(report.options)) {
		const Figure without = report.without ? row.figure(*report.without) : std::nullopt;
		const Figure with = report.with ? row.figure(*report.with) : std::nullopt;
		rows.push_back({row.name, cell(row, without), cell(row, with),
		                change_text(row, without, with)});
	}
	return rows;
}

std::string to_text(const DemoReport &report)
{
	return heading(report) + "\n" + text_table(table_rows(report)) + "\n" + notes(report) +
	       judge(report).text + "\n";
}

nlohmann::json to_json(const DemoReport &report)
{
	const Verdict verdict = judge(report);
	nlohmann::json json = {
		{"schema", "slice-ext/demo"},
		{"schema_version", kSchemaVersion},
		{"environment", environment_json(report.facts)},
		{"options", options_json(report.options)},
		{"clock_ns_per_tick", report.ns_per_tick},
		{"section_cost_ns", report.section_cost_ns ? nlohmann::json(*report.section_cost_ns)
	                                                   : nlohmann::json()},
		{"without", arm_json(report.without)},
		{"with", arm_json(report.with)},
		{"unavailable", nullptr},
		{"ended_by_signal", report.ended_by_signal},
		{"exit_status", verdict.exit_status},
		{"verdict", verdict.text},
	};
	if (!report.unavailable_reason.empty())
		json["unavailable"] = {{"reason", report.unavailable_reason},
		                       {"text", report.unavailable_text},
		                       {"next_step", report.unavailable_hint}};
	return json;
}

} // namespace slice_ext::tool
