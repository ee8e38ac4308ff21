// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TESTS_UNIT_TOOL_COMMAND_LINE_HPP
#define SLICE_EXT_TESTS_UNIT_TOOL_COMMAND_LINE_HPP

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

// A run of the slice-ext program under test.
class ToolRun
{
      public:
	// IN_CHILD is called before the program starts, in the new process.
	explicit ToolRun(
		const std::vector<std::string> &arguments,
		const std::function<void()> &in_child = [] {});
	~ToolRun();
	ToolRun(const ToolRun &) = delete;
	ToolRun &operator=(const ToolRun &) = delete;

	void send(int signal_number) const;

	// Exit status; 1000 + number when a signal ended it.
	int wait();

	// Waits until TEXT stands on its standard error.
	bool wait_for_error_text(const std::string &text, std::chrono::seconds deadline) const;

	// What it wrote so far.
	std::string output() const;
	std::string errors() const;

      private:
	pid_t pid_ = -1;
	std::string dir_;
};

#endif
