// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_CHILD_HPP
#define SLICE_EXT_TOOL_LATENCY_CHILD_HPP

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace slice_ext::tool::latency
{

// A program in a process group of its own, which ends at the latest with the thread that started
// it: the kernel kills it when that thread dies in whatever way.
class Child
{
      public:
	struct Places {
		std::string cgroup;      // directory to run in; "" for ours
		std::string output;      // file for stdout and stderr; "" for nowhere
	};

	// ANNOUNCE is told the process group before the program starts, and while the child can
	// still not have children of its own. Throws std::system_error: cannot fork, no such
	// program.
	Child(const std::vector<std::string> &command, const Places &places,
	      const std::function<void(pid_t)> &announce);
	// Kills the process group if it is still there.
	~Child();
	Child(const Child &) = delete;
	Child &operator=(const Child &) = delete;

	// Whether it has ended; then status() is what waitpid(2) said.
	bool ended();
	int status() const
	{
		return status_;
	}
	void kill_group();

      private:
	pid_t pid_ = -1;
	int status_ = -1;
	bool ended_ = false;
};

// "exit status 3", "killed by signal 9"
std::string describe_status(int status);

} // namespace slice_ext::tool::latency

#endif
