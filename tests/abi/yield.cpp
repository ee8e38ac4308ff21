// SPDX-License-Identifier: MIT
// rseq_slice_yield(2) and its neighbours in the system call table.
#include "child.hpp"
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

long raw(long number)
{
	const long result = syscall(number, 0L, 0L, 0L, 0L, 0L, 0L);
	return result >= 0 ? result : -errno;
}

TEST(Yield, OutsideAGrantGivesZero)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		EXPECT_EQ(sys_yield(), 0) << "without an area";
		RseqArea area;
		ASSERT_EQ(area.enroll(), 0);
		EXPECT_EQ(sys_yield(), 0) << "not opted in";
		ASSERT_EQ(set_enabled(true), 0);
		EXPECT_EQ(sys_yield(), 0) << "opted in";
		area.set_request(1);
		EXPECT_EQ(sys_yield(), 0) << "requested";
		area.set_request(0);
	});
}

TEST(Yield, ArgumentsDoNotMatter)
{
	SLICE_EXT_NEEDS(need::feature());
	EXPECT_EQ(syscall(nr_yield, -1L, -1L, -1L, -1L, -1L, -1L), 0);
}

TEST(Yield, InsideAGrantGivesOne)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	ASSERT_EQ(other.error(), 0);

	constexpr int wanted = 20;
	constexpr int tries = 500;
	int ones = 0;
	int zeros = 0;
	Counters counters;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < tries && ones < wanted; ++i) {
			if (!until_granted(area, ticks() + to_ticks(50 * ms)).granted)
				continue;
			const long gave_up = leave(area);
			// The grant may have expired between the look and the call.
			if (gave_up == 1)
				++ones;
			else
				++zeros;
			ASSERT_EQ(area.ctrl(), ctrl_idle);
		}
		counters = Counters::of_this_thread();
	});
	SCOPED_TRACE("471 gave 1: " + std::to_string(ones) + ", 0: " + std::to_string(zeros));
	EXPECT_EQ(ones, wanted);
	EXPECT_EQ(counters["ended_yield"], ones) << counters;
}

// A filter that refuses one form of the call does not see that the CPU has been
// given up; what it leaves behind must not answer the next call.
TEST(Yield, ARefusedCallLeavesNothingForTheNext)
{
	SLICE_EXT_NEEDS(need::control());
	constexpr std::uint32_t refused_argument = 0xdead;
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	const Outcome outcome = in_child([] {
		pin(test_cpu());
		sock_filter code[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr_yield, 0, 3),
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused_argument, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		const sock_fprog program{std::size(code), code};
		RseqArea area;
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
			return 77;
		if (opt_in(area) != 0)
			return 1;
		constexpr int wanted = 20;
		constexpr int tries = 500;
		int refused = 0;
		for (int i = 0; i < tries && refused < wanted; ++i) {
			if (!until_granted(area, ticks() + to_ticks(50 * ms)).granted)
				continue;
			++refused;
			area.set_request(0);
			if (syscall(nr_yield, refused_argument) != -1 || errno != EPERM)
				return 3;
			if (area.ctrl() != ctrl_idle)
				return 4;
			if (sys_yield() != 0)
				return 5;
		}
		return refused == wanted ? 0 : 2;
	});
	if (outcome == 77) {
		GTEST_SKIP() << "no system call filters";
	}
	EXPECT_NE(outcome, 4) << "the grant was not ended";
	EXPECT_NE(outcome, 5) << "the next call outside a grant claimed a yield";
	EXPECT_EQ(outcome, 0);
}

TEST(Yield, NeighboursStayUnimplemented)
{
	SLICE_EXT_NEEDS(need::series());
	utsname name{};
	uname(&name);
	int major = 0;
	int minor = 0;
	ASSERT_EQ(std::sscanf(name.release, "%d.%d", &major, &minor), 2);
	// 463..469 were given out between 6.13 and 6.17.
	const bool old = major < 6 || (major == 6 && minor < 13);
	for (long number = old ? 463 : 470; number <= 472; ++number)
		if (number != nr_yield) {
			EXPECT_EQ(raw(number), -ENOSYS) << number;
		}
}

#if defined(__x86_64__)
// The i386 table, entered from this 64-bit program.
long raw_i386(long number)
{
	long result = number;
	asm volatile("int $0x80"
	             : "+a"(result)
	             : "b"(0L), "c"(0L), "d"(0L), "S"(0L), "D"(0L)
	             : "memory", "r8", "r9", "r10", "r11");
	return static_cast<int>(result);
}

TEST(Yield, SameNumberInThe32BitTable)
{
	SLICE_EXT_NEEDS(need::series());
	constexpr long getpid_i386 = 20;
	if (in_child([] { return raw_i386(getpid_i386) == getpid() ? 0 : 1; }) != 0)
		GTEST_SKIP() << "no 32-bit system calls in this kernel";
	EXPECT_EQ(raw_i386(nr_yield), 0);
	EXPECT_EQ(raw_i386(nr_yield - 1), -ENOSYS);
	EXPECT_EQ(raw_i386(nr_yield + 1), -ENOSYS);
}
#endif

} // namespace
} // namespace slice_test
