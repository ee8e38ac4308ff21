// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_LIVE_HPP
#define SLICE_EXT_TOOL_STATS_LIVE_HPP

#include "stats/options.hpp"

namespace slice_ext::tool
{

// Shows the counters and how fast they grow until a signal, the count of the options, the end of
// the process or the reader is gone. The signal does not lose what came after the last refresh:
// there is one more. Returns an exit status; throws Refusal.
int run_live(const StatsOptions &options);

} // namespace slice_ext::tool

#endif
