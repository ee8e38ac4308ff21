// SPDX-License-Identifier: MIT
/**
 * @file periodic.hpp
 * A thread that sleeps, wakes up by its own timer, and so asks for the CPU.
 */
#ifndef SLICE_EXT_TESTS_COMMON_PERIODIC_HPP
#define SLICE_EXT_TESTS_COMMON_PERIODIC_HPP

#include "system.hpp"
#include "timing.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace slice_test
{

class Periodic
{
      public:
	struct Setup {
		/** Not a multiple of the tick, or each wake-up meets the same
		 * phase of it. */
		std::int64_t period = 997 * us;
		/** First wake-up, CLOCK_MONOTONIC ns; 0: a period from now. */
		std::int64_t first = 0;
		/** Busy time after each wake-up. */
		std::int64_t busy = 20 * us;
		Policy policy = eager();
		int cpu = test_cpu();
	};

	/** Starts the thread; returns when it is about to sleep for the first time. */
	explicit Periodic(const Setup &setup);
	~Periodic()
	{
		stop();
	}
	Periodic(const Periodic &) = delete;
	Periodic &operator=(const Periodic &) = delete;

	/** Lets the thread end after its next wake-up and joins it. */
	void stop();

	/** errno of what could not be set up; 0 when all could. */
	int error() const
	{
		return error_;
	}
	/** Wake-ups so far. Readable without a system call. */
	std::uint64_t wakeups() const
	{
		return wakeups_.load(std::memory_order_relaxed);
	}
	/** Its time to wake up has come and it has not run since. Readable without a
	 * system call. */
	bool due() const
	{
		return ticks() > due_at_.load(std::memory_order_relaxed);
	}
	/** Delay from the programmed time to running, ns. After stop(). */
	const std::vector<std::int64_t> &lateness() const
	{
		return lateness_;
	}

      private:
	void run(const Setup &setup);

	std::atomic<std::uint64_t> wakeups_{0};
	std::atomic<std::uint64_t> due_at_{~0ULL};
	std::atomic<bool> started_{false};
	std::atomic<bool> stop_{false};
	int error_ = 0;
	std::vector<std::int64_t> lateness_;
	std::thread thread_;
};

} // namespace slice_test

#endif
