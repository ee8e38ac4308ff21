// SPDX-License-Identifier: MIT
#include "demo/sleeper.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace slice_ext::tool
{

namespace
{

// sched_setattr(2), first version of its structure; the C library has neither.
struct SchedAttributes {
	std::uint32_t size;
	std::uint32_t policy;
	std::uint64_t flags;
	std::int32_t nice;
	std::uint32_t priority;
	std::uint64_t runtime_ns; // of an ordinary thread: its slice, since Linux 6.12
	std::uint64_t deadline_ns;
	std::uint64_t period_ns;
};

// Best effort: older kernels ignore it, and then there is less wake-up preemption to see.
void ask_for_short_slice()
{
	constexpr std::uint64_t kShortestSliceNs = 100000;
	SchedAttributes attributes = {};
	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0)
		return;
	attributes.size = sizeof attributes;
	attributes.runtime_ns = kShortestSliceNs;
	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

} // namespace

void sleep_and_wake(const BusyWork &work, std::uint32_t index, const std::atomic<bool> &stop)
{
	constexpr long kSleepUs = 457;
	constexpr double kWorkUs = 5;
	prctl(PR_SET_TIMERSLACK, 1);
	ask_for_short_slice();
	const timespec pause = {0, (kSleepUs + 27 * static_cast<long>(index % 100)) * 1000};
	const std::uint64_t steps = work.steps_for_us(kWorkUs);
	while (!stop.load(std::memory_order_relaxed)) {
		BusyWork::run(steps);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
	}
}

} // namespace slice_ext::tool
