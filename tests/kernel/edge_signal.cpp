// SPDX-License-Identifier: MIT
// Signals: in a section, in a grant, with sections of their own, and fatal ones.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <ctime>

#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 20;

class EdgeSignal : public Edge
{
};

TEST_F(EdgeSignal, AHandlerRunsInsideTheGrantAndItsReturnEndsIt)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		std::uint32_t word = 0;
		const TrapHandler handler([&] { word = area.ctrl(); });
		const Counters before = Counters::of_this_thread();
		int inside = 0;
		for (int i = 0; i < rounds; ++i) {
			word = ~0U;
			ASSERT_TRUE(get_grant(area));
			trap();
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(sys_yield(), 0);
			inside += word == ctrl_granted;
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("handlers inside a grant", inside, counters);
		EXPECT_GE(inside, at_least(rounds));
		expect_about(counters, "ended_syscall", inside);
		EXPECT_EQ(counters["ended_yield"], 0);
	});
}

TEST_F(EdgeSignal, ARequestSurvivesAHandlerAndIsGranted)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		std::uint32_t word = 0;
		const TrapHandler handler([&] { word = area.ctrl(); });
		int survived = 0;
		int granted = 0;
		for (int i = 0; i < rounds; ++i) {
			// Just run, so not due for a while.
			const std::uint64_t wakeups = other_->wakeups();
			while (other_->wakeups() == wakeups) {
			}
			area.set_request(1);
			trap();
			if (area.ctrl() != ctrl_requested)
				continue;
			++survived;
			EXPECT_EQ(word, ctrl_requested) << "in the handler";
			const std::uint64_t until = patience();
			while (area.ctrl() == ctrl_requested && ticks() < until) {
			}
			granted += area.ctrl() == ctrl_granted;
			leave(area);
		}
		EXPECT_GE(survived, at_least(rounds));
		EXPECT_GE(granted, at_least(rounds)) << Counters::of_this_thread();
	});
}

// The kernel knows one byte: what the handler leaves behind is what the interrupted
// section finds.
TEST_F(EdgeSignal, ASectionInAHandlerTakesTheInterruptedOnesRequest)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		int granted = 0;
		int yielded = 0;
		const TrapHandler handler([&] {
			if (!get_grant(area))
				return;
			++granted;
			yielded += leave(area) == 1;
		});
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			area.set_request(1);
			trap();
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(leave(area), -1) << "nothing is left to do";
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("granted in a handler", granted, counters);
		EXPECT_GE(granted, at_least(rounds));
		EXPECT_GE(yielded, at_least(rounds));
		EXPECT_EQ(counters["ended_yield"], yielded);
	});
}

TEST_F(EdgeSignal, ASectionInAHandlerEndsTheGrantItRanIn)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		std::uint32_t word = 0;
		long gave_up = 0;
		const TrapHandler handler([&] {
			area.set_request(1);
			word = area.ctrl();
			gave_up = leave(area);
		});
		const Counters before = Counters::of_this_thread();
		int both = 0;
		int yielded = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			trap();
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			both += word == (ctrl_granted | ctrl_requested);
			yielded += gave_up == 1;
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("yields in a handler", yielded, counters);
		EXPECT_GE(both, at_least(rounds));
		EXPECT_GE(yielded, at_least(rounds));
		EXPECT_EQ(counters["ended_yield"], yielded);
	});
}

sigjmp_buf jump_target;

/** @return whether there was a grant to trap in */
bool trap_in_grant_and_jump(RseqView area, bool save_mask)
{
	// Before the grant: to save the mask is a system call.
	if (sigsetjmp(jump_target, save_mask) == 0) {
		if (!get_grant(area))
			return false;
		trap();
	}
	return true;
}

class EdgeSignalJump : public Edge, public testing::WithParamInterface<bool>
{
};

TEST_P(EdgeSignalJump, OutOfAHandlerEndsTheGrantOnlyBySystemCall)
{
	const bool save_mask = GetParam();
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const TrapHandler handler([] { siglongjmp(jump_target, 1); }, SA_NODEFER);
		const Counters before = Counters::of_this_thread();
		int live = 0;
		int yielded = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(trap_in_grant_and_jump(area, save_mask));
			live += area.granted() != 0;
			yielded += leave(area) == 1;
			EXPECT_EQ(area.ctrl(), ctrl_idle);
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("grants that went on", live, counters);
		EXPECT_EQ(counters["ended_yield"], yielded);
		if (save_mask) {
			EXPECT_EQ(live, 0);
			EXPECT_EQ(yielded, 0);
			expect_about(counters, "ended_syscall", rounds);
		} else {
			EXPECT_GE(live, at_least(rounds));
			EXPECT_GE(yielded, at_least(rounds));
		}
	});
}

INSTANTIATE_TEST_SUITE_P(Mask, EdgeSignalJump, testing::Values(false, true),
                         [](const auto &info) { return info.param ? "Restored" : "Left"; });

volatile sig_atomic_t handled_idle, handled_requested, handled_granted, handled_other;
RseqView *area_of_handler;

void sort_word(int)
{
	switch (area_of_handler->ctrl()) {
	case ctrl_idle:
		handled_idle = handled_idle + 1;
		break;
	case ctrl_requested:
		handled_requested = handled_requested + 1;
		break;
	case ctrl_granted:
		handled_granted = handled_granted + 1;
		break;
	default:
		handled_other = handled_other + 1;
	}
}

// A timer on the thread's own CPU time expires by task work that the tick asks for, on
// PREEMPT_RT too. The tick also asks for a reschedule: the two meet.
TEST_F(EdgeSignal, OneThatComesWithARescheduleEndsTheGrant)
{
	struct sigaction action = {};
	action.sa_handler = sort_word;
	ASSERT_EQ(sigaction(SIGUSR2, &action, nullptr), 0);
	// One grant in ten meets a tick.
	other_.reset();
	Periodic::Setup setup;
	setup.period = 903 * us;
	setup.policy = eager(200 * us);
	other_ = std::make_unique<Periodic>(setup);
	handled_idle = handled_requested = handled_granted = handled_other = 0;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		area_of_handler = &area;
		sigevent event{};
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_signo = SIGUSR2;
		event._sigev_un._tid = thread_id();
		timer_t timer{};
		ASSERT_EQ(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer), 0);
		const itimerspec every{{0, 500 * us}, {0, 500 * us}};
		ASSERT_EQ(timer_settime(timer, 0, &every, nullptr), 0);
		const Counters before = Counters::of_this_thread();
		const std::uint64_t end = ticks() + to_ticks(150 * ms);
		while (ticks() < end)
			if (!area.ctrl())
				area.set_request(1);
		timer_delete(timer);
		area.set_request(0);
		const Counters counters = Counters::of_this_thread() - before;
		report("signals that found 0/0", handled_idle, counters);
		std::printf("1/0 %d, 0/1 %d\n", int(handled_requested), int(handled_granted));
		if (deterministic()) {
			EXPECT_GT(counters["granted"], 50);
			EXPECT_GT(counters["ended_work"], 0);
		}
		// It ends before the handler starts.
		EXPECT_GE(handled_idle, counters["ended_work"]);
		EXPECT_GT(handled_idle + handled_requested, 0);
		EXPECT_EQ(handled_other, 0);
		EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
		EXPECT_EQ(counters["granted"], counters.ended());
	});
}

TEST_F(EdgeSignal, AFatalOneIsCountedAsTheEnd)
{
	constexpr int children = 10;
	const Counters before = Counters::of_machine();
	for (int i = 0; i < children; ++i)
		EXPECT_EQ(checked_child([] {
				  RseqArea area;
				  ASSERT_EQ(opt_in(area), 0);
				  ASSERT_TRUE(get_grant(area));
				  asm volatile("ud2");
			  }),
		          -SIGILL);
	const Counters counters = Counters::of_machine() - before;
	expect_about(counters, "granted", children);
	expect_about(counters, "ended_work", children);
	EXPECT_EQ(counters["granted"], counters.ended());
}

} // namespace
} // namespace slice_test
