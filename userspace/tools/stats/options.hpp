// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_OPTIONS_HPP
#define SLICE_EXT_TOOL_STATS_OPTIONS_HPP

#include <sys/types.h>

#include <optional>

namespace slice_ext::tool
{

struct StatsOptions {
	double interval = 1;           // seconds
	std::optional<unsigned> count; // nullopt: until a signal
	bool per_cpu = false;
	std::optional<pid_t> pid; // a process; neither this nor tid: the whole machine
	std::optional<pid_t> tid; // one thread
	bool histogram = false;
	std::optional<double> duration; // of the histogram, seconds; nullopt: until a signal
	bool json = false;
};

} // namespace slice_ext::tool

#endif
