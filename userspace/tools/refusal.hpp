// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_REFUSAL_HPP
#define SLICE_EXT_TOOL_REFUSAL_HPP

#include <functional>
#include <string>

namespace slice_ext::tool
{

// Thrown by a subcommand that cannot go on: what is printed, with the next step, and the status.
struct Refusal {
	int exit_status; // an ExitStatus
	std::string text;
};

// The exit status of RUN; for what it throws, after a line on standard error that begins with
// COMMAND, that of the Refusal, and kExitFailed for any other exception.
int run_refusable(const char *command, const std::function<int()> &run);

} // namespace slice_ext::tool

#endif
