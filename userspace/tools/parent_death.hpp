// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_PARENT_DEATH_HPP
#define SLICE_EXT_TOOL_PARENT_DEATH_HPP

#include <sys/types.h>

namespace slice_ext::tool
{

// Has the kernel send SIGNAL_NUMBER to the calling process when the thread that started it ends
// (prctl PR_SET_PDEATHSIG; survives exec of an ordinary program, not fork). False when PARENT, the
// process that was the parent a moment before, is gone already: then no signal will come and the
// caller ends by itself. True otherwise. Async-signal-safe, for use between fork and exec.
bool die_with_parent(int signal_number, pid_t parent);

} // namespace slice_ext::tool

#endif
