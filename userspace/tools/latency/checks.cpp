// SPDX-License-Identifier: MIT
#include "latency/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>

#include "exit_status.hpp"
#include "text_table.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

bool is_counter(const std::string &metric)
{
	return metric.rfind("counters.", 0) == 0;
}

// Without the local part, in which a patched and an unpatched kernel may differ.
std::string kernel_version(const RunRecord &record)
{
	const auto release = record.environment.value("release", std::string());
	return release.substr(0, release.find_first_not_of("0123456789."));
}

double field_of(const LockRow &row, const std::string &metric)
{
	if (metric == "sections_per_second")
		return row.sections_per_second;
	if (metric == "wait_p50")
		return static_cast<double>(row.wait_p50);
	if (metric == "wait_p99")
		return static_cast<double>(row.wait_p99);
	if (metric == "wait_p999")
		return static_cast<double>(row.wait_p999);
	if (metric == "wait_max")
		return static_cast<double>(row.wait_max);
	if (metric == "holder_preempted")
		return static_cast<double>(row.holder_preempted);
	return row.uncontended_cost.value_or(NAN);
}

std::optional<double> lock_metric(const std::vector<const ArmResult *> &results,
                                  const std::string &metric, const RowChoice &choice)
{
	double sum = 0;
	unsigned count = 0;
	for (const ArmResult *result : results)
		for (const LockRow &row : result->locks)
			if (row.mode == choice.mode && row.threads == choice.threads &&
			    row.section == choice.section && !std::isnan(field_of(row, metric))) {
				sum += field_of(row, metric);
				++count;
			}
	return count ? std::optional<double>(sum / count) : std::nullopt;
}

std::optional<double> counter_metric(const std::vector<const ArmResult *> &results,
                                     const std::string &name)
{
	std::optional<double> sum;
	for (const ArmResult *result : results) {
		const auto found = result->counters.find(name);
		if (found != result->counters.end())
			sum = sum.value_or(0) + static_cast<double>(found->second);
	}
	return sum;
}

std::optional<double> phase_metric(const std::vector<const ArmResult *> &results,
                                   const std::string &metric)
{
	const std::size_t dot = metric.find('.');
	const std::string what = metric.substr(0, dot);
	const std::string state = dot == std::string::npos ? "" : metric.substr(dot + 1);
	double max = 0, sum = 0, count = 0, wake_ups = 0, uncovered = 0;
	for (const ArmResult *result : results) {
		wake_ups += static_cast<double>(result->phase->wake_ups);
		uncovered += static_cast<double>(result->phase->uncovered);
		for (const PhaseSample &sample : result->phase->samples) {
			if (!state.empty() && state != phase_state_name(sample.state))
				continue;
			max = std::max(max, static_cast<double>(sample.latency));
			sum += static_cast<double>(sample.latency);
			++count;
		}
	}
	if (what == "samples")
		return count;
	if (what == "wake_ups")
		return wake_ups;
	if (what == "uncovered")
		return uncovered;
	if (count == 0)
		return std::nullopt;
	return what == "average" ? sum / count : max;
}

std::string show(double value, const std::string &metric)
{
	char text[64];
	if (metric == "uncontended_cost")
		std::snprintf(text, sizeof(text), "%.1f ns", value);
	else if (std::string(unit_of(metric)) == "ns")
		return in_us(value);
	else if (std::string(unit_of(metric)) == "1/s")
		std::snprintf(text, sizeof(text), "%.0f /s", value);
	else
		std::snprintf(text, sizeof(text), "%.0f", value);
	return text;
}

std::string row_name(const std::optional<RowChoice> &row)
{
	if (!row)
		return "";
	return " (" + row->mode + ", " + std::to_string(row->threads) + " threads, " +
	       in_us(static_cast<double>(row->section)) + ")";
}

std::string missing_text(const Table &table, const std::string &arm)
{
	const Arm *known = table.experiment.find(arm);
	if (table.results(arm).empty())
		return "arm " + arm + " was not measured; it needs a kernel that is \"" +
		       known->kernel + "\"";
	return "arm " + arm + " has no such figure";
}

CheckResult evaluate(const Table &table, const Check &check, bool partial)
{
	CheckResult result;
	result.check = check;
	if (table.virtual_time ? !check.in_virtual_time : !check.on_real_hardware) {
		result.outcome = Outcome::skipped;
		result.figures = table.virtual_time ? "only on real hardware" : "only in virtual time";
		return result;
	}
	const auto give_up = [&](const std::string &arm) {
		result.outcome = partial && table.results(arm).empty() ? Outcome::skipped
		                                                       : Outcome::failed;
		result.figures = missing_text(table, arm);
		return result;
	};
	bool more = false, other_more = false;
	const auto value = metric_of(table, check.arm, check.metric, check.row, &more);
	if (!value)
		return give_up(check.arm);
	double other = 0;
	if (!check.against.empty()) {
		const auto found = metric_of(table, check.against, check.metric,
		                             check.against_row ? check.against_row : check.row,
		                             &other_more);
		if (!found)
			return give_up(check.against);
		other = *found;
	}
	double bound = check.bound;
	bool at_most = true;
	switch (check.comparison) {
	case Comparison::at_most:
		break;
	case Comparison::at_least:
		at_most = false;
		break;
	case Comparison::at_most_above:
		bound += other;
		break;
	case Comparison::at_least_above:
		bound += other;
		at_most = false;
		break;
	case Comparison::at_most_times:
		bound *= other;
		break;
	case Comparison::at_least_times:
		bound *= other;
		at_most = false;
		break;
	}
	// What is only known from below proves no upper bound, and is none itself.
	const bool good = !other_more && (at_most ? !more && *value <= bound : *value >= bound);
	result.outcome = good ? Outcome::passed : Outcome::failed;
	result.figures = check.arm + row_name(check.row) + ": " + check.metric +
	                 (more ? " > " : " ") + show(*value, check.metric) + ", " + (at_most ? "at most " : "at least ") +
	                 show(bound, check.metric);
	if (!check.against.empty())
		result.figures += " (" + check.against + row_name(check.against_row) + ": " +
		                  (other_more ? "> " : "") + show(other, check.metric) + ")";
	return result;
}

// Nothing granted, nothing shown: of every arm whose counters say that somebody asked.
void add_zero_grants(const Table &table, Verdict &verdict)
{
	for (const Arm &arm : table.experiment.arms) {
		const auto results = table.results(arm.name);
		const auto requests = counter_metric(results, "requests");
		const auto granted = counter_metric(results, "granted");
		if (requests.value_or(0) <= 0 || granted.value_or(0) > 0)
			continue;
		CheckResult result;
		result.check.title = "extra time was granted";
		result.check.arm = arm.name;
		result.outcome = Outcome::failed;
		result.figures = arm.name + ": " + show(*requests, "") + " requests, nothing granted";
		verdict.checks.push_back(result);
	}
}

std::string headline(const Table &table)
{
	const auto figure = [&](const char *arm, const char *name) -> std::string {
		if (table.experiment.kind == Kind::bench)
			return "";
		const auto value = metric_of(table, arm, "max", std::nullopt);
		return value ? std::string("; ") + name + " " + in_us(*value) : "";
	};
	return figure("base", "worst wake-up unpatched") + figure("on-user", "with extension") +
	       figure("on-abuser", "beside an abuser") + figure("dropped-30", "guard dropped");
}

} // namespace

std::string Table::title() const
{
	return experiment.name + " on " + preemption;
}

std::vector<const ArmResult *> Table::results(const std::string &arm) const
{
	std::vector<const ArmResult *> found;
	for (const RunRecord *record : records)
		for (const ArmResult &result : record->arms)
			if (result.arm == arm)
				found.push_back(&result);
	return found;
}

std::vector<Table> make_tables(const std::vector<RunRecord> &records)
{
	std::vector<Table> tables;
	for (const RunRecord &record : records) {
		if (!record.complete)
			throw RecordError("run " + record.name + " is not complete: " +
			                  record.why_incomplete);
		const auto same = std::find_if(tables.begin(), tables.end(), [&](const Table &table) {
			return table.experiment.name == record.experiment_name() &&
			       table.preemption == record.preemption();
		});
		if (same == tables.end()) {
			Table table;
			table.experiment = experiment_from_record(record.experiment,
			                                          "run " + record.name);
			table.preemption = record.preemption();
			table.virtual_time = record.virtual_time();
			table.short_form = record.short_form;
			table.records.push_back(&record);
			tables.push_back(std::move(table));
			continue;
		}
		const std::string both =
			"runs " + same->records.front()->name + " and " + record.name;
		if (same->experiment.effective != record.experiment)
			throw RecordError(both + " used different forms of experiment " +
			                  record.experiment_name());
		if (same->virtual_time != record.virtual_time())
			throw RecordError(both + " are of virtual time and of real hardware");
		if (kernel_version(*same->records.front()) != kernel_version(record))
			throw RecordError(both + " are of Linux " +
			                  kernel_version(*same->records.front()) + " and " +
			                  kernel_version(record));
		for (const ArmResult &arm : record.arms)
			if (!same->results(arm.arm).empty())
				throw RecordError(both + " both have arm " + arm.arm +
				                  "; compare puts runs beside each other");
		same->records.push_back(&record);
	}
	return tables;
}

Distribution distribution_of(const Table &table, const std::string &arm)
{
	Distribution distribution;
	for (const ArmResult *result : table.results(arm))
		for (const ThreadLatencies &thread : result->threads)
			distribution.add(thread);
	return distribution;
}

std::optional<double> metric_of(const Table &table, const std::string &arm,
                                const std::string &metric, const std::optional<RowChoice> &row,
                                bool *lower_bound)
{
	const auto results = table.results(arm);
	if (results.empty())
		return std::nullopt;
	if (is_counter(metric))
		return counter_metric(results, metric.substr(9));
	if (table.experiment.kind == Kind::bench)
		return row ? lock_metric(results, metric, *row) : std::nullopt;
	if (table.experiment.kind == Kind::phase)
		return phase_metric(results, metric);
	const Distribution distribution = distribution_of(table, arm);
	if (metric == "min")
		return static_cast<double>(distribution.min);
	if (metric == "max")
		return static_cast<double>(distribution.max);
	if (metric == "average")
		return distribution.average();
	if (metric == "overflow")
		return static_cast<double>(distribution.overflow);
	const Quantile found = quantile(distribution, std::atof(metric.c_str() + 1) / 100);
	if (lower_bound)
		*lower_bound = found.lower_bound;
	return static_cast<double>(found.value);
}

const char *unit_of(const std::string &metric)
{
	if (metric == "sections_per_second")
		return "1/s";
	if (is_counter(metric) || metric == "overflow" || metric == "holder_preempted" ||
	    metric == "wake_ups" || metric == "uncovered" || metric.rfind("samples.", 0) == 0 ||
	    metric.empty())
		return "";
	return "ns";
}

Verdict judge(const Table &table, bool partial)
{
	Verdict verdict;
	for (const Check &check : table.experiment.checks)
		verdict.checks.push_back(evaluate(table, check, partial));
	add_zero_grants(table, verdict);

	unsigned passed = 0, failed = 0, skipped = 0;
	bool control_failed = false;
	for (const CheckResult &result : verdict.checks) {
		passed += result.outcome == Outcome::passed;
		failed += result.outcome == Outcome::failed;
		skipped += result.outcome == Outcome::skipped;
		control_failed |= result.outcome == Outcome::failed && result.check.control;
	}
	verdict.passed = failed == 0 && passed > 0;
	verdict.line = std::to_string(passed) + " of " + std::to_string(passed + failed) + " checks";
	if (skipped)
		verdict.line += ", " + std::to_string(skipped) + " skipped";
	if (passed + failed == 0)
		verdict.line += "; nothing was checked";
	if (control_failed)
		verdict.line += "; the control showed nothing, so the others prove nothing";
	verdict.line += headline(table);
	return verdict;
}

std::vector<std::vector<std::string>> arm_rows(const Table &table)
{
	std::vector<std::vector<std::string>> rows;
	const auto counter = [&](const std::string &arm, const char *name) {
		const auto value = counter_metric(table.results(arm), name);
		return value ? show(*value, "") : std::string("-");
	};
	if (table.experiment.kind == Kind::cyclictest)
		rows.push_back({"arm", "samples", "min", "average", "p99", "max", "overflow", "granted",
		                "refused for RT"});
	else if (table.experiment.kind == Kind::phase)
		rows.push_back({"arm", "wake-ups", "average", "max", "at phase", "granted",
		                "met extra time", "uncovered"});
	else
		rows.push_back({"arm, mode", "threads", "section", "sections/s", "wait p50", "p99",
		                "p99.9", "max", "holder preempted", "granted"});
	for (const Arm &arm : table.experiment.arms) {
		const auto results = table.results(arm.name);
		if (results.empty())
			continue;
		if (table.experiment.kind == Kind::cyclictest) {
			const Distribution d = distribution_of(table, arm.name);
			rows.push_back({arm.name, std::to_string(d.samples),
			                in_us(static_cast<double>(d.min)), in_us(d.average()),
			                in_us(quantile(d, 0.99)), in_us(static_cast<double>(d.max)),
			                std::to_string(d.overflow), counter(arm.name, "granted"),
			                counter(arm.name, "denied_nonfair")});
		} else if (table.experiment.kind == Kind::phase) {
			const PhaseSample *worst = nullptr;
			for (const ArmResult *result : results)
				for (const PhaseSample &sample : result->phase->samples)
					if (!worst || sample.latency > worst->latency)
						worst = &sample;
			const auto figure = [&](const char *metric) {
				return show(metric_of(table, arm.name, metric, std::nullopt).value_or(0),
				            metric);
			};
			rows.push_back({arm.name, figure("wake_ups"), figure("average"), figure("max"),
			                in_us(static_cast<double>(worst->phase)) + " in " +
			                        phase_state_name(worst->state),
			                counter(arm.name, "granted"), figure("samples.granted"),
			                figure("uncovered")});
		} else {
			for (const ArmResult *result : results)
				for (const LockRow &row : result->locks) {
					const auto granted = row.counters.find("granted");
					const auto us = [](std::uint64_t ns) {
						return in_us(static_cast<double>(ns));
					};
					rows.push_back(
						{arm.name + ", " + row.mode, std::to_string(row.threads),
					         us(row.section),
					         show(row.sections_per_second, ""), us(row.wait_p50),
					         us(row.wait_p99), us(row.wait_p999), us(row.wait_max),
					         std::to_string(row.holder_preempted),
					         granted == row.counters.end()
					                 ? "-"
					                 : std::to_string(granted->second)});
				}
		}
	}
	return rows;
}

std::string to_text(const Table &table, const Verdict &verdict)
{
	std::string text = std::string(verdict.passed ? "PASS  " : "FAIL  ") + table.title() + ": " +
	                   verdict.line + "\n";
	std::istringstream lines(text_table(arm_rows(table)));
	for (std::string line; std::getline(lines, line);)
		text += "  " + line + "\n";
	for (const CheckResult &result : verdict.checks) {
		static const char *const words[] = {"  ok    ", "  FAIL  ", "  skip  "};
		text += words[static_cast<int>(result.outcome)];
		text += (result.check.control ? "control: " : "") + result.check.title + ": " +
		        result.figures + "\n";
	}
	return text;
}

json to_json(const Table &table, const Verdict &verdict)
{
	static const char *const words[] = {"passed", "failed", "skipped"};
	json checks = json::array(), runs = json::array();
	for (const CheckResult &result : verdict.checks)
		checks.push_back({{"title", result.check.title},
		                  {"arm", result.check.arm},
		                  {"metric", result.check.metric},
		                  {"control", result.check.control},
		                  {"outcome", words[static_cast<int>(result.outcome)]},
		                  {"figures", result.figures}});
	for (const RunRecord *record : table.records)
		runs.push_back(record->name);
	return {{"experiment", table.experiment.name},
	        {"preemption", table.preemption},
	        {"virtual_time", table.virtual_time},
	        {"short_form", table.short_form},
	        {"passed", verdict.passed},
	        {"verdict", verdict.line},
	        {"runs", std::move(runs)},
	        {"checks", std::move(checks)}};
}

void add_check_subcommand(CLI::App &latency, int &status)
{
	CLI::App *command = latency.add_subcommand(
		"check", "Put runs together to tables and say whether what has to come out does");
	struct Options {
		std::vector<std::string> paths;
		bool json = false;
		bool partial = false;
	};
	auto options = std::make_shared<Options>();
	command->add_option("runs", options->paths, "Files of runs")->required();
	command->add_flag("--json", options->json, "As JSON");
	command->add_flag("--partial", options->partial,
	                  "Skip checks of arms that were not measured, instead of failing them");
	command->callback([options, &status] {
		try {
			std::vector<RunRecord> records;
			for (const std::string &path : options->paths)
				records.push_back(read_record(path));
			status = kExitOk;
			json all = {{"schema", "slice-ext-latency-check/1"}, {"tables", json::array()}};
			for (const Table &table : make_tables(records)) {
				const Verdict verdict = judge(table, options->partial);
				if (!verdict.passed)
					status = kExitFailed;
				if (options->json)
					all["tables"].push_back(to_json(table, verdict));
				else
					std::fputs(to_text(table, verdict).c_str(), stdout);
			}
			if (options->json)
				std::printf("%s\n", all.dump(2).c_str());
		} catch (const std::runtime_error &error) {
			std::fprintf(stderr, "slice-ext latency: %s\n", error.what());
			status = kExitFailed;
		}
	});
}

} // namespace slice_ext::tool::latency
