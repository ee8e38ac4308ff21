// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_TRACE_INSTANCE_HPP
#define SLICE_EXT_TOOL_STATS_TRACE_INSTANCE_HPP

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace slice_ext::tool
{

// The mount point of tracefs. Throws Refusal: not mounted, or no right to use it. ROOT is put
// before every path, for tests.
std::string find_tracefs(const std::string &root = "");

// An instance of the kernel's tracer with buffers of its own, in which the three events of
// preemption delay are recorded: whoever uses the tracer otherwise is not disturbed.
//
// Its directory in tracefs has the ID of this process in its name and goes away with the object.
// What a run that was killed has left, the next one removes. Not thread-safe.
class TraceInstance
{
      public:
	// Throws Refusal: no right, or a kernel without these events.
	explicit TraceInstance(const std::string &tracefs);
	~TraceInstance();
	TraceInstance(const TraceInstance &) = delete;
	TraceInstance &operator=(const TraceInstance &) = delete;

	// Records only these threads. FORKED: and what they start from then on, threads and
	// processes. Before start(), and more than once for more threads.
	void only(const std::vector<pid_t> &threads, bool forked);
	void start();
	void stop();
	// The next piece of what was recorded, as text; "" for nothing more yet. These four throw
	// std::system_error.
	std::string read();
	// Events that the buffers had no room for, since start().
	std::uint64_t overruns() const;

      private:
	void set(const std::string &file, const std::string &value) const;
	void remove();

	std::string path_;
	int pipe_ = -1;
};

} // namespace slice_ext::tool

#endif
