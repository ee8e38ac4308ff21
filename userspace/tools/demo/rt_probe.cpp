// SPDX-License-Identifier: MIT
#include "demo/rt_probe.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace slice_ext::tool
{

namespace
{

constexpr std::int64_t kNsPerSecond = 1000000000;

std::int64_t to_ns(const timespec &time)
{
	return static_cast<std::int64_t>(time.tv_sec) * kNsPerSecond + time.tv_nsec;
}

std::int64_t now_ns()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return to_ns(time);
}

} // namespace

void probe_wakeups(unsigned interval_us, const std::atomic<bool> &stop, Histogram &latency,
                   const std::function<void(std::uint64_t late_ns)> &on_wake)
{
	const std::int64_t interval = static_cast<std::int64_t>(interval_us) * 1000;
	std::int64_t next = now_ns() + interval;
	while (!stop.load(std::memory_order_relaxed)) {
		const timespec until = {static_cast<time_t>(next / kNsPerSecond),
		                        static_cast<long>(next % kNsPerSecond)};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
		}
		const std::int64_t now = now_ns();
		const auto late = static_cast<std::uint64_t>(now > next ? now - next : 0);
		latency.record(late);
		on_wake(late);
		next += interval;
		// After a stall longer than an interval: go on from now, in step, as cyclictest
		// does.
		while (next <= now)
			next += interval;
	}
}

bool lock_memory()
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

} // namespace slice_ext::tool
