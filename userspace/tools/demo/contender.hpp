// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_CONTENDER_HPP
#define SLICE_EXT_TOOL_DEMO_CONTENDER_HPP

#include "demo/calibration.hpp"
#include "demo/options.hpp"
#include "demo/progress.hpp"
#include "demo/result.hpp"
#include "signal_watcher.hpp"

namespace slice_ext::tool
{

// One phase: starts all threads, lets them contend for options.seconds or until a signal comes,
// joins them. Throws std::system_error when a thread cannot be started and std::runtime_error when
// one cannot be enabled; all others are joined by then.
ArmResult run_phase(const DemoOptions &options, const Calibration &calibration, bool extended,
                    SignalWatcher &signals, Progress &progress);

} // namespace slice_ext::tool

#endif
