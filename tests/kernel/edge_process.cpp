// SPDX-License-Identifier: MIT
// Grants and what makes, replaces or ends a process; and what ends the thread's consent.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <iterator>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 20;
constexpr int children = 10;

class EdgeProcess : public Edge
{
};

/** In the new image of a program that called exec inside its only grant. */
int after_exec()
{
	const Counters old = Counters::of_this_thread();
	EXPECT_EQ(get_enabled(), 0);
	EXPECT_EQ(set_enabled(true), ENXIO) << "the area is gone with the old image";
	// They are the thread's, and the thread is the same.
	EXPECT_GE(old["granted"], 1);
	EXPECT_GE(old["ended_syscall"], deterministic() ? 1 : 0);
	EXPECT_EQ(old["granted"], old.ended());

	RseqArea area;
	EXPECT_EQ(opt_in(area), 0);
	EXPECT_TRUE(get_grant(area));
	leave(area);
	return testing::Test::HasFailure() ? 1 : 0;
}

const ChildMode after_exec_mode("after-exec", after_exec);

TEST_F(EdgeProcess, ExecInsideAGrantStartsDisabledAndKeepsTheAccount)
{
	for (int i = 0; i < 3; ++i)
		EXPECT_EQ(checked_child([] {
				  RseqArea area;
				  ASSERT_EQ(opt_in(area), 0);
				  ASSERT_TRUE(get_grant(area));
				  become("after-exec");
				  ADD_FAILURE() << "no exec: error " << errno;
			  }),
		          0);
}

TEST_F(EdgeProcess, AnExecThatFailsOnlyEndsTheGrant)
{
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			char *const none[] = {nullptr};
			EXPECT_EQ(execve("/there/is/no/such/program", none, none), -1);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(get_enabled(), 1);
		}
		expect_about(Counters::of_this_thread() - before, "ended_syscall", rounds);
	});
}

TEST_F(EdgeProcess, ExitInsideAGrantIsCounted)
{
	for (const long call : {SYS_exit, SYS_exit_group}) {
		const Counters before = Counters::of_machine();
		for (int i = 0; i < children; ++i)
			EXPECT_EQ(checked_child([call] {
					  RseqArea area;
					  ASSERT_EQ(opt_in(area), 0);
					  ASSERT_TRUE(get_grant(area));
					  syscall(call, 0);
				  }),
			          0);
		const Counters counters = Counters::of_machine() - before;
		expect_about(counters, "granted", children);
		expect_about(counters, "ended_syscall", children);
		EXPECT_EQ(counters["granted"], counters.ended());
	}
}

/** The child exits with 0 if it was disabled. @return its pid */
pid_t vfork_a_disabled_child()
{
	const pid_t pid = vfork();
	if (pid == 0)
		_exit(get_enabled() == 0 ? 0 : 1);
	return pid;
}

TEST_F(EdgeProcess, VforkInsideAGrantEndsItAndTheChildStartsDisabled)
{
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			const pid_t pid = vfork_a_disabled_child();
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			int status = -1;
			ASSERT_EQ(waitpid(pid, &status, 0), pid);
			EXPECT_EQ(status, 0);
			EXPECT_EQ(get_enabled(), 1);
		}
		expect_about(Counters::of_this_thread() - before, "ended_syscall", rounds);
	});
}

/** Shares the parent's memory and thread storage, so it allocates nothing. */
int opt_in_beside_the_parent(void *memory)
{
	RseqView area(memory);
	if (get_enabled() != 0)
		return 2;
	if (set_enabled(true) != ENXIO)
		return 3;
	if (sys_rseq(area.base(), 64, 0) != 0 || set_enabled(true) != 0)
		return 4;
	if (!get_grant(area))
		return 5;
	leave(area);
	return area.ctrl() == ctrl_idle ? 0 : 6;
}

TEST_F(EdgeProcess, AChildInTheSameMemoryHasAnAreaAndGrantsOfItsOwn)
{
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < 3; ++i) {
			RseqArea of_child;
			alignas(16) static char stack[65536];
			ASSERT_TRUE(get_grant(area));
			const pid_t pid = clone(opt_in_beside_the_parent, stack + sizeof stack,
			                        CLONE_VM | SIGCHLD, of_child.base());
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			int status = -1;
			ASSERT_EQ(waitpid(pid, &status, 0), pid);
			ASSERT_TRUE(WIFEXITED(status));
			EXPECT_EQ(WEXITSTATUS(status), 0);
			EXPECT_EQ(get_enabled(), 1);
			ASSERT_TRUE(get_grant(area)) << "the parent's own go on";
			leave(area);
		}
	});
}

TEST_F(EdgeProcess, UnregisteringInsideAGrantEndsAllOfIt)
{
	in_thread([] {
		RseqArea area;
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			ASSERT_EQ(area.enroll(), 0);
			ASSERT_EQ(get_enabled(), 0);
			ASSERT_EQ(set_enabled(true), 0);
			ASSERT_TRUE(get_grant(area));
			ASSERT_EQ(area.withdraw(), 0);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(area.flags(), 0U);
			EXPECT_EQ(get_enabled(), 0);
		}
		const Counters counters = Counters::of_this_thread() - before;
		expect_about(counters, "granted", rounds);
		expect_about(counters, "ended_syscall", rounds);
	});
}

// The word of the old area is the program's again from then on.
TEST_F(EdgeProcess, AnotherAreaTakesOverInsideAGrant)
{
	in_thread([&] {
		RseqArea first;
		RseqArea second_one;
		ASSERT_EQ(opt_in(first), 0);
		ASSERT_TRUE(get_grant(first));
		ASSERT_EQ(first.withdraw(), 0);
		ASSERT_EQ(opt_in(second_one), 0);
		first.set_u32(off_slice_ctrl, 0x1234'5601);
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(second_one));
			leave(second_one);
		}
		EXPECT_EQ(first.u32(off_slice_ctrl), 0x1234'5601U);
		expect_about(Counters::of_this_thread(), "ended_yield", rounds);
	});
}

TEST_F(EdgeProcess, OptingOutInsideAGrantEndsItAndTheNextOnes)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			ASSERT_EQ(set_enabled(false), 0);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(area.flags(), flag_available);
			// Three wake-ups with a request that is no longer one.
			area.set_request(1);
			const std::uint64_t wakeups = other_->wakeups();
			while (other_->wakeups() < wakeups + 3)
				ASSERT_EQ(area.ctrl(), ctrl_requested);
			ASSERT_EQ(set_enabled(true), 0);
			EXPECT_EQ(area.ctrl(), ctrl_idle) << "opting in zeroes it";
		}
		const Counters counters = Counters::of_this_thread() - before;
		expect_about(counters, "granted", rounds);
		expect_about(counters, "ended_syscall", rounds);
	});
}

TEST_F(EdgeProcess, OptingInAgainInsideAGrantOnlyEndsIt)
{
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			ASSERT_EQ(set_enabled(true), 0);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(area.flags(), flag_available | flag_enabled);
		}
		expect_about(Counters::of_this_thread(), "ended_syscall", rounds);
	});
}

/** Answers one system call by @p action, which also decides what becomes of the
 * thread. @return 0 or the errno value */
int filter(long call, std::uint32_t action)
{
	sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const sock_fprog program{std::size(code), code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return errno;
	return 0;
}

// Ended on the way in, before any filter is asked.
TEST_F(EdgeProcess, ARefusedYieldEndsTheGrantAllTheSame)
{
	EXPECT_EQ(checked_child([] {
			  RseqArea area;
			  ASSERT_EQ(opt_in(area), 0);
			  ASSERT_EQ(filter(nr_yield, SECCOMP_RET_ERRNO | EACCES), 0);
			  const Counters before = Counters::of_this_thread();
			  for (int i = 0; i < rounds; ++i) {
				  ASSERT_TRUE(get_grant(area));
				  area.set_request(0);
				  EXPECT_EQ(sys_yield(), -EACCES);
				  EXPECT_EQ(area.ctrl(), ctrl_idle);
			  }
			  expect_about(Counters::of_this_thread() - before, "ended_yield", rounds);
		  }),
	          0);
}

volatile sig_atomic_t trapped;
RseqView *area_of_handler;

TEST_F(EdgeProcess, AYieldThatTrapsEndsTheGrantBeforeTheHandler)
{
	EXPECT_EQ(checked_child([] {
			  RseqArea area;
			  area_of_handler = &area;
			  ASSERT_EQ(opt_in(area), 0);
			  struct sigaction action = {};
			  action.sa_handler = [](int) {
				  trapped = trapped + (area_of_handler->ctrl() == ctrl_idle);
			  };
			  ASSERT_EQ(sigaction(SIGSYS, &action, nullptr), 0);
			  ASSERT_EQ(filter(nr_yield, SECCOMP_RET_TRAP), 0);
			  for (int i = 0; i < rounds; ++i) {
				  ASSERT_TRUE(get_grant(area));
				  area.set_request(0);
				  EXPECT_NE(sys_yield(), 1);
				  EXPECT_EQ(area.ctrl(), ctrl_idle);
			  }
			  EXPECT_EQ(trapped, rounds);
			  expect_about(Counters::of_this_thread(), "ended_yield", rounds);
		  }),
	          0);
}

TEST_F(EdgeProcess, AThreadKilledForItsYieldIsCounted)
{
	const Counters before = Counters::of_machine();
	for (int i = 0; i < children; ++i)
		EXPECT_EQ(checked_child([] {
				  RseqArea area;
				  ASSERT_EQ(opt_in(area), 0);
				  ASSERT_EQ(filter(nr_yield, SECCOMP_RET_KILL_THREAD), 0);
				  ASSERT_TRUE(get_grant(area));
				  sys_yield();
			  }),
		          -SIGSYS);
	const Counters counters = Counters::of_machine() - before;
	expect_about(counters, "granted", children);
	expect_about(counters, "ended_yield", children);
	EXPECT_EQ(counters["granted"], counters.ended());
}

TEST_F(EdgeProcess, AFilterOnThePrctlLeavesTheStateAsItIs)
{
	EXPECT_EQ(checked_child([] {
			  ASSERT_EQ(filter(SYS_prctl, SECCOMP_RET_ERRNO | EPERM), 0);
			  RseqArea area;
			  EXPECT_EQ(opt_in(area), EPERM);
			  EXPECT_EQ(area.flags(), flag_available) << "not enabled";
			  area.set_request(1);
			  spin(3 * ms);
			  EXPECT_EQ(area.ctrl(), ctrl_requested) << "the word is not the kernel's";
			  // The registration itself is another way in.
			  ASSERT_EQ(area.withdraw(), 0);
			  ASSERT_EQ(area.enroll(64, rseq_default_on), 0);
			  EXPECT_EQ(get_enabled(), -EPERM);
			  ASSERT_TRUE(get_grant(area));
			  EXPECT_EQ(set_enabled(false), EPERM);
			  EXPECT_EQ(area.ctrl(), ctrl_idle) << "refused, but a system call";
			  ASSERT_TRUE(get_grant(area)) << "still enabled";
			  leave(area);
			  expect_about(Counters::of_this_thread(), "granted", 2);
		  }),
	          0);
}

} // namespace
} // namespace slice_test
