// SPDX-License-Identifier: MIT
// prctl(PR_RSEQ_SLICE_EXTENSION): results, each error, the flags word in step.
#include "child.hpp"
#include "needs.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <sys/mman.h>

namespace slice_test
{
namespace
{

constexpr unsigned long beyond_32_bits = 1UL << 32;

TEST(Prctl, GetWorksWithoutRegistration)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] { EXPECT_EQ(get_enabled(), 0); });
}

TEST(Prctl, RefusesUnknownOperations)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(area.enroll(), 0);
		for (const unsigned long operation : {0UL, 3UL, ~0UL, beyond_32_bits | pr_get})
			EXPECT_EQ(sys_prctl(operation), -EINVAL) << operation;
		EXPECT_EQ(get_enabled(), 0);
	});
}

TEST(Prctl, GetRefusesArguments)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		EXPECT_EQ(sys_prctl(pr_get, 1), -EINVAL);
		EXPECT_EQ(sys_prctl(pr_get, beyond_32_bits), -EINVAL);
		EXPECT_EQ(sys_prctl(pr_get, 0, 1), -EINVAL);
		EXPECT_EQ(sys_prctl(pr_get, 0, 0, 1), -EINVAL);
	});
}

TEST(Prctl, SetRefusesUnknownBitsAndArguments)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(area.enroll(), 0);
		for (const unsigned long bits :
		     {2UL, 3UL, 1UL << 31, beyond_32_bits | pr_enable, ~0UL})
			EXPECT_EQ(sys_prctl(pr_set, bits), -EINVAL) << bits;
		EXPECT_EQ(sys_prctl(pr_set, pr_enable, 1), -EINVAL);
		EXPECT_EQ(sys_prctl(pr_set, pr_enable, 0, 1), -EINVAL);
		EXPECT_EQ(sys_prctl(pr_set, 0, 1), -EINVAL);
		EXPECT_EQ(get_enabled(), 0);
		EXPECT_EQ(area.flags() & flag_enabled, 0U);
	});
}

TEST(Prctl, SetNeedsAnArea)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		EXPECT_EQ(set_enabled(true), ENXIO);
		EXPECT_EQ(set_enabled(false), ENXIO);
		EXPECT_EQ(get_enabled(), 0);
	});
}

TEST(Prctl, SetIsIdempotentAndKeepsTheFlagsInStep)
{
	SLICE_EXT_NEEDS(need::series());
	for (const std::uint32_t length : {32U, 33U, 64U}) {
		SCOPED_TRACE(length);
		in_thread([length] {
			RseqArea area;
			ASSERT_EQ(area.enroll(length), 0);
			EXPECT_EQ(area.flags(), flag_available);
			for (const bool on : {false, true, true, false, false, true}) {
				EXPECT_EQ(set_enabled(on), 0);
				EXPECT_EQ(get_enabled(), on ? 1 : 0);
				EXPECT_EQ(area.flags(), flag_available | (on ? flag_enabled : 0U));
			}
		});
	}
}

TEST(Prctl, ActsOnTheCallingThreadOnly)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		in_thread([] {
			RseqArea other;
			EXPECT_EQ(other.enroll(), 0);
			EXPECT_EQ(get_enabled(), 0);
		});
		EXPECT_EQ(get_enabled(), 1);
	});
}

// A switch between the mprotect() and the prctl() makes the kernel update the
// area it can no longer write and kills the thread; that is the base kernel's
// rule and says nothing here, so such a child does not count.
TEST(Prctl, AnAreaThatCannotBeWrittenIsAFault)
{
	SLICE_EXT_NEEDS(need::series());
	constexpr int tries = 20;
	constexpr int passed = 0;
	constexpr std::size_t page = 4096;
	Outcome outcome = -SIGSEGV;
	for (int i = 0; i < tries && outcome == -SIGSEGV; ++i)
		outcome = in_child([] {
			void *memory = mmap(nullptr, page, PROT_READ | PROT_WRITE,
			                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (memory == MAP_FAILED || sys_rseq(memory, 64, 0) != 0)
				return 1;
			mprotect(memory, page, PROT_READ);
			const int error = set_enabled(true);
			const int state = get_enabled();
			mprotect(memory, page, PROT_READ | PROT_WRITE);
			return error == EFAULT && state == 0 ? passed : 2;
		});
	EXPECT_EQ(outcome, passed);
}

} // namespace
} // namespace slice_test
