// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_RECORD_HPP
#define SLICE_EXT_TOOL_STATS_RECORD_HPP

#include "stats/options.hpp"

namespace slice_ext::tool
{

// Records extensions with the kernel's tracer until the duration of the options is over, a signal
// comes or the process ends, and then shows how long they lasted. Returns an exit status; throws
// Refusal.
int run_histogram(const StatsOptions &options);

} // namespace slice_ext::tool

#endif
