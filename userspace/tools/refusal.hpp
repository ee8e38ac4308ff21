// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_REFUSAL_HPP
#define SLICE_EXT_TOOL_REFUSAL_HPP

#include <string>

namespace slice_ext::tool
{

// Thrown by a subcommand that cannot go on: what is printed, with the next step, and the status.
struct Refusal {
	int exit_status; // an ExitStatus
	std::string text;
};

} // namespace slice_ext::tool

#endif
