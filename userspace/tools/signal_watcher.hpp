// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_SIGNAL_WATCHER_HPP
#define SLICE_EXT_TOOL_SIGNAL_WATCHER_HPP

#include <signal.h>

#include <chrono>

namespace slice_ext::tool
{

// Turns SIGINT, SIGTERM, SIGHUP and SIGQUIT into an answer of wait(), so that a run that changed
// something (a sysctl, thread priorities) ends in order and undoes it.
//
// Blocks those signals in the calling thread, hence also in the threads it starts later, and
// ignores SIGPIPE (a reader that went away must not end the run halfway). To be created before any
// thread is.
class SignalWatcher
{
      public:
	SignalWatcher();
	~SignalWatcher();
	SignalWatcher(const SignalWatcher &) = delete;
	SignalWatcher &operator=(const SignalWatcher &) = delete;

	// Sleeps for DURATION or until one of the signals came. True once one has come, now or
	// earlier.
	bool wait(std::chrono::nanoseconds duration);

	// Number of the first signal that came, 0 for none so far.
	int caught() const
	{
		return caught_;
	}

      private:
	sigset_t watched_;
	sigset_t old_mask_;
	struct sigaction old_pipe_;
	int caught_ = 0;
};

} // namespace slice_ext::tool

#endif
