// SPDX-License-Identifier: MIT
// Grants between ordinary threads: that they happen, how they end, what they
// leave behind. One CPU.
#include "child.hpp"
#include "counters.hpp"
#include "fixture.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <ctime>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 40;

class Grant : public OneCpu
{
      protected:
	void SetUp() override
	{
		prepare("100");
	}

	/** How many of @p due other threads must have run at the end of a grant. On
	 * PREEMPT_RT it is ksoftirqd that gets the CPU, and the thread it wakes may
	 * have to wait for a turn of its own. */
	static std::int64_t at_least_ran(std::int64_t due)
	{
		return preempt_rt() ? due / 2 : at_least(due);
	}
};

TEST_F(Grant, HappensAndIsCounted)
{
	Periodic other({});
	int seen = 0;
	Counters counters;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			if (!until_granted(area, patience()).granted)
				continue;
			++seen;
			leave(area);
		}
		counters = Counters::of_this_thread() - before;
	});
	report("seen", seen, counters);
	for (const char *name : counter_names)
		EXPECT_FALSE(counters.missing(name)) << name;
	EXPECT_EQ(seen, rounds);
	if (deterministic()) {
		EXPECT_EQ(counters["granted"], seen);
	} else {
		EXPECT_GE(counters["granted"], seen);
	}
	EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
	EXPECT_EQ(counters["granted"], counters.ended());
}

TEST_F(Grant, YieldEndsItAndTheNextThreadRuns)
{
	Periodic other({});
	int ones = 0;
	int due = 0;
	int ran = 0;
	Counters counters;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < rounds; ++i) {
			if (!until_granted(area, patience()).granted)
				continue;
			const bool was_due = other.due();
			area.set_request(0);
			EXPECT_TRUE(area.ctrl() == ctrl_granted || area.ctrl() == ctrl_idle);
			const long gave_up = sys_yield();
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			ones += gave_up == 1;
			due += gave_up == 1 && was_due;
			ran += gave_up == 1 && was_due && !other.due();
			EXPECT_EQ(sys_yield(), 0) << "a second one has nothing to give up";
		}
		counters = Counters::of_this_thread();
	});
	report("yields", ones, counters);
	EXPECT_GE(ones, at_least(rounds));
	EXPECT_EQ(counters["ended_yield"], ones);
	EXPECT_GT(due, rounds / 4);
	EXPECT_GE(ran, at_least_ran(due)) << "the CPU was not given to the one waiting";
}

TEST_F(Grant, AnyOtherSyscallEndsItAndTheNextThreadRuns)
{
	Periodic other({});
	int granted = 0;
	int due = 0;
	int ran = 0;
	Counters counters;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			if (!until_granted(area, patience()).granted)
				continue;
			++granted;
			const bool was_due = other.due();
			const long pid = syscall(SYS_getpid);
			const std::uint32_t word = area.ctrl();
			due += was_due;
			ran += was_due && !other.due();
			EXPECT_EQ(pid, getpid()) << "the call itself still works";
			EXPECT_EQ(word, ctrl_idle);
			EXPECT_EQ(sys_yield(), 0);
		}
		counters = Counters::of_this_thread() - before;
	});
	report("ended by getpid", granted, counters);
	EXPECT_GE(granted, at_least(rounds));
	EXPECT_GE(counters["ended_syscall"], at_least(granted));
	EXPECT_EQ(counters["ended_yield"], 0);
	EXPECT_GT(due, rounds / 4);
	EXPECT_GE(ran, at_least_ran(due)) << "the CPU was not given to the one waiting";
}

TEST_F(Grant, ASyscallWithTheRequestOnlyCostsNothing)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		int kept = 0;
		for (int i = 0; i < 100; ++i) {
			area.set_request(1);
			syscall(SYS_getppid);
			kept += area.ctrl() == ctrl_requested;
		}
		area.set_request(0);
		EXPECT_GE(kept, 95) << "a call outside a grant took the request away";
	});
}

TEST_F(Grant, NoneWithoutARequest)
{
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const std::uint64_t end = ticks() + to_ticks(60 * ms);
		while (ticks() < end)
			ASSERT_EQ(area.ctrl(), ctrl_idle);
		const Counters counters = Counters::of_this_thread();
		EXPECT_EQ(counters["requests"], 0);
		EXPECT_EQ(counters["granted"], 0);
	});
	other.stop();
	EXPECT_GT(other.lateness().size(), 30U) << "nobody asked for the CPU";
}

// The request is withdrawn a moment before each wake-up that would meet it.
TEST_F(Grant, NoneAfterTheRequestWasCleared)
{
	constexpr std::int64_t period = 2 * ms + 3 * us;
	Periodic::Setup setup;
	setup.period = period;
	setup.first = now_ns() + 20 * ms;
	Periodic other(setup);
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		// Ticks at which the other thread wakes up, by the same clock it uses.
		const std::int64_t lead = setup.first - now_ns();
		std::uint64_t wake = ticks() + to_ticks(lead);
		Counters counters;
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < 30; ++i, wake += to_ticks(period)) {
			area.set_request(1);
			area.set_request(0);
			while (ticks() < wake + to_ticks(500 * us))
				ASSERT_EQ(area.granted(), 0);
		}
		counters = Counters::of_this_thread() - before;
		EXPECT_EQ(counters["granted"], 0) << counters;
	});
	other.stop();
	EXPECT_GT(other.lateness().size(), 20U) << "nobody asked for the CPU";
}

TEST_F(Grant, NoneWithoutOptingIn)
{
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(area.enroll(), 0);
		area.set_request(1);
		const std::uint64_t end = ticks() + to_ticks(60 * ms);
		while (ticks() < end)
			ASSERT_EQ(area.ctrl(), ctrl_requested) << "the word is not the kernel's";
		const Counters counters = Counters::of_this_thread();
		EXPECT_EQ(counters["requests"], 0);
		EXPECT_EQ(counters["granted"], 0);
	});
	other.stop();
	EXPECT_GT(other.lateness().size(), 30U) << "nobody asked for the CPU";
}

// Refused, switched out, back: 0/0 tells the user that nothing is left to do.
TEST_F(Grant, ASwitchZeroesTheWord)
{
	ASSERT_EQ(sysctl_->set("0"), 0);
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		int zeroed = 0;
		for (int i = 0; i < rounds; ++i) {
			const std::uint64_t wakeups = other.wakeups();
			area.set_request(1);
			const std::uint64_t until = patience();
			while (other.wakeups() == wakeups && ticks() < until) {
			}
			zeroed += area.ctrl() == ctrl_idle;
			area.set_request(0);
		}
		EXPECT_EQ(zeroed, rounds);
		const Counters counters = Counters::of_this_thread();
		EXPECT_EQ(counters["granted"], 0);
		EXPECT_GE(counters["denied_off"], rounds);
	});
}

TEST_F(Grant, BatchThreadsAreGrantedToo)
{
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		ASSERT_EQ(apply(batch()), 0);
		int granted = 0;
		for (int i = 0; i < rounds; ++i) {
			granted += until_granted(area, patience()).granted;
			leave(area);
		}
		EXPECT_GE(granted, at_least(rounds)) << Counters::of_this_thread();
	});
}

// Two sleepers; the second wakes up 25 us into the grant that the first caused.
// On PREEMPT_RT it only adds to what ksoftirqd has to do and asks for nothing, so
// there the further requests are those of the tick, which the period lets fall
// into one grant in ten.
TEST_F(Grant, AFurtherFairRequestKeepsIt)
{
	Periodic::Setup first;
	first.period = 903 * us;
	first.first = now_ns() + 20 * ms;
	first.policy = eager(200 * us);
	Periodic::Setup second_one = first;
	second_one.first = first.first + 25 * us;
	second_one.policy = eager(100 * us);
	Periodic one(first);
	Periodic two(second_one);
	std::vector<std::int64_t> used;
	Counters counters;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			const Wait wait = until_granted(area, patience());
			if (!wait.granted)
				continue;
			const Stay stay = until_ended(area, wait.seen, to_ticks(second));
			ASSERT_TRUE(stay.ended);
			used.push_back(stay.used);
			leave(area);
		}
		counters = Counters::of_this_thread() - before;
	});
	report("stays", static_cast<std::int64_t>(used.size()), counters);
	EXPECT_GT(counters["kept"], 0);
	if (!preempt_rt()) {
		EXPECT_GE(counters["kept"], at_least(rounds) / 2);
	}
	EXPECT_GE(counters["ended_expired"], at_least(counters["granted"]));
	// Cut short by the second wake-up, the median would be near 20 us.
	std::printf("used: median %.1f us\n", static_cast<double>(median(used)) / us);
	EXPECT_GT(median(used), 90 * us);
	if (deterministic()) {
		EXPECT_LT(median(used), 103 * us);
	}
}

// A thread that asks again inside the grant (1/1) and after it gets no second
// one before the thread that waits has run.
TEST_F(Grant, OnlyOnePerStayOnTheCpu)
{
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		int stays = 0;
		int due = 0;
		int ran_between = 0;
		for (int i = 0; i < rounds; ++i) {
			const Wait wait = until_granted(area, patience());
			if (!wait.granted)
				continue;
			const bool was_due = other.due();
			area.set_request(1);
			// Over before the store: that was an ordinary request.
			if (!area.granted())
				continue;
			++stays;
			due += was_due;
			while (area.granted()) {
			}
			// Zero: it has been through the scheduler.
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			ran_between += was_due && !other.due();
		}
		EXPECT_GE(stays, at_least(rounds));
		EXPECT_GT(due, rounds / 4);
		EXPECT_GE(ran_between, at_least_ran(due));
		const Counters counters = Counters::of_this_thread();
		EXPECT_GE(counters["ended_expired"], at_least(stays)) << counters;
	});
}

volatile sig_atomic_t word_in_handler;
RseqView *area_of_handler;

void note_word(int)
{
	word_in_handler = static_cast<sig_atomic_t>(area_of_handler->ctrl());
}

// A signal handler may run inside a grant, but not return from one: its
// sigreturn is a system call.
TEST_F(Grant, DoesNotSurviveASignal)
{
	struct sigaction action = {};
	action.sa_handler = note_word;
	ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
	Periodic::Setup setup;
	setup.first = now_ns() + 20 * ms;
	Periodic other(setup);
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		area_of_handler = &area;
		sigevent event{};
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_signo = SIGUSR2;
		event._sigev_un._tid = thread_id();
		timer_t timer{};
		ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
		// 30 us behind each wake-up of the other thread.
		const std::int64_t at = setup.first + 30 * us;
		const itimerspec every{
			{0, setup.period},
			{static_cast<time_t>(at / second), static_cast<long>(at % second)}};
		ASSERT_EQ(timer_settime(timer, TIMER_ABSTIME, &every, nullptr), 0);
		const Counters before = Counters::of_this_thread();
		int granted = 0;
		int signalled = 0;
		for (int i = 0; i < rounds; ++i) {
			word_in_handler = -1;
			if (!until_granted(area, patience()).granted)
				continue;
			++granted;
			const std::uint64_t until = patience();
			while (area.granted() && ticks() < until) {
			}
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			signalled += word_in_handler != -1;
		}
		timer_delete(timer);
		const Counters counters = Counters::of_this_thread() - before;
		report("granted", granted, counters);
		EXPECT_GE(granted, at_least(rounds) / 2);
		EXPECT_GT(signalled, 0) << "no signal met a grant";
		// On PREEMPT_RT the signal comes from ksoftirqd, which has to wait itself.
		if (!preempt_rt()) {
			EXPECT_GT(counters["ended_work"] + counters["ended_syscall"], 0);
		}
		EXPECT_EQ(counters["granted"], counters.ended());
	});
}

// Other work on the way out (here a signal due at the same moment) means no.
TEST_F(Grant, DeniedWhenOtherWorkIsPending)
{
	if (preempt_rt()) {
		GTEST_SKIP()
			<< "the signal cannot come at the same moment: timers expire in a thread";
	}
	struct sigaction action = {};
	action.sa_handler = [](int) {};
	ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
	Periodic::Setup setup;
	setup.first = now_ns() + 20 * ms;
	Periodic other(setup);
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		sigevent event{};
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_signo = SIGUSR2;
		event._sigev_un._tid = thread_id();
		timer_t timer{};
		ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
		const itimerspec every{{0, setup.period},
		                       {static_cast<time_t>(setup.first / second),
		                        static_cast<long>(setup.first % second)}};
		ASSERT_EQ(timer_settime(timer, TIMER_ABSTIME, &every, nullptr), 0);
		const Counters before = Counters::of_this_thread();
		const std::uint64_t end = ticks() + to_ticks(80 * ms);
		while (ticks() < end)
			area.set_request(1);
		timer_delete(timer);
		const Counters counters = Counters::of_this_thread() - before;
		report("denied_work", counters["denied_work"], counters);
		EXPECT_GT(counters["denied_work"], 0);
		EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
	});
}

/** Requests until the other thread's wake-up has been granted often enough to be
 * killed inside a grant: the signal comes 30 us behind each wake-up. */
[[noreturn]] void request_until_killed(const Periodic::Setup &setup)
{
	pin(test_cpu());
	RseqArea area;
	if (opt_in(area) != 0)
		_exit(1);
	sigevent event{};
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGKILL;
	timer_t timer{};
	const std::int64_t at = now_ns() + 10 * ms;
	const std::int64_t kill_at =
		setup.first + (at - setup.first) / setup.period * setup.period + 30 * us;
	itimerspec once{};
	once.it_value = {static_cast<time_t>(kill_at / second),
	                 static_cast<long>(kill_at % second)};
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	    timer_settime(timer, TIMER_ABSTIME, &once, nullptr) != 0)
		_exit(2);
	for (;;)
		area.set_request(1);
}

TEST_F(Grant, AKilledThreadLeavesNothingOpen)
{
	Periodic::Setup setup;
	setup.first = now_ns() + 20 * ms;
	Periodic other(setup);
	const Counters before = Counters::of_machine();
	for (int i = 0; i < 5; ++i) {
		EXPECT_EQ(in_child([&setup]() -> int { request_until_killed(setup); }), -SIGKILL);
	}
	const Counters counters = Counters::of_machine() - before;
	report("five killed; granted", counters["granted"], counters);
	EXPECT_GT(counters["granted"], 20);
	EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
	EXPECT_EQ(counters["granted"], counters.ended());
}

// The thread may be inside the kernel, in a page fault, when its time is up.
TEST_F(Grant, EndsInsidePageFaults)
{
	constexpr std::size_t size = 8UL << 20;
	constexpr std::size_t page = 4096;
	ASSERT_EQ(sysctl_->set("30"), 0);
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		auto *memory = static_cast<unsigned char *>(mmap(
			nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		ASSERT_NE(memory, MAP_FAILED);
		madvise(memory, size, MADV_NOHUGEPAGE);
		const Counters before = Counters::of_this_thread();
		for (int pass = 0; pass < 3; ++pass) {
			for (std::size_t at = 0; at < size; at += page) {
				area.set_request(1);
				memory[at] = 1;
				spin(3 * us);
			}
			madvise(memory, size, MADV_DONTNEED);
		}
		area.set_request(0);
		munmap(memory, size);
		const Counters counters = Counters::of_this_thread() - before;
		report("granted", counters["granted"], counters);
		EXPECT_GT(counters["granted"], 0);
		EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
		EXPECT_EQ(counters["granted"], counters.ended());
		EXPECT_EQ(area.ctrl(), ctrl_idle);
	});
}

TEST_F(Grant, TheMachinesAccountAgrees)
{
	const Counters machine_before = Counters::of_machine();
	const Counters cpu_before = Counters::of_machine(test_cpu());
	Periodic other({});
	Counters mine;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < rounds; ++i) {
			until_granted(area, patience());
			if (i % 3 == 0)
				leave(area);
			else if (i % 3 == 1)
				syscall(SYS_getpid);
			else
				while (area.granted()) {
				}
		}
		area.set_request(0);
		mine = Counters::of_this_thread();
	});
	other.stop();
	const Counters machine = Counters::of_machine() - machine_before;
	const Counters cpu = Counters::of_machine(test_cpu()) - cpu_before;
	EXPECT_GE(mine["granted"], at_least(rounds));
	for (const char *name : counter_names) {
		EXPECT_FALSE(machine.missing(name)) << name;
		EXPECT_EQ(cpu[name], mine[name]) << name << " of CPU " << test_cpu();
		EXPECT_EQ(machine[name], cpu[name]) << name << ": another CPU counted";
	}
	EXPECT_EQ(machine["requests"], machine["granted"] + machine.denied());
	EXPECT_EQ(machine["granted"], machine.ended());
}

} // namespace
} // namespace slice_test
