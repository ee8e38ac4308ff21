// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_REPORT_HPP
#define SLICE_EXT_TOOL_DEMO_REPORT_HPP

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "demo/options.hpp"
#include "demo/result.hpp"
#include "kernel_facts.hpp"

namespace slice_ext::tool
{

struct DemoReport {
	DemoOptions options;
	KernelFacts facts;
	double ns_per_tick = 0;
	std::optional<double> section_cost_ns;
	std::optional<ArmResult> without;
	std::optional<ArmResult> with;
	// Why there is no arm with extension although it was asked for, and what to do; else "".
	std::string unavailable_reason; // name
	std::string unavailable_text;
	std::string unavailable_hint;
	int ended_by_signal = 0;
};

struct Verdict {
	int exit_status = 0;
	std::string text;
};

// Whether the run shows what it has to: some section was extended where the kernel can do it, and
// the lock kept sections apart. It does not judge the size of the gain.
Verdict judge(const DemoReport &report);

// The rows of the table: name, without, with, change. "-" stands for unknown or not applicable.
std::vector<std::vector<std::string>> table_rows(const DemoReport &report);

// The whole text report, table and verdict included.
std::string to_text(const DemoReport &report);

// The same as JSON: "schema" is "slice-ext/demo"; "schema_version" grows when a key changes its
// meaning or goes away, not when one is added. Times are in ns unless the key says otherwise.
nlohmann::json to_json(const DemoReport &report);

} // namespace slice_ext::tool

#endif
