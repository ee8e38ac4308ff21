// SPDX-License-Identifier: MIT
// The kernel has the feature and was booted with rseq_slice_ext=0.
#include "needs.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <sys/auxv.h>

namespace slice_test
{
namespace
{

std::string switched_off()
{
	if (get_enabled() < 0)
		return "this kernel has no time slice extension";
	if (read_line("/proc/cmdline").value_or("").find("rseq_slice_ext=0") == std::string::npos)
		return "not booted with rseq_slice_ext=0";
	return {};
}

TEST(BootOff, TheAuxiliaryVectorIsTheBaseKernels)
{
	SLICE_EXT_NEEDS(switched_off());
	EXPECT_EQ(getauxval(at_feature_size), base_feature_size);
	EXPECT_EQ(getauxval(at_align), base_feature_align);
}

TEST(BootOff, PrctlNamesTheCause)
{
	SLICE_EXT_NEEDS(switched_off());
	for (const std::uint32_t length : {32U, 64U}) {
		SCOPED_TRACE(length);
		in_thread([length] {
			EXPECT_EQ(get_enabled(), 0);
			EXPECT_EQ(set_enabled(true), error_off_at_boot) << "without an area";
			RseqArea area;
			ASSERT_EQ(area.enroll(length), 0);
			EXPECT_EQ(get_enabled(), 0);
			EXPECT_EQ(set_enabled(true), error_off_at_boot);
			EXPECT_EQ(set_enabled(false), error_off_at_boot);
			EXPECT_EQ(sys_prctl(pr_set, 2), -EINVAL);
			EXPECT_EQ(sys_prctl(pr_get, 1), -EINVAL);
			EXPECT_EQ(get_enabled(), 0);
			EXPECT_EQ(area.flags(), 0U) << "nothing is available";
		});
	}
}

TEST(BootOff, DefaultOnIsIgnored)
{
	SLICE_EXT_NEEDS(switched_off());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(area.enroll(64, rseq_default_on), 0);
		EXPECT_EQ(get_enabled(), 0);
		EXPECT_EQ(area.flags(), 0U);
	});
}

TEST(BootOff, YieldIsThereAndDoesNothing)
{
	SLICE_EXT_NEEDS(switched_off());
	EXPECT_EQ(sys_yield(), 0);
}

} // namespace
} // namespace slice_test
