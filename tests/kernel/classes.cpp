// SPDX-License-Identifier: MIT
// Who may be extended and who may be delayed: real-time, deadline and idle
// threads, boosted ones, groups. One CPU.
#include "contest.hpp"
#include "fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <pthread.h>

namespace slice_test
{
namespace
{

const std::int64_t duration = deterministic() ? 40 * ms : 300 * ms;

class Classes : public OneCpu
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(need::real_time());
		prepare("100");
	}

	/** A wake-up that no extension may delay. */
	void never_delayed(const Periodic::Setup &other)
	{
		const Contest base = contest(Demand::none, other, duration);
		const Contest extended = contest(Demand::always, other, duration);
		describe("without requests", base);
		describe("requesting always", extended);
		ASSERT_EQ(base.error, 0);
		ASSERT_EQ(extended.error, 0);
		const auto wakeups = static_cast<std::int64_t>(extended.lateness.size());
		ASSERT_GT(wakeups, duration / other.period / 2);
		EXPECT_GE(extended.counters["denied_nonfair"] + extended.counters["ended_nonfair"],
		          wakeups * 9 / 10);
		// Kernel threads are ordinary threads and may cause a grant of their own.
		EXPECT_LE(extended.counters["granted"], wakeups / (preempt_rt() ? 2 : 4));
		const std::int64_t margin = deterministic() ? 2 * us : 50 * us;
		EXPECT_LE(extended.median_lateness(), base.median_lateness() + margin);
		if (deterministic()) {
			EXPECT_LE(extended.worst_lateness(), base.worst_lateness() + 5 * us);
		}
	}
};

TEST_F(Classes, ARealTimeWakeupIsNotDelayed)
{
	Periodic::Setup other;
	other.policy = fifo(1);
	never_delayed(other);
}

TEST_F(Classes, ADeadlineWakeupIsNotDelayed)
{
	Periodic::Setup other;
	other.policy = deadline(500 * us, 2 * ms);
	other.period = 2 * ms + 3 * us;
	// The kernel admits deadline threads on all CPUs of their domain or none.
	if (allowed_cpus().size() > 1)
		GTEST_SKIP() << "a deadline thread cannot be pinned to one of several CPUs";
	never_delayed(other);
}

// The ordinary thread starts the grant; the real-time one arrives 40 us into it.
TEST_F(Classes, ARealTimeArrivalEndsALiveGrant)
{
	Periodic::Setup ordinary;
	ordinary.first = now_ns() + 20 * ms;
	Periodic::Setup urgent = ordinary;
	urgent.first = ordinary.first + 40 * us;
	urgent.policy = fifo(1);
	Periodic waiting(ordinary);
	const Contest base = contest(Demand::none, urgent, duration);
	urgent.first +=
		(now_ns() - urgent.first) / urgent.period * urgent.period + 20 * urgent.period;
	const Contest extended = contest(Demand::always, urgent, duration);
	describe("without requests", base);
	describe("requesting always", extended);
	ASSERT_EQ(extended.error, 0);
	EXPECT_GT(extended.counters["granted"], 10);
	EXPECT_GT(extended.counters["ended_nonfair"], 10);
	const std::int64_t margin = deterministic() ? 2 * us : 50 * us;
	EXPECT_LE(extended.median_lateness(), base.median_lateness() + margin);
	// 40 us less the way in. Grants of other wake-ups run to their end.
	const auto cut_short = std::count_if(extended.used.begin(), extended.used.end(),
	                                     [](std::int64_t used) { return used < 45 * us; });
	EXPECT_GE(cut_short, extended.counters["ended_nonfair"] * 9 / 10);
}

TEST_F(Classes, AnIdleThreadIsDenied)
{
	const Contest result = contest(Demand::always, {}, duration, idle_policy());
	describe("SCHED_IDLE", result);
	ASSERT_EQ(result.error, 0);
	EXPECT_EQ(result.counters["granted"], 0);
	EXPECT_GT(result.counters["denied_class"], 30);
}

TEST_F(Classes, ARealTimeThreadIsDenied)
{
	Periodic::Setup other;
	other.policy = fifo(20);
	const Contest result = contest(Demand::always, other, duration, fifo(10));
	describe("SCHED_FIFO", result);
	ASSERT_EQ(result.error, 0);
	EXPECT_EQ(result.counters["granted"], 0);
	EXPECT_GT(result.counters["denied_class"] + result.counters["denied_nonfair"], 30);
}

// An ordinary thread that holds a lock a real-time thread waits for runs at that
// thread's priority: it is none of those an extension is for.
TEST_F(Classes, ABoostedThreadIsDenied)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	ASSERT_EQ(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
	pthread_mutex_t mutex;
	ASSERT_EQ(pthread_mutex_init(&mutex, &attributes), 0);

	Periodic::Setup setup;
	setup.policy = fifo(20);
	Periodic other(setup);
	std::atomic<bool> held{false};
	std::thread booster([&] {
		pin(test_cpu());
		EXPECT_EQ(apply(fifo(10)), 0);
		while (!held.load())
			sleep_ns(ms);
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		pthread_mutex_lock(&mutex);
		held = true;
		// The booster preempts when it wakes up, blocks on the mutex and so
		// lends its priority.
		sleep_ns(10 * ms);
		const Counters before = Counters::of_this_thread();
		const std::uint64_t end = ticks() + to_ticks(40 * ms);
		while (ticks() < end)
			area.set_request(1);
		area.set_request(0);
		const Counters counters = Counters::of_this_thread() - before;
		pthread_mutex_unlock(&mutex);
		report("boosted", counters["requests"], counters);
		EXPECT_EQ(counters["granted"], 0);
		EXPECT_GT(counters["denied_class"] + counters["denied_nonfair"], 20);
	});
	booster.join();
	pthread_mutex_destroy(&mutex);
	pthread_mutexattr_destroy(&attributes);
}

/** A thread that spins with the request always set, inside a control group. */
Counters spin_in(const ControlGroup &group, std::int64_t time)
{
	Counters counters;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		ASSERT_EQ(group.enter(thread_id()), 0);
		const Counters before = Counters::of_this_thread();
		const std::uint64_t end = ticks() + to_ticks(time);
		while (ticks() < end)
			area.set_request(1);
		area.set_request(0);
		counters = Counters::of_this_thread() - before;
	});
	return counters;
}

TEST_F(Classes, AThreadInAnOrdinaryGroupIsGranted)
{
	const ControlGroup group("slice-ext-test-plain");
	SLICE_EXT_NEEDS(group.problem());
	Periodic other({});
	const Counters counters = spin_in(group, duration);
	report("granted in a group", counters["granted"], counters);
	EXPECT_GT(counters["granted"], 10);
}

TEST_F(Classes, AThreadInAnIdleGroupIsDenied)
{
	const ControlGroup group("slice-ext-test-idle");
	SLICE_EXT_NEEDS(group.problem());
	ASSERT_EQ(group.set("cpu.idle", "1"), 0);
	Periodic other({});
	const Counters counters = spin_in(group, duration);
	report("idle group", counters["requests"], counters);
	EXPECT_EQ(counters["granted"], 0);
	EXPECT_GT(counters["denied_class"], 30);
}

// Nobody waits here: the reschedule that ends the group's turn must not be
// put off.
TEST_F(Classes, AGroupOutOfBandwidthIsDenied)
{
	const ControlGroup group("slice-ext-test-quota");
	SLICE_EXT_NEEDS(group.problem());
	ASSERT_EQ(group.set("cpu.max", "2000 10000"), 0);
	const Counters counters = spin_in(group, 2 * duration);
	report("quota", counters["requests"], counters);
	EXPECT_GT(counters["denied_bandwidth"], 2);
}

} // namespace
} // namespace slice_test
