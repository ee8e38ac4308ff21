// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_REPORT_HPP
#define SLICE_EXT_TOOL_LATENCY_REPORT_HPP

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "latency/record.hpp"

namespace slice_ext::tool::latency
{

struct ReportOptions {
	std::string title = "slice-ext laboratory";
	bool plots = true;
	bool partial = false;
	bool compare = false; // the first record is what the others are put beside
};

// One HTML document that needs nothing else: verdicts first, then for each table what was measured,
// its figures, plots and checks, and where. The same runs give the same document.
// Throws RecordError, and std::runtime_error when gnuplot is missing or fails.
std::string to_html(const std::vector<RunRecord> &records, const ReportOptions &options);

std::string html_escaped(const std::string &text);

void add_report_subcommand(CLI::App &latency, int &status);

} // namespace slice_ext::tool::latency

#endif
