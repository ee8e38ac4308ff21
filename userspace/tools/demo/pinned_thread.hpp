// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_PINNED_THREAD_HPP
#define SLICE_EXT_TOOL_DEMO_PINNED_THREAD_HPP

#include <pthread.h>

#include <functional>

namespace slice_ext::tool
{

// A thread that runs on one CPU from its first instruction, with a small stack so that
// mlockall(2) of many stays affordable.
class PinnedThread
{
      public:
	// FIFO_PRIORITY 0: ordinary. BODY must not throw.
	// Throws std::system_error; EPERM: no right to the priority, EINVAL: no such CPU.
	PinnedThread(int cpu, int fifo_priority, std::function<void()> body);
	// Joins.
	~PinnedThread();
	PinnedThread(const PinnedThread &) = delete;
	PinnedThread &operator=(const PinnedThread &) = delete;

      private:
	static void *start(void *self);

	std::function<void()> body_;
	pthread_t thread_;
};

} // namespace slice_ext::tool

#endif
