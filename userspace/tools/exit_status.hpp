// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_EXIT_STATUS_HPP
#define SLICE_EXT_TOOL_EXIT_STATUS_HPP

namespace slice_ext::tool
{

// Exit statuses of slice-ext, the same for every subcommand; slice-ext(1) lists them.
enum ExitStatus : int {
	kExitOk = 0,
	kExitFailed = 1, // it ran, and the result is a failure; the reason is printed
	kExitUsage = 2,  // bad command line
	kExitUnavailable =
		3, // sections cannot be extended here; the reason and next step are printed
	kExitNoPermission = 4, // a right is missing (real-time priority, writing the sysctl)
	kExitSignalBase = 128, // + signal number: ended before there was anything to report
};

} // namespace slice_ext::tool

#endif
