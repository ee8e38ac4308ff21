// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LOAD_SPINNERS_HPP
#define SLICE_EXT_TOOL_LOAD_SPINNERS_HPP

#include <cstdint>

#include "load/options.hpp"
#include "signal_watcher.hpp"

namespace slice_ext::tool
{

// Abusers or hogs on each CPU, until options.seconds have passed or a signal came. Returns how often
// abusers stored the request again because the kernel had taken it away; 0 for hogs.
// Throws std::system_error when a thread cannot be started, Refusal when one cannot be enabled.
std::uint64_t run_spinners(const LoadOptions &options, SignalWatcher &signals);

// Waits for the end of a load.
void wait_for_end(const LoadOptions &options, SignalWatcher &signals);

} // namespace slice_ext::tool

#endif
