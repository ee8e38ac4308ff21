// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LOAD_BUILD_LOAD_HPP
#define SLICE_EXT_TOOL_LOAD_BUILD_LOAD_HPP

#include <cstdint>
#include <string>

#include "load/options.hpp"
#include "signal_watcher.hpp"

namespace slice_ext::tool
{

// A stand-in for a kernel build, until options.seconds have passed or a signal came: on each CPU as
// many make-like threads as asked for, each starts this program as a compiler, waits for it, and
// starts the next. Sources and objects lie in a temporary directory that is removed at the end.
// Returns the number of programs run. Throws std::system_error, std::runtime_error.
std::uint64_t run_build(const LoadOptions &options, SignalWatcher &signals);

// What one of those programs does: reads the source file, counts its words, sorts them, writes them
// to OBJECT under a temporary name and renames that. Returns an exit status.
int compile_one(const std::string &source, const std::string &object);

} // namespace slice_ext::tool

#endif
