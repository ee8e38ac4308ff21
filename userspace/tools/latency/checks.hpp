// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_CHECKS_HPP
#define SLICE_EXT_TOOL_LATENCY_CHECKS_HPP

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "latency/experiment.hpp"
#include "latency/record.hpp"
#include "latency/statistics.hpp"

namespace slice_ext::tool::latency
{

// One table: the runs of one experiment on kernels of one preemption model, put together. The arms
// come from several boots, so several records.
struct Table {
	Experiment experiment;
	std::string preemption;
	bool virtual_time = false;
	bool short_form = false;
	std::vector<const RunRecord *> records;

	std::string title() const; // "t1 on PREEMPT"
	// All repetitions of an arm; empty if no record has it.
	std::vector<const ArmResult *> results(const std::string &arm) const;
};

// Puts records together by experiment and preemption model, in the order in which they come.
// Throws RecordError: an incomplete record, or records that do not belong together.
std::vector<Table> make_tables(const std::vector<RunRecord> &records);

Distribution distribution_of(const Table &table, const std::string &arm);
// nullopt: the arm was not measured, or has no such row or counter. LOWER_BOUND is set when all that
// is known is that the figure is above the answer: a percentile in the overflow of a histogram.
std::optional<double> metric_of(const Table &table, const std::string &arm,
                                const std::string &metric, const std::optional<RowChoice> &row,
                                bool *lower_bound = nullptr);
// Of a metric: "ns", "1/s" or "".
const char *unit_of(const std::string &metric);

enum class Outcome { passed, failed, skipped };

struct CheckResult {
	Check check;
	Outcome outcome = Outcome::failed;
	std::string figures; // "5.8 us, bound 6.5 us"
};

struct Verdict {
	bool passed = false;
	std::string line; // without the name of the table
	std::vector<CheckResult> checks;
};

// PARTIAL: a check whose arm is missing is skipped instead of failed.
Verdict judge(const Table &table, bool partial);

// The figures of each arm that was measured, a row each, below a row of titles.
std::vector<std::vector<std::string>> arm_rows(const Table &table);
std::string to_text(const Table &table, const Verdict &verdict);
nlohmann::json to_json(const Table &table, const Verdict &verdict);

void add_check_subcommand(CLI::App &latency, int &status);

} // namespace slice_ext::tool::latency

#endif
