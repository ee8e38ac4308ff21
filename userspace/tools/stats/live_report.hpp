// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_LIVE_REPORT_HPP
#define SLICE_EXT_TOOL_STATS_LIVE_REPORT_HPP

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "stats/sample.hpp"

namespace slice_ext::tool
{

// Whose counters are shown.
struct Scope {
	enum Kind { machine, process, thread } kind = machine;
	pid_t id = 0;
	std::string name;
};

// One refresh of the view.
struct View {
	Scope scope;
	Sample sample;
	std::optional<Change> change; // since the refresh before; nullopt: the first one
	bool per_cpu = false;
	std::string note; // why nothing may be counted; "" for no reason
};

// A table, and below it what there is to say about it.
std::string to_text(const View &view);

// One object with all there is, columns included.
nlohmann::json to_json(const View &view);

// "process 123 (name)". What cannot be printed is '?' in the name.
std::string title(const Scope &scope);

// The keys that tell whose figures REPORT has.
void add_scope(nlohmann::json &report, const Scope &scope, bool ended);

// A moment of CLOCK_REALTIME as 2026-01-31T23:59:59.123Z.
std::string iso_time(std::int64_t realtime_ns);

} // namespace slice_ext::tool

#endif
