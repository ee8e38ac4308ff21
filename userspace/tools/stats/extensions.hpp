// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_EXTENSIONS_HPP
#define SLICE_EXT_TOOL_STATS_EXTENSIONS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "demo/histogram.hpp"

namespace slice_ext::tool
{

// How long extensions that ended alike had lasted.
struct Ends {
	std::map<std::uint64_t, std::uint64_t> by_us; // how many lasted N to N+1 microseconds
	Histogram used_ns;

	void record(std::uint64_t ns);
	void merge(const Ends &other);
};

// What the tracepoints told.
struct Extensions {
	std::map<std::uint64_t, std::uint64_t> granted; // by length in ns
	std::map<std::string, std::uint64_t> denied;    // by reason
	std::map<std::string, Ends> ended;              // by reason
	std::uint64_t lost = 0;                         // events, at least

	std::uint64_t grants() const;
	std::uint64_t denials() const;
	Ends ends() const;
};

// Reads the events sched_preempt_delay_grant, _deny and _end in the text form of tracefs, without
// the columns that stand before the name of the event (options/context-info 0), and its notes of
// lost events.
//
// The name of a thread is in each event and may hold anything, line ends too: whatever does not
// begin with the name of an event continues the line before.
class TraceReader
{
      public:
	explicit TraceReader(Extensions &extensions) : extensions_(extensions)
	{
	}

	// The next piece of text, which need not end with a line. Throws std::runtime_error with the
	// line and its number when it is not what the events look like.
	void read(std::string_view text);
	// At the end. Throws when something is left of which the rest did not come.
	void finish() const;

      private:
	void take_line(std::string_view line);
	[[noreturn]] void malformed() const;

	Extensions &extensions_;
	std::string line_;  // has no end yet
	std::string event_; // whole lines that are not a whole event yet
	std::uint64_t lines_ = 0;
	std::uint64_t event_line_ = 0;
};

} // namespace slice_ext::tool

#endif
