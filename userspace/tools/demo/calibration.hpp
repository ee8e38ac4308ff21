// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_CALIBRATION_HPP
#define SLICE_EXT_TOOL_DEMO_CALIBRATION_HPP

#include <optional>

#include "demo/busy_work.hpp"
#include "demo/cycle_clock.hpp"

namespace slice_ext::tool
{

struct Calibration {
	CycleClock clock;
	BusyWork work;
	// What slice_ext_enter() and slice_ext_leave() cost together when nothing happens between
	// them, in a thread that is enabled. nullopt: it could not be enabled.
	std::optional<double> section_cost_ns;
};

// Measures all of it on CPU, in about 50 ms. Throws std::runtime_error, std::system_error.
Calibration calibrate_on(int cpu);

} // namespace slice_ext::tool

#endif
