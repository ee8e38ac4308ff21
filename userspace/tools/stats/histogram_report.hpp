// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_HISTOGRAM_REPORT_HPP
#define SLICE_EXT_TOOL_STATS_HISTOGRAM_REPORT_HPP

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "kernel_facts.hpp"
#include "stats/extensions.hpp"
#include "stats/live_report.hpp"

namespace slice_ext::tool
{

struct HistogramReport {
	Scope scope;
	std::int64_t begin_ns = 0; // CLOCK_REALTIME
	double seconds = 0;
	bool ended = false; // the process or thread has
	Extensions extensions;
	KernelFacts facts;
};

std::string to_text(const HistogramReport &report);
nlohmann::json to_json(const HistogramReport &report);

} // namespace slice_ext::tool

#endif
