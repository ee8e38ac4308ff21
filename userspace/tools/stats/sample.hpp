// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_SAMPLE_HPP
#define SLICE_EXT_TOOL_STATS_SAMPLE_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernel_counters.hpp"

namespace slice_ext::tool
{

// The counters at one moment.
struct Sample {
	// By CPU number for the whole machine, by thread ID for a process.
	std::map<int, Counters> columns;
	std::int64_t monotonic_ns = 0; // CLOCK_MONOTONIC
	std::int64_t realtime_ns = 0;  // CLOCK_REALTIME
	bool ended = false;            // the process or thread has; what it left can still be there

	Counters total() const;
};

// What happened between two samples.
struct Change {
	double seconds = 0;
	std::map<int, Counters> columns; // those of the later sample
	Counters sum;
	// Counters that ran backwards somewhere, because they were set to zero. How much they counted
	// is not known: they are missing above.
	std::set<std::string> backwards;
};

// A thread that BEFORE does not have started from zero; one that AFTER does not have is left out.
Change change_between(const Sample &before, const Sample &after);

// Shares between 0 and 1; nullopt: of nothing, or the kernel does not count it.
struct Shares {
	std::optional<double> granted; // of the requests
	std::optional<double> yielded; // of the ends, by rseq_slice_yield(2), as it should be
	std::optional<double> expired; // of the ends, by the timer
};
Shares shares_of(const Counters &counters);

// The names of COUNTERS in the order to show them in: requests, grants, denials, ends and then
// whatever a newer kernel counts.
std::vector<std::string> shown_order(const Counters &counters);

// PROC is the mount point of procfs. Throws Refusal.
Sample sample_machine(const std::string &proc = "/proc");

// The threads of one process, or one thread. It keeps to that process also when its number is
// given to another one. Throws Refusal.
class ThreadSampler
{
      public:
	// WHOLE_PROCESS: the process that has the thread ID; otherwise that thread alone.
	ThreadSampler(int id, bool whole_process, const std::string &proc = "/proc");
	~ThreadSampler();
	ThreadSampler(const ThreadSampler &) = delete;
	ThreadSampler &operator=(const ThreadSampler &) = delete;

	Sample sample() const;
	// The threads there are; none once it has ended.
	std::vector<int> threads() const;
	// What the process or thread called itself when it was looked up.
	const std::string &name() const
	{
		return name_;
	}

      private:
	int id_;
	bool whole_process_;
	int directory_ = -1;
	std::string path_; // of that directory, as long as it is held open
	std::string name_;
};

} // namespace slice_ext::tool

#endif
