// SPDX-License-Identifier: MIT
#include "bench/report.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/rows.hpp"
#include "cpu_list.hpp"
#include "exit_status.hpp"
#include "text_table.hpp"

namespace slice_ext::tool
{

namespace
{

// Differences below this are not called a loss; the figures stand beside it all the same.
constexpr double kLoss = 0.02;

std::string format(const char *pattern, double value)
{
	char text[64];
	std::snprintf(text, sizeof text, pattern, value);
	return text;
}

double per_second(const BenchRow &row)
{
	return row.result.seconds > 0
	               ? static_cast<double>(row.result.sections) / row.result.seconds
	               : 0;
}

struct Figure {
	const char *heading;
	const char *name; // in the list of losses
	double (*value)(const BenchRow &);
	bool more_is_better;
	double scale;
	const char *pattern;
};

double wait_quantile(const BenchRow &row, double fraction)
{
	return static_cast<double>(row.result.wait.quantile(fraction));
}

const Figure kFigures[] = {
	{"sections/s", "throughput", per_second, true, 1, "%.0f"},
	{"p50", "wait p50", [](const BenchRow &row) { return wait_quantile(row, 0.5); }, false,
         1e-3, "%.2f"},
	{"p99", "wait p99", [](const BenchRow &row) { return wait_quantile(row, 0.99); }, false,
         1e-3, "%.2f"},
	{"p99.9", "wait p99.9", [](const BenchRow &row) { return wait_quantile(row, 0.999); },
         false, 1e-3, "%.2f"},
	{"worst", "worst wait",
         [](const BenchRow &row) { return static_cast<double>(row.result.wait.max()); }, false,
         1e-3, "%.2f"},
};

const BenchRow *row_without(const BenchReport &report, const BenchRow &row)
{
	for (const BenchRow &other : report.rows)
		if (other.mode == BenchMode::off && other.threads == row.threads &&
		    other.section == row.section)
			return &other;
	return nullptr;
}

std::string counted(const std::optional<std::uint64_t> &count)
{
	return count ? std::to_string(*count) : "-";
}

CounterSummary summary_of(const BenchRow &row)
{
	const std::optional<Counters> counters = row.result.counters();
	return counters ? summarize(*counters) : CounterSummary{};
}

// Without counters of the kernel what the threads saw themselves.
std::uint64_t extensions_of(const BenchRow &row)
{
	const Outcomes &seen = row.result.outcomes;
	return summary_of(row).granted.value_or(seen.yielded + seen.withdrawn_yielded);
}

std::vector<std::vector<std::string>> table_rows(const BenchReport &report)
{
	std::vector<std::vector<std::string>> table = {{"section", "threads", "mode"}};
	for (const Figure &figure : kFigures) {
		table.front().push_back(figure.heading);
		table.front().push_back("/off");
	}
	for (const char *heading : {"preempted", "grants", "yields", "expiries"})
		table.front().push_back(heading);
	for (const BenchRow &row : report.rows) {
		const BenchRow *without =
			row.mode == BenchMode::off ? nullptr : row_without(report, row);
		std::vector<std::string> line = {section_text(row.section),
		                                 std::to_string(row.threads),
		                                 bench_mode_name(row.mode)};
		for (const Figure &figure : kFigures) {
			const double value = figure.value(row);
			line.push_back(format(figure.pattern, value * figure.scale));
			const double base = without ? figure.value(*without) : 0;
			line.push_back(base > 0 ? format("%.2f", value / base) : "");
		}
		const CounterSummary summary = summary_of(row);
		line.push_back(row.result.switches ? std::to_string(row.result.switches->sections)
		                                   : "-");
		line.push_back(counted(summary.granted));
		line.push_back(counted(summary.yielded));
		line.push_back(counted(summary.expired));
		table.push_back(std::move(line));
	}
	return table;
}

// Every figure that got worse, by row, and how many rows were compared.
std::string losses(const BenchReport &report)
{
	unsigned compared = 0;
	unsigned with_loss = 0;
	std::string text;
	for (const BenchRow &row : report.rows) {
		const BenchRow *without = row_without(report, row);
		if (row.mode == BenchMode::off || without == nullptr)
			continue;
		++compared;
		std::string worse;
		for (const Figure &figure : kFigures) {
			const double base = figure.value(*without);
			const double ratio = base > 0 ? figure.value(row) / base : 1;
			if (figure.more_is_better ? ratio < 1 - kLoss : ratio > 1 + kLoss)
				worse += (worse.empty() ? "" : ", ") + std::string(figure.name) +
				         " x" + format("%.2f", ratio);
		}
		if (worse.empty())
			continue;
		++with_loss;
		text += "  " + section_text(row.section) + ", " + std::to_string(row.threads) +
		        (row.threads == 1 ? " thread, " : " threads, ") +
		        bench_mode_name(row.mode) + ": " + worse + "\n";
	}
	if (compared == 0)
		return "";
	if (with_loss == 0)
		return "Worse than off by more than " + format("%.0f", kLoss * 100) +
		       " %: nothing, in " + std::to_string(compared) + " rows.\n";
	return "Worse than off by more than " + format("%.0f", kLoss * 100) + " % in " +
	       std::to_string(with_loss) + " of " + std::to_string(compared) + " rows:\n" + text;
}

std::string heading(const BenchReport &report)
{
	const BenchOptions &options = report.options;
	std::string text = "One test-and-set spinlock, threads pinned to CPUs " +
	                   format_cpu_list(options.cpus) + "; threads per CPU, waits in us";
	if (options.sleepers > 0)
		text += "; " + std::to_string(options.sleepers) + " short sleepers per CPU";
	text += "\nkernel " + report.facts.release;
	const auto delay = options.delay_us ? std::optional<std::int64_t>(*options.delay_us)
	                                    : report.facts.delay_us;
	if (delay)
		text += ", extension up to " + std::to_string(*delay) + " us";
	return text + "; " + format("%g", options.seconds * options.rounds) + " s per row\n";
}

std::string cost_text(const BenchReport &report)
{
	std::string text = "Cost of an undisturbed section: ";
	text += report.cost.enabled ? format("%.1f ns", *report.cost.enabled) : "unknown";
	return text + "; where the thread is not enabled " +
	       format("%.1f ns", report.cost.disabled) + "\n";
}

nlohmann::json row_json(const BenchReport &report, const BenchRow &row)
{
	const ArmResult &result = row.result;
	nlohmann::json json = {
		{"mode", bench_mode_name(row.mode)},
		{"threads", row.threads},
		{"cpus", report.options.cpus.size()},
		{"section_ns", row.section},
		{"seconds", result.seconds},
		{"sections", result.sections},
		{"sections_per_second", per_second(row)},
		{"wait_p50_ns", result.wait.quantile(0.5)},
		{"wait_p99_ns", result.wait.quantile(0.99)},
		{"wait_p999_ns", result.wait.quantile(0.999)},
		{"wait_max_ns", result.wait.max()},
		{"hold_p50_ns", result.hold.quantile(0.5)},
		{"holder_preempted",
	         result.switches ? nlohmann::json(result.switches->sections) : nlohmann::json()},
		{"uncontended_cost_ns", nullptr},
		{"counters", result.machine_counters ? nlohmann::json(*result.machine_counters)
	                                             : nlohmann::json()},
		{"thread_counters",
	         result.own_counters ? nlohmann::json(*result.own_counters) : nlohmann::json()},
	};
	if (row.mode != BenchMode::off && row.threads == 1 && report.cost.enabled)
		json["uncontended_cost_ns"] = *report.cost.enabled;
	if (const BenchRow *without = row_without(report, row);
	    without != nullptr && row.mode != BenchMode::off) {
		nlohmann::json ratios;
		for (const Figure &figure : kFigures) {
			const double base = figure.value(*without);
			ratios[figure.name] = base > 0 ? nlohmann::json(figure.value(row) / base)
			                               : nlohmann::json();
		}
		json["ratio_to_off"] = ratios;
	}
	return json;
}

nlohmann::json options_json(const BenchOptions &options)
{
	nlohmann::json modes = nlohmann::json::array();
	for (const BenchMode mode : options.modes)
		modes.push_back(bench_mode_name(mode));
	return {
		{"cpus", format_cpu_list(options.cpus)},
		{"threads_per_cpu", options.threads},
		{"sections_ns", options.sections},
		{"modes", modes},
		{"pause_us",
	         options.pause_us ? nlohmann::json(*options.pause_us) : nlohmann::json()},
		{"sleepers_per_cpu", options.sleepers},
		{"seconds", options.seconds},
		{"rounds", options.rounds},
		{"delay_us",
	         options.delay_us ? nlohmann::json(*options.delay_us) : nlohmann::json()},
	};
}

} // namespace

BenchVerdict judge(const BenchReport &report)
{
	if (report.ended_by_signal != 0 && report.rows.empty())
		return {kExitSignalBase + report.ended_by_signal, "Ended before the first row."};
	for (const BenchRow &row : report.rows) {
		const std::string name = section_text(row.section) + ", " +
		                         std::to_string(row.threads) + " threads, " +
		                         bench_mode_name(row.mode);
		if (!row.result.exclusive)
			return {kExitFailed,
			        "FAILED: two threads were in the locked section at once: " + name};
		if (row.result.sections == 0)
			return {kExitFailed, "FAILED: no thread ever got the lock: " + name};
	}
	for (const BenchMode mode : {BenchMode::on, BenchMode::on_while_waiting}) {
		bool contended = false;
		std::uint64_t extensions = 0;
		for (const BenchRow &row : report.rows)
			if (row.mode == mode && row.threads > 1) {
				contended = true;
				extensions += extensions_of(row);
			}
		if (contended && extensions == 0)
			return {kExitFailed,
			        std::string("FAILED: not one extension was granted in mode ") +
			                bench_mode_name(mode) +
			                ", although several threads contended on each CPU. "
			                "'slice-ext status' tells what this kernel can do; rows "
			                "much shorter than some slices of the scheduler show "
			                "nothing."};
	}
	if (report.ended_by_signal != 0)
		return {kExitOk, "Ended early by a signal: " + std::to_string(report.rows.size()) +
		                         " complete rows."};
	if (!report.unavailable_reason.empty())
		return {kExitOk, "Run without extension only. " + report.unavailable_text +
		                         "\nnext step: " + report.unavailable_hint};
	return {kExitOk, "Complete."};
}

std::string to_text(const BenchReport &report)
{
	std::string text = heading(report) + "\n";
	if (!report.rows.empty())
		text += text_table(table_rows(report)) + "\n";
	return text + losses(report) + cost_text(report) + judge(report).text + "\n";
}

nlohmann::json to_json(const BenchReport &report)
{
	const BenchVerdict verdict = judge(report);
	nlohmann::json rows = nlohmann::json::array();
	for (const BenchRow &row : report.rows)
		rows.push_back(row_json(report, row));
	nlohmann::json json = {
		{"schema", kBenchSchema},
		{"schema_version", kBenchSchemaVersion},
		{"environment", environment_json(report.facts)},
		{"options", options_json(report.options)},
		{"section_cost_ns",
	         {{"enabled",
	           report.cost.enabled ? nlohmann::json(*report.cost.enabled) : nlohmann::json()},
	          {"disabled", report.cost.disabled}}},
		{"rows", rows},
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
