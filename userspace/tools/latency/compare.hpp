// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_COMPARE_HPP
#define SLICE_EXT_TOOL_LATENCY_COMPARE_HPP

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "latency/record.hpp"

namespace slice_ext::tool::latency
{

// What one arm of a run is against the same arm of the baseline.
enum class Change { same, better, worse };

struct Difference {
	std::string run;
	std::string arm;
	std::string metric;
	Change change = Change::same;
	std::string figures;
};

struct CompareOptions {
	// Virtual time: by how much the worst may grow before it is a regression, ns; the average by
	// half of it.
	double tolerance = 1000;
	// Lock rows: by what part throughput may fall or the p99 of waits may grow.
	double lock_tolerance = 0.05;
};

// Same-named arms of RUN and BASELINE, which must be of one experiment, form and preemption model.
//
// In virtual time nothing is random, so figures are compared as they are. On real hardware maxima
// are noise and decide nothing: an arm is worse when more of its samples exceed the baseline's worst
// and its 99.9th percentile than chance gives (Fisher's exact test, 1 %), or when the 95 % intervals
// of its 50th or 99th percentile lie wholly above the baseline's.
//
// An arm that is gone is worse. Arms that are controls are not judged.
//
// Throws RecordError when they cannot be compared, or have no arm in common.
std::vector<Difference> compare(const RunRecord &baseline, const RunRecord &run,
                                const CompareOptions &options);

void add_compare_subcommand(CLI::App &latency, int &status);

} // namespace slice_ext::tool::latency

#endif
