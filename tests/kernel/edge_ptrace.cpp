// SPDX-License-Identifier: MIT
// A debugger at the thread: stops, single steps, system call tracing.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <functional>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 20;
constexpr long stop_of_a_call = SIGTRAP | 0x80;

/** A child that asked to be traced. It is killed if the test ends before it. */
class Tracee
{
      public:
	explicit Tracee(const std::function<void()> &function)
	{
		ticks_per_ns();
		std::fflush(nullptr);
		pid_ = fork();
		if (pid_ != 0)
			return;
		pin(test_cpu());
		ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
		function();
		std::fflush(nullptr);
		_exit(testing::Test::HasFailure() ? 1 : 0);
	}
	~Tracee()
	{
		if (pid_ <= 0)
			return;
		kill(pid_, SIGKILL);
		waitpid(pid_, nullptr, __WALL);
	}
	Tracee(const Tracee &) = delete;
	Tracee &operator=(const Tracee &) = delete;

	/** Lets it go on until its next stop.
	 * @return the signal that stopped it, or 0 when it ended */
	long go(__ptrace_request how, int signal = 0)
	{
		ptrace(how, pid_, nullptr, signal);
		return wait();
	}
	long wait()
	{
		int status = 0;
		if (waitpid(pid_, &status, __WALL) != pid_)
			return -1;
		if (WIFSTOPPED(status))
			return WSTOPSIG(status);
		outcome_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
		pid_ = 0;
		return 0;
	}
	/** As child.hpp's; after go() or wait() gave 0. */
	Outcome outcome() const
	{
		return outcome_;
	}
	void detach()
	{
		ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
	}
	void options(long flags) const
	{
		ptrace(PTRACE_SETOPTIONS, pid_, nullptr, flags);
	}

	/** Its word, which is where that of @p area is here. */
	std::uint32_t word(RseqView area) const
	{
		auto *address = static_cast<char *>(area.base()) + 24;
		const long both = ptrace(PTRACE_PEEKDATA, pid_, address, nullptr);
		return static_cast<std::uint32_t>(static_cast<unsigned long>(both) >> 32);
	}
	user_regs_struct registers() const
	{
		user_regs_struct regs{};
		ptrace(PTRACE_GETREGS, pid_, nullptr, &regs);
		return regs;
	}
	void set_call(long number) const
	{
		ptrace(PTRACE_POKEUSER, pid_, offsetof(user, regs.orig_rax), number);
	}
	/** Stopped by trap(), not by a single step. */
	bool at_trap() const
	{
		siginfo_t info{};
		ptrace(PTRACE_GETSIGINFO, pid_, nullptr, &info);
		return info.si_signo == SIGTRAP && info.si_code == SI_KERNEL;
	}
	/** Steps to the next trap(). @return the steps made, or -1 */
	int step_to_trap()
	{
		constexpr int too_many = 50'000;
		for (int steps = 1; steps < too_many; ++steps) {
			if (go(PTRACE_SINGLESTEP) != SIGTRAP)
				return -1;
			if (at_trap())
				return steps;
		}
		return -1;
	}

      private:
	pid_t pid_ = 0;
	Outcome outcome_ = -1;
};

class EdgePtrace : public Edge
{
};

TEST_F(EdgePtrace, AStopInsideAGrantEndsIt)
{
	RseqArea area;
	Tracee tracee([&area] {
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			trap();
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(sys_yield(), 0);
		}
		expect_about(Counters::of_this_thread() - before, "ended_switch", rounds);
	});
	ASSERT_EQ(tracee.wait(), SIGTRAP);
	int stops = 0;
	int inside = 0;
	do {
		++stops;
		// The kernel brings the word up to date when the thread runs again.
		inside += tracee.word(area) == ctrl_granted;
	} while (tracee.go(PTRACE_CONT) == SIGTRAP);
	EXPECT_EQ(tracee.outcome(), 0);
	EXPECT_EQ(stops, rounds);
	EXPECT_GE(inside, at_least(rounds));
}

TEST_F(EdgePtrace, ASteppedSectionFindsItsRequestGoneAndWorks)
{
	RseqArea area;
	Tracee tracee([&area] {
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		trap();
		area.set_request(1);
		const std::uint32_t after_store = area.ctrl();
		volatile int work = 0;
		while (work < 100)
			work = work + 1;
		const long left = leave(area);
		area.set_request(1);
		const long yielded = sys_yield();
		const std::uint32_t after_call = area.ctrl();
		trap();
		const Counters counters = Counters::of_this_thread() - before;
		EXPECT_EQ(after_store, ctrl_idle) << "a step is a switch";
		EXPECT_EQ(left, -1);
		EXPECT_EQ(yielded, 0);
		EXPECT_EQ(after_call, ctrl_idle);
		EXPECT_EQ(counters["granted"], 0) << counters;
		ASSERT_TRUE(get_grant(area)) << "after the last step";
		leave(area);
	});
	ASSERT_EQ(tracee.wait(), SIGTRAP);
	const int steps = tracee.step_to_trap();
	std::printf("%d steps\n", steps);
	EXPECT_GT(steps, 300);
	EXPECT_EQ(tracee.go(PTRACE_CONT), 0);
	EXPECT_EQ(tracee.outcome(), 0);
}

// From a breakpoint inside the grant over the end of the section.
TEST_F(EdgePtrace, SteppingOutOfAGrantLeavesNothingToDo)
{
	RseqArea area;
	Tracee tracee([&area] {
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			trap();
			const long left = leave(area);
			const long yielded = sys_yield();
			trap();
			EXPECT_EQ(left, -1);
			EXPECT_EQ(yielded, 0);
		}
		expect_about(Counters::of_this_thread() - before, "ended_switch", rounds);
	});
	ASSERT_EQ(tracee.wait(), SIGTRAP);
	int stepped = 0;
	do {
		ASSERT_GT(tracee.step_to_trap(), 3);
		++stepped;
	} while (tracee.go(PTRACE_CONT) == SIGTRAP);
	EXPECT_EQ(tracee.outcome(), 0);
	EXPECT_EQ(stepped, rounds);
}

// The grant is over before the tracer hears of the call.
TEST_F(EdgePtrace, ATracedYieldEndsTheGrantBeforeItsStop)
{
	RseqArea area;
	Tracee tracee([&area] {
		ASSERT_EQ(opt_in(area), 0);
		trap();
		int yielded = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			yielded += leave(area) == 1;
		}
		trap();
		EXPECT_GE(yielded, at_least(rounds));
		EXPECT_EQ(Counters::of_this_thread()["ended_yield"], yielded);
	});
	ASSERT_EQ(tracee.wait(), SIGTRAP);
	tracee.options(PTRACE_O_TRACESYSGOOD);
	int entries = 0;
	int ones = 0;
	while (tracee.go(PTRACE_SYSCALL) == stop_of_a_call) {
		++entries;
		EXPECT_EQ(tracee.registers().orig_rax, nr_yield);
		// Unless its time was up inside the kernel, on the way to the call.
		const std::uint32_t word = tracee.word(area);
		ASSERT_EQ(tracee.go(PTRACE_SYSCALL), stop_of_a_call);
		const long answer = static_cast<long>(tracee.registers().rax);
		EXPECT_TRUE(word == ctrl_idle || (word == ctrl_granted && answer == 0)) << word;
		ones += answer == 1;
	}
	EXPECT_GE(entries, at_least(rounds));
	EXPECT_GE(ones, at_least(rounds));
	EXPECT_EQ(tracee.go(PTRACE_CONT), 0);
	EXPECT_EQ(tracee.outcome(), 0);
}

// What the call does not fetch is not there for the next one.
TEST_F(EdgePtrace, AYieldTurnedIntoAnotherCallLeavesNothing)
{
	RseqArea area;
	Tracee tracee([&area] {
		ASSERT_EQ(opt_in(area), 0);
		const long self = getpid();
		const Counters before = Counters::of_this_thread();
		trap();
		int replaced = 0;
		int ones = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			area.set_request(0);
			replaced += sys_yield() == self;
			ones += sys_yield() == 1;
		}
		trap();
		EXPECT_EQ(replaced, rounds);
		EXPECT_EQ(ones, 0);
		expect_about(Counters::of_this_thread() - before, "ended_yield", rounds);
	});
	ASSERT_EQ(tracee.wait(), SIGTRAP);
	tracee.options(PTRACE_O_TRACESYSGOOD);
	bool first = true;
	while (tracee.go(PTRACE_SYSCALL) == stop_of_a_call) {
		if (first)
			tracee.set_call(SYS_getpid);
		ASSERT_EQ(tracee.go(PTRACE_SYSCALL), stop_of_a_call);
		first = !first;
	}
	EXPECT_EQ(tracee.go(PTRACE_CONT), 0);
	EXPECT_EQ(tracee.outcome(), 0);
}

} // namespace
} // namespace slice_test
