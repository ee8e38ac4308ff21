// SPDX-License-Identifier: MIT
/**
 * @file subject.hpp
 * A thread that asks for extensions without pause, to be changed from another CPU meanwhile.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_SUBJECT_HPP
#define SLICE_EXT_TESTS_KERNEL_SUBJECT_HPP

#include "counters.hpp"
#include "requester.hpp"

#include <atomic>
#include <cstdint>
#include <thread>

namespace slice_test
{

class Subject
{
      public:
	/** Returns when the thread asks. */
	explicit Subject(int cpu)
	{
		thread_ = std::thread([this, cpu] {
			pin(cpu);
			RseqArea area;
			error_ = opt_in(area);
			tid_ = thread_id();
			area_ = &area;
			ready_ = true;
			std::uint64_t rounds = 0;
			while (!stop_.load(std::memory_order_relaxed)) {
				area.set_request(1);
				rounds_.store(++rounds, std::memory_order_relaxed);
			}
			area.set_request(0);
			area_ = nullptr;
			// The account is complete only after the call that reads it has ended
			// what was left.
			Counters::of_this_thread();
			counters_ = Counters::of_this_thread();
		});
		while (!ready_)
			sleep_ns(ms);
	}
	~Subject()
	{
		stop();
	}
	Subject(const Subject &) = delete;
	Subject &operator=(const Subject &) = delete;

	void stop()
	{
		stop_ = true;
		if (thread_.joinable())
			thread_.join();
	}

	int error() const
	{
		return error_;
	}
	pid_t tid() const
	{
		return tid_;
	}
	/** Whether an extension is running, as seen from another CPU: true a moment ago. */
	bool granted() const
	{
		const RseqArea *area = area_;
		return area && area->granted();
	}
	/** Waits, spinning, until one is. */
	bool wait_granted(std::int64_t timeout) const
	{
		const std::int64_t end = now_ns() + timeout;
		while (!granted())
			if (now_ns() > end)
				return false;
		return true;
	}
	/** Waits until the thread has run on. */
	bool wait_progress(std::int64_t timeout) const
	{
		const std::uint64_t before = rounds_;
		const std::int64_t end = now_ns() + timeout;
		while (rounds_ <= before + 1) {
			if (now_ns() > end)
				return false;
			sleep_ns(ms);
		}
		return true;
	}
	/** Its account. After stop(). */
	const Counters &counters() const
	{
		return counters_;
	}

      private:
	std::atomic<bool> ready_{false};
	std::atomic<bool> stop_{false};
	std::atomic<const RseqArea *> area_{nullptr};
	std::atomic<pid_t> tid_{0};
	std::atomic<int> error_{0};
	std::atomic<std::uint64_t> rounds_{0};
	Counters counters_;
	std::thread thread_;
};

} // namespace slice_test

#endif
