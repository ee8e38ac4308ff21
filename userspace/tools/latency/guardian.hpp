// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_GUARDIAN_HPP
#define SLICE_EXT_TOOL_LATENCY_GUARDIAN_HPP

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace slice_ext::tool::latency
{

// Undoes what a run does to the machine, also when the run is killed.
//
// A process of its own, in a session of its own so that a signal to the process group of the run
// does not reach it, is told of everything before it is done: the files that are written, with what
// they held, the control group of the load, the process groups. When the run goes away, in whatever
// way, it writes the old values back, kills the load and goes. When the guardian itself is killed,
// alive() says so and restore() does the work in its place; only killing both at once leaves
// something behind.
class Guardian
{
      public:
	// To be made before any thread is. Throws std::system_error.
	Guardian();
	// Restores.
	~Guardian();
	Guardian(const Guardian &) = delete;
	Guardian &operator=(const Guardian &) = delete;

	// Writes VALUE to PATH. Throws std::system_error; nothing is changed then.
	void set(const std::string &path, const std::string &value);
	// Makes an own control group (v2) below ours, for the load. "" where that is not possible.
	std::string make_cgroup();
	// Kills this process group when restoring.
	void watch(pid_t group);
	// Writes the old values back, the last one first, kills what was watched and removes the
	// control group. Names in the result what could not be undone; empty is good.
	std::string restore();
	bool alive() const;
	pid_t pid() const
	{
		return pid_;
	}

      private:
	void tell(char what, const std::string &text);

	pid_t pid_ = -1;
	int socket_ = -1;
	// The same list as the guardian's.
	std::vector<std::pair<char, std::string>> changes_;
};

} // namespace slice_ext::tool::latency

#endif
