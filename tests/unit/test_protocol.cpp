// SPDX-License-Identifier: MIT
// Sections of an enabled thread against a simulated kernel.
#include "simulated.hpp"

#include <slice_ext/slice_ext.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace
{

class Protocol : public testing::Test
{
      protected:
	Protocol()
	{
		kernel.libc_registers(33, 33);
		EXPECT_EQ(slice_ext_enable(), 0);
		kernel.calls.clear();
		kernel.yields_outside = 0;
	}

	const slice_ext_abi_rseq &area() const
	{
		return kernel.libc_memory;
	}

	void expect_idle() const
	{
		EXPECT_EQ(area().request, 0);
		EXPECT_EQ(area().granted, 0);
		EXPECT_EQ(slice_ext_self.depth, 0u);
	}

	Simulated kernel;
};

TEST_F(Protocol, UndisturbedSectionMakesNoSystemCall)
{
	slice_ext_enter();
	EXPECT_EQ(area().request, 1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
	expect_idle();
	EXPECT_TRUE(kernel.calls.empty());
}

TEST_F(Protocol, GrantedSectionYieldsOnce)
{
	slice_ext_enter();
	ASSERT_TRUE(kernel.grant());
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_YIELDED);
	expect_idle();
	EXPECT_EQ(kernel.yields_in_grant, 1u);
	EXPECT_EQ(kernel.calls.size(), 1u);
}

TEST_F(Protocol, GrantThatEndedEarlyIsNotYielded)
{
	slice_ext_enter();
	ASSERT_TRUE(kernel.grant());
	kernel.end_grant();
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_ENDED);
	expect_idle();
	EXPECT_TRUE(kernel.calls.empty());
}

TEST_F(Protocol, RefusedSectionThatLostTheCpuSaysSo)
{
	slice_ext_enter();
	kernel.switch_out();
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_ENDED);
	expect_idle();
	EXPECT_TRUE(kernel.calls.empty());
}

TEST_F(Protocol, GrantThatEndsBeforeTheYieldArrivesIsHarmless)
{
	slice_ext_enter();
	// The byte as it was read, in a kernel that has ended the grant since.
	kernel.libc_memory.request = 0;
	kernel.libc_memory.granted = 1;
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_ENDED);
	EXPECT_EQ(kernel.yields_outside, 1u);
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

TEST_F(Protocol, YieldRefusedBySandboxSetUpLater)
{
	slice_ext_enter();
	ASSERT_TRUE(kernel.grant());
	kernel.deny_yield = EPERM;
	errno = 4711;
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_ENDED);
	EXPECT_EQ(errno, 4711);
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

TEST_F(Protocol, OutermostSectionDecides)
{
	slice_ext_enter();
	slice_ext_enter();
	slice_ext_enter();
	EXPECT_EQ(slice_ext_self.depth, 3u);
	ASSERT_TRUE(kernel.grant());
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_NESTED);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_NESTED);
	EXPECT_EQ(area().granted, 1);
	EXPECT_EQ(kernel.yields_in_grant, 0u);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_YIELDED);
	expect_idle();
}

TEST_F(Protocol, NestedSectionKeepsTheOuterRequest)
{
	slice_ext_enter();
	slice_ext_enter();
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_NESTED);
	EXPECT_EQ(area().request, 1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
}

TEST_F(Protocol, NestedSectionDoesNotAskAgainInsideAGrant)
{
	slice_ext_enter();
	ASSERT_TRUE(kernel.grant());
	slice_ext_enter();
	// 1/1 is a violation of the protocol that 7.x can answer with SIGSEGV.
	EXPECT_EQ(area().request, 0);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_NESTED);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_YIELDED);
}

TEST_F(Protocol, LeaveWithoutEnterIsHarmless)
{
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
	slice_ext_enter();
	EXPECT_EQ(area().request, 1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
	expect_idle();
}

TEST_F(Protocol, ExportedTwinsDoTheSame)
{
	slice_ext_enter_call();
	EXPECT_EQ(area().request, 1);
	slice_ext_enter();
	EXPECT_EQ(slice_ext_leave_call(), SLICE_EXT_NESTED);
	ASSERT_TRUE(kernel.grant());
	EXPECT_EQ(slice_ext_leave_call(), SLICE_EXT_YIELDED);
	EXPECT_EQ(slice_ext_leave_call(), SLICE_EXT_INACTIVE);
	expect_idle();
}

TEST_F(Protocol, DisableEndsOpenSections)
{
	slice_ext_enter();
	slice_ext_enter();
	ASSERT_TRUE(kernel.grant());
	EXPECT_EQ(slice_ext_disable(), 0);
	expect_idle();
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);

	EXPECT_EQ(slice_ext_enable(), 0);
	slice_ext_enter();
	EXPECT_EQ(area().request, 1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
}

TEST_F(Protocol, SectionOpenedBeforeEnablingStaysInactive)
{
	slice_ext_disable();
	slice_ext_enter();
	ASSERT_EQ(slice_ext_enable(), 0);
	EXPECT_EQ(area().request, 0);
	slice_ext_enter();
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
	expect_idle();
}

TEST_F(Protocol, ForkedChildGoesOn)
{
	slice_ext_enter();
	const pid_t child = fork();
	ASSERT_GE(child, 0);
	if (child == 0) {
		const bool granted = kernel.grant();
		_exit(granted && slice_ext_leave() == SLICE_EXT_YIELDED ? 0 : 1);
	}
	int status = -1;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
}

// What the next signal runs, in the middle of whatever it interrupts.
std::function<void()> handler_body;

void handler(int)
{
	handler_body();
}

class SignalAction
{
      public:
	explicit SignalAction(int number) : number_(number)
	{
		struct sigaction action = {};
		action.sa_handler = handler;
		sigaction(number_, &action, &old_);
	}
	~SignalAction()
	{
		sigaction(number_, &old_, nullptr);
	}

      private:
	int number_;
	struct sigaction old_;
};

TEST_F(Protocol, HandlerInsideASectionNests)
{
	const SignalAction on_usr1(SIGUSR1);
	slice_ext_outcome inner = SLICE_EXT_INACTIVE;
	handler_body = [&] {
		slice_ext_enter();
		inner = slice_ext_leave();
	};
	slice_ext_enter();
	raise(SIGUSR1);
	EXPECT_EQ(inner, SLICE_EXT_NESTED);
	EXPECT_EQ(area().request, 1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
	expect_idle();
}

TEST_F(Protocol, HandlerThatJumpsOutClosesItsOwnSection)
{
	const SignalAction on_usr1(SIGUSR1);
	static sigjmp_buf back;
	handler_body = [] {
		slice_ext_enter();
		slice_ext_leave();
		siglongjmp(back, 1);
	};
	slice_ext_enter();
	if (sigsetjmp(back, 1) == 0)
		raise(SIGUSR1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
	expect_idle();
}

#if defined(__x86_64__)

// Runs body with the trap flag set: SIGTRAP after each instruction. handler_body
// runs at the one numbered `stop`. Returns false if there was no such instruction.
unsigned step;
unsigned stop;

__attribute__((noinline)) void single_step(void (*body)())
{
	asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	body();
	asm volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
}

void trap(int)
{
	if (step++ == stop)
		handler_body();
}

class AtEachInstruction : public Protocol
{
      protected:
	AtEachInstruction()
	{
		struct sigaction action = {};
		action.sa_handler = trap;
		sigaction(SIGTRAP, &action, &old_);
	}
	~AtEachInstruction() override
	{
		sigaction(SIGTRAP, &old_, nullptr);
	}

	// Interrupts `body` after each of its instructions in turn by `event`; `check`
	// looks at the result of each run.
	void interrupt(void (*body)(), const std::function<void()> &event,
	               const std::function<void()> &check)
	{
		handler_body = event;
		for (stop = 0;; stop++) {
			SCOPED_TRACE("instruction " + std::to_string(stop));
			step = 0;
			single_step(body);
			if (step <= stop)
				break;
			check();
			if (HasFailure())
				return;
		}
		// More than the two stores: the trap flag did work.
		EXPECT_GT(stop, 10u);
	}

      private:
	struct sigaction old_;
};

volatile int inside_request;
volatile slice_ext_outcome outcome;

__attribute__((noinline)) void one_section()
{
	slice_ext_enter();
	inside_request = slice_ext_self.ctrl[0];
	outcome = slice_ext_leave();
}

__attribute__((noinline)) void two_nested_sections()
{
	slice_ext_enter();
	slice_ext_enter();
	slice_ext_leave();
	inside_request = slice_ext_self.ctrl[0];
	outcome = slice_ext_leave();
}

TEST_F(AtEachInstruction, HandlersSectionLeavesTheInterruptedOneIntact)
{
	for (auto body : {one_section, two_nested_sections}) {
		interrupt(
			body,
			[&] {
				const unsigned depth = slice_ext_self.depth;
				slice_ext_enter();
				slice_ext_leave();
				ASSERT_EQ(slice_ext_self.depth, depth);
			},
			[&] {
				EXPECT_EQ(inside_request, 1);
				EXPECT_EQ(outcome, SLICE_EXT_UNDISTURBED);
				expect_idle();
			});
	}
}

TEST_F(AtEachInstruction, GrantIsAlwaysGivenBack)
{
	unsigned grants = 0;
	unsigned runs = 0;
	interrupt(
		one_section,
		[&] {
			grants += kernel.grant();
			runs++;
		},
		[&] { expect_idle(); });
	EXPECT_GT(grants, 0u);
	EXPECT_LT(grants, runs);
	EXPECT_EQ(kernel.yields_in_grant, grants);
	EXPECT_EQ(kernel.yields_outside, 0u);
}

TEST_F(AtEachInstruction, HandlerDuringAGrantNeverAsksForASecondOne)
{
	unsigned grants = 0;
	interrupt(
		one_section,
		[&] {
			const bool granted = kernel.grant();
			grants += granted;
			slice_ext_enter();
			ASSERT_FALSE(area().request && area().granted);
			slice_ext_leave();
			if (granted) {
				// The handler's section was nested: the grant is not its to end.
				ASSERT_EQ(area().granted, 1);
			}
		},
		[&] { expect_idle(); });
	EXPECT_GT(grants, 0u);
	EXPECT_EQ(kernel.yields_in_grant, grants);
}

TEST_F(AtEachInstruction, LosingTheCpuLeavesNothingBehind)
{
	interrupt(
		one_section, [&] { kernel.switch_out(); },
		[&] {
			EXPECT_TRUE(outcome == SLICE_EXT_UNDISTURBED || outcome == SLICE_EXT_ENDED);
			expect_idle();
		});
	EXPECT_TRUE(kernel.calls.empty());
}

#endif

} // namespace
