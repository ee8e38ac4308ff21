// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_START_GATE_HPP
#define SLICE_EXT_TOOL_DEMO_START_GATE_HPP

#include <condition_variable>
#include <mutex>

namespace slice_ext::tool
{

// Threads prepare themselves, wait here and are let go together. Unlike a barrier it can be given
// up, when not all of them could be started.
class StartGate
{
      public:
	// For the threads: true when the run begins, false when it was given up.
	bool wait()
	{
		std::unique_lock lock(mutex_);
		++waiting_;
		changed_.notify_all();
		changed_.wait(lock, [this] { return state_ != State::closed; });
		return state_ == State::open;
	}

	// For the one who opens: returns once COUNT threads wait.
	void await(unsigned count)
	{
		std::unique_lock lock(mutex_);
		changed_.wait(lock, [&] { return waiting_ == count; });
	}
	void open()
	{
		leave(State::open);
	}
	void give_up()
	{
		leave(State::given_up);
	}

      private:
	enum class State { closed, open, given_up };

	void leave(State state)
	{
		const std::lock_guard lock(mutex_);
		if (state_ == State::closed)
			state_ = state;
		changed_.notify_all();
	}

	std::mutex mutex_;
	std::condition_variable changed_;
	unsigned waiting_ = 0;
	State state_ = State::closed;
};

} // namespace slice_ext::tool

#endif
