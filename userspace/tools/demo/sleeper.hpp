// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_SLEEPER_HPP
#define SLICE_EXT_TOOL_DEMO_SLEEPER_HPP

#include <atomic>
#include <cstdint>

#include "demo/busy_work.hpp"

namespace slice_ext::tool
{

// The body of a thread that works for some microseconds and sleeps for some hundred, again and
// again, with the shortest slice the scheduler gives: each wake-up wants the CPU at once, as that
// of an interactive program does. INDEX makes the periods of several threads differ.
void sleep_and_wake(const BusyWork &work, std::uint32_t index, const std::atomic<bool> &stop);

} // namespace slice_ext::tool

#endif
