// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_RT_PROBE_HPP
#define SLICE_EXT_TOOL_DEMO_RT_PROBE_HPP

#include <atomic>
#include <functional>

#include "demo/histogram.hpp"

namespace slice_ext::tool
{

// The body of a real-time thread that sleeps to absolute times INTERVAL_US apart and records, in
// ns, by how much each wake-up was late. ON_WAKE gets each of these figures. Returns once STOP is
// set, within one interval.
void probe_wakeups(unsigned interval_us, const std::atomic<bool> &stop, Histogram &latency,
                   const std::function<void(std::uint64_t late_ns)> &on_wake);

// Locks all memory of the process, now and later; false, with errno set, where that is not allowed.
bool lock_memory();

} // namespace slice_ext::tool

#endif
