// SPDX-License-Identifier: MIT
// rseq(2): lengths, alignments, flags, and what a second call says.
#include "child.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace slice_test
{
namespace
{

constexpr std::uint32_t uninitialized = ~0U;

TEST(Registration, LengthsAndAlignments)
{
	SLICE_EXT_NEEDS(need::feature());
	struct Case {
		std::uint32_t length;
		unsigned offset;
		int error;
	};
	const Case cases[] = {
		{0, 0, EINVAL},    {16, 0, EINVAL}, {31, 0, EINVAL},  {32, 0, 0},
		{32, 32, 0},       {32, 96, 0},     {32, 16, EINVAL}, {32, 8, EINVAL},
		{32, 1, EINVAL},   {33, 0, 0},      {33, 64, 0},      {33, 32, EINVAL},
		{33, 16, EINVAL},  {34, 0, 0},      {34, 32, EINVAL}, {48, 0, 0},
		{48, 32, EINVAL},  {63, 0, 0},      {64, 0, 0},       {64, 64, 0},
		{64, 32, EINVAL},  {64, 1, EINVAL}, {96, 0, 0},       {128, 0, 0},
		{128, 32, EINVAL},
	};
	for (const Case &c : cases)
		in_thread([&c] {
			RseqArea area(0, c.offset);
			EXPECT_EQ(area.enroll(c.length), c.error)
				<< "length " << c.length << " at an address of 256 n + "
				<< c.offset;
		});
}

TEST(Registration, AnAddressOutsideUserSpaceIsAFault)
{
	SLICE_EXT_NEEDS(need::feature());
	auto *kernel_address = reinterpret_cast<void *>(0xffff'8000'0000'0000UL);
	in_thread([&] {
		EXPECT_EQ(sys_rseq(kernel_address, 32, 0), EFAULT);
		EXPECT_EQ(sys_rseq(kernel_address, 64, 0), EFAULT);
		EXPECT_EQ(sys_rseq(kernel_address, 64, rseq_default_on), EFAULT);
		EXPECT_EQ(get_enabled(), 0);
	});
}

TEST(Registration, ASecondOneIsRefused)
{
	SLICE_EXT_NEEDS(need::feature());
	for (const int flags : {0, rseq_default_on}) {
		SCOPED_TRACE(flags);
		in_thread([flags] {
			RseqArea area;
			RseqArea other;
			ASSERT_EQ(area.enroll(64), 0);
			EXPECT_EQ(sys_rseq(area.base(), 64, flags), EBUSY);
			EXPECT_EQ(sys_rseq(area.base(), 64, flags, rseq_signature + 1), EPERM);
			EXPECT_EQ(sys_rseq(area.base(), 32, flags), EINVAL);
			EXPECT_EQ(sys_rseq(other.base(), 64, flags), EINVAL);
			EXPECT_EQ(get_enabled(), 0) << "a refused call changed the state";
			EXPECT_EQ(area.flags() & flag_enabled, 0U);
		});
	}
}

TEST(Registration, DefaultOnStartsEnabled)
{
	SLICE_EXT_NEEDS(need::series());
	for (const std::uint32_t length : {32U, 33U, 64U}) {
		SCOPED_TRACE(length);
		in_thread([length] {
			RseqArea area(0xff);
			ASSERT_EQ(area.enroll(length, rseq_default_on), 0);
			EXPECT_EQ(get_enabled(), 1);
			EXPECT_EQ(area.flags(), flag_available | flag_enabled);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
		});
	}
}

TEST(Registration, UnknownFlagsAreRefused)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		RseqArea area;
		for (int bit = 2; bit < 32; ++bit) {
			const auto flag = static_cast<int>(1U << bit);
			EXPECT_EQ(area.enroll(64, flag), EINVAL) << "bit " << bit;
			EXPECT_EQ(area.enroll(64, flag | rseq_default_on), EINVAL) << "bit " << bit;
		}
		EXPECT_EQ(area.enroll(), 0) << "none of the above registered";
	});
}

TEST(Registration, UnregisterStandsAlone)
{
	SLICE_EXT_NEEDS(need::feature());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		EXPECT_EQ(sys_rseq(area.base(), 64, rseq_unregister | rseq_default_on), EINVAL);
		EXPECT_EQ(sys_rseq(area.base(), 64, rseq_unregister | 1 << 2), EINVAL);
		EXPECT_EQ(sys_rseq(area.base(), 32, rseq_unregister), EINVAL);
		EXPECT_EQ(sys_rseq(nullptr, 64, rseq_unregister), EINVAL);
		EXPECT_EQ(sys_rseq(area.base(), 64, rseq_unregister, 0), EPERM);
		EXPECT_EQ(get_enabled(), 1) << "a refused call changed the state";
	});
}

TEST(Registration, UnregisterDisablesAndClearsTheFlags)
{
	SLICE_EXT_NEEDS(need::series());
	for (const std::uint32_t length : {32U, 64U}) {
		SCOPED_TRACE(length);
		in_thread([length] {
			RseqArea area;
			for (int round = 0; round < 3; ++round) {
				ASSERT_EQ(area.enroll(length), 0);
				EXPECT_EQ(get_enabled(), 0) << "round " << round;
				EXPECT_EQ(area.flags(), flag_available);
				ASSERT_EQ(set_enabled(true), 0);
				area.set_request(1);
				ASSERT_EQ(area.withdraw(), 0);
				EXPECT_EQ(get_enabled(), 0);
				EXPECT_EQ(area.flags(), 0U);
				EXPECT_EQ(area.u32(off_cpu_id), uninitialized);
				EXPECT_EQ(set_enabled(true), ENXIO);
				area.set_request(0);
			}
		});
	}
}

// What the C library of most installed systems registers.
int opt_in_on_the_libc_area()
{
	constexpr int no_area = 2;
	RseqView area = libc_area();
	if (!area.base())
		return no_area;
	int failures = 0;
	const auto check = [&failures](bool ok, const char *what) {
		if (!ok) {
			std::printf("libc area: %s\n", what);
			++failures;
		}
	};
	check(get_enabled() == 0, "starts enabled");
	check(area.flags() == flag_available, "flags before");
	check(set_enabled(true) == 0, "opting in fails");
	check(get_enabled() == 1, "not enabled");
	check(area.flags() == (flag_available | flag_enabled), "flags after");

	pin(test_cpu());
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	int grants = 0;
	for (int i = 0; i < 200 && grants < 5; ++i) {
		if (!until_granted(area, ticks() + to_ticks(50 * ms)).granted)
			continue;
		++grants;
		leave(area);
	}
	other.stop();
	check(grants == 5, "no grants");
	return failures == 0 ? 0 : 1;
}

const ChildMode libc_area_mode("libc-area", opt_in_on_the_libc_area);

TEST(Registration, TheAreaOfTheCLibraryServes)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const Outcome outcome = exec_self("libc-area", true);
	if (outcome == 2)
		GTEST_SKIP() << "this C library registers no rseq area";
	EXPECT_EQ(outcome, 0);
}

} // namespace
} // namespace slice_test
