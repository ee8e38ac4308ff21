// SPDX-License-Identifier: MIT
#include "periodic.hpp"

#include <ctime>

#include <sys/prctl.h>

namespace slice_test
{

Periodic::Periodic(const Setup &setup)
{
	ticks_per_ns();
	lateness_.reserve(100'000);
	thread_ = std::thread([this, setup] { run(setup); });
	while (!started_.load(std::memory_order_acquire))
		sleep_ns(100 * us);
}

void Periodic::stop()
{
	stop_.store(true, std::memory_order_relaxed);
	if (thread_.joinable())
		thread_.join();
}

void Periodic::run(const Setup &setup)
{
	error_ = pin(setup.cpu);
	prctl(PR_SET_TIMERSLACK, 1UL);
	if (!error_)
		error_ = apply(setup.policy);
	std::int64_t next = setup.first ? setup.first : now_ns() + setup.period;
	started_.store(true, std::memory_order_release);
	if (error_)
		return;
	while (!stop_.load(std::memory_order_relaxed)) {
		due_at_.store(ticks() + to_ticks(next - now_ns()), std::memory_order_relaxed);
		const timespec at{static_cast<time_t>(next / second),
		                  static_cast<long>(next % second)};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
		}
		const std::int64_t now = now_ns();
		due_at_.store(~0ULL, std::memory_order_relaxed);
		wakeups_.fetch_add(1, std::memory_order_relaxed);
		if (lateness_.size() < lateness_.capacity())
			lateness_.push_back(now - next);
		spin(setup.busy);
		next += setup.period;
		// A thread that fell behind keeps its phase and drops the missed periods.
		if (const std::int64_t behind = now_ns() - next; behind > 0)
			next += (behind / setup.period + 1) * setup.period;
	}
}

} // namespace slice_test
