// SPDX-License-Identifier: MIT
// What a fork, a new thread and a new program image start with.
#include "child.hpp"
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int disabled = 10;
constexpr int enabled = 11;
constexpr int failed = 20;

int state_code()
{
	const int state = get_enabled();
	return state < 0 ? failed : disabled + state;
}

const ChildMode state_mode("state", state_code);

TEST(Inheritance, ForkCopiesTheEnabledState)
{
	SLICE_EXT_NEEDS(need::series());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		EXPECT_EQ(in_child([&area] {
				  return area.flags() == (flag_available | flag_enabled)
			                         ? state_code()
			                         : failed;
			  }),
		          enabled);
		ASSERT_EQ(set_enabled(false), 0);
		EXPECT_EQ(in_child(state_code), disabled);
	});
}

TEST(Inheritance, AForkedChildIsGrantedToo)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Outcome outcome = in_child([&area] {
			const Counters fresh = Counters::of_this_thread();
			if (fresh.missing("granted") || fresh["granted"] != 0 ||
			    fresh["requests"] != 0)
				return failed;
			for (int i = 0; i < 200; ++i)
				if (until_granted(area, ticks() + to_ticks(50 * ms)).granted) {
					leave(area);
					return enabled;
				}
			return disabled;
		});
		EXPECT_NE(outcome, failed) << "the child did not start with counters at 0";
		EXPECT_EQ(outcome, enabled) << "no grant in the child";
	});
}

TEST(Inheritance, AForkInsideAGrantEndsItForBoth)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		ASSERT_TRUE(until_granted(area, ticks() + to_ticks(10 * second)).granted);
		const pid_t pid = fork();
		if (pid == 0)
			_exit(area.ctrl() == ctrl_idle ? state_code() : failed);
		EXPECT_EQ(area.ctrl(), ctrl_idle);
		int status = 0;
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_EQ(WEXITSTATUS(status), enabled);
	});
}

TEST(Inheritance, ANewThreadStartsDisabled)
{
	SLICE_EXT_NEEDS(need::series());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		in_thread([] {
			EXPECT_EQ(get_enabled(), 0);
			RseqArea own;
			ASSERT_EQ(own.enroll(), 0);
			EXPECT_EQ(get_enabled(), 0);
			EXPECT_EQ(own.flags(), flag_available);
		});
		EXPECT_EQ(get_enabled(), 1);
	});
}

int child_of_clone(void *)
{
	return state_code();
}

TEST(Inheritance, AChildThatSharesTheMemoryStartsDisabled)
{
	SLICE_EXT_NEEDS(need::series());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		alignas(16) static char stack[65536];
		const pid_t pid = clone(child_of_clone, stack + sizeof stack,
		                        CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
		ASSERT_GT(pid, 0);
		int status = 0;
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		ASSERT_TRUE(WIFEXITED(status));
		EXPECT_EQ(WEXITSTATUS(status), disabled);
		EXPECT_EQ(get_enabled(), 1) << "the parent lost its state";
	});
}

TEST(Inheritance, ExecStartsDisabled)
{
	SLICE_EXT_NEEDS(need::series());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		EXPECT_EQ(exec_self("state", false), disabled) << "no area after exec";
		EXPECT_EQ(exec_self("state", true), disabled) << "an area of the C library";
	});
}

} // namespace
} // namespace slice_test
