// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LOAD_OPTIONS_HPP
#define SLICE_EXT_TOOL_LOAD_OPTIONS_HPP

#include <optional>
#include <string_view>
#include <vector>

namespace slice_ext::tool
{

enum class LoadKind {
	abuser,    // requests always, never leaves a section, never yields
	user,      // contends for a lock, in sections that it leaves as it should
	contender, // the same without extension
	hog,       // computes
	build,     // starts short-lived programs that compute, fault pages in and write small files
};

const char *load_kind_name(LoadKind kind);
// The inverse. Throws std::invalid_argument.
LoadKind load_kind(std::string_view name);

struct LoadOptions {
	static constexpr unsigned kMaxThreadsPerCpu = 64;

	LoadKind kind = LoadKind::hog;
	std::vector<int> cpus;
	unsigned threads = 1;  // per CPU; for build: programs at a time
	unsigned sleepers = 0; // per CPU, beside lockers
	unsigned hold_low_us = 50;
	unsigned hold_high_us = 50;
	std::optional<double> seconds; // nullopt: until a signal
	bool quiet = false;
};

// Threads per CPU where the command line gives none: lockers and abusers need company to be
// preempted at all.
unsigned default_threads(LoadKind kind);

} // namespace slice_ext::tool

#endif
