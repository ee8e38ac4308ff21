// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_BENCH_REPORT_HPP
#define SLICE_EXT_TOOL_BENCH_REPORT_HPP

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/section_cost.hpp"
#include "demo/result.hpp"
#include "kernel_facts.hpp"

namespace slice_ext::tool
{

// One line of the table: all rounds of a mode, a number of threads and a section length.
struct BenchRow {
	BenchMode mode = BenchMode::off;
	unsigned threads = 0;      // per CPU
	std::uint64_t section = 0; // ns
	ArmResult result;
};

struct BenchReport {
	BenchOptions options;
	KernelFacts facts;
	std::string unavailable_reason; // "": sections can be extended, or nobody asked for it
	std::string unavailable_text;
	std::string unavailable_hint;
	SectionCost cost;
	std::vector<BenchRow> rows; // complete ones
	int ended_by_signal = 0;
};

struct BenchVerdict {
	int exit_status;
	std::string text;
};

// Fails where the lock did not keep threads apart, where a row has no section, and where sections of
// several threads per CPU were to be extended and not one was in all rows of that mode.
BenchVerdict judge(const BenchReport &report);

// The table with the ratio to mode off beside each figure, and what got worse in words.
std::string to_text(const BenchReport &report);
nlohmann::json to_json(const BenchReport &report);

} // namespace slice_ext::tool

#endif
