// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_COMMAND_HPP
#define SLICE_EXT_TOOL_COMMAND_HPP

#include <CLI/CLI.hpp>

namespace slice_ext::tool
{

// Each subcommand lives in a file of its own and has one function here: it adds its options to APP
// and, as the subcommand's callback, what puts the exit status into STATUS.
void add_status_command(CLI::App &app, int &status);
void add_bench_command(CLI::App &app, int &status);
void add_demo_command(CLI::App &app, int &status);
void add_load_command(CLI::App &app, int &status);
void add_latency_command(CLI::App &app, int &status);
void add_stats_command(CLI::App &app, int &status);

} // namespace slice_ext::tool

#endif
