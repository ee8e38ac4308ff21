// SPDX-License-Identifier: MIT
/**
 * @file process.hpp
 * A child process that does not outlive its handle.
 */
#ifndef SLICE_EXT_TESTS_COMMON_PROCESS_HPP
#define SLICE_EXT_TESTS_COMMON_PROCESS_HPP

#include <string>
#include <vector>

#include <sys/types.h>

namespace slice_test {

class Process {
public:
	/**
	 * Starts a program found on PATH.
	 * @param arguments the program and its arguments
	 * @param output    where its standard output goes; empty: nowhere
	 */
	explicit Process(const std::vector<std::string> &arguments, const std::string &output = {});
	/** Terminates and waits, if that has not happened. */
	~Process();
	Process(const Process &) = delete;
	Process &operator=(const Process &) = delete;

	bool running();
	/** Sends SIGTERM; wait() tells how it ended. */
	void terminate() const;
	/** Sends a signal, if it has not been waited for. */
	void send(int signal_number) const;
	pid_t pid() const
	{
		return pid_;
	}
	/** @return the exit status, or 128 + the signal that ended it; 127: not started */
	int wait();

private:
	pid_t pid_ = -1;
	int status_ = -1;
};

} // namespace slice_test

#endif
