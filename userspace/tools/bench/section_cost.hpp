// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_BENCH_SECTION_COST_HPP
#define SLICE_EXT_TOOL_BENCH_SECTION_COST_HPP

#include <optional>

#include "demo/cycle_clock.hpp"

namespace slice_ext::tool
{

// What slice_ext_enter() and slice_ext_leave() together add to a section in which nothing happens,
// in nanoseconds; in a virtual machine under instruction counting these are instructions.
struct SectionCost {
	double disabled = 0;           // in a thread that is not enabled
	std::optional<double> enabled; // nullopt: it could not be enabled
};

// Measures in a thread of its own on CPU, in about 10 ms. Each figure is the median of many
// differences between a loop with and the same loop without the two calls, over several places of
// the loop in the cache lines, so that neither an interrupt nor the linker decides it.
// Throws std::system_error.
SectionCost measure_section_cost(int cpu, const CycleClock &clock);

} // namespace slice_ext::tool

#endif
