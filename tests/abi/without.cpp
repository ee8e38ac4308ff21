// SPDX-License-Identifier: MIT
// A kernel built without the feature, and what the library makes of it.
#include "needs.hpp"
#include "requester.hpp"

#include <slice_ext/slice_ext.h>

#include <gtest/gtest.h>

#include <cerrno>

#include <sys/auxv.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

std::string built_without()
{
	return get_enabled() == -EINVAL ? "" : "this kernel has the time slice extension";
}

TEST(Without, NothingOfTheFeatureIsThere)
{
	SLICE_EXT_NEEDS(built_without());
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(area.enroll(64), 0);
		EXPECT_EQ(area.flags(), 0U);
		EXPECT_EQ(set_enabled(true), EINVAL);
		EXPECT_EQ(sys_yield(), -ENOSYS);
		RseqArea other;
		ASSERT_EQ(area.withdraw(), 0);
		EXPECT_EQ(other.enroll(64, rseq_default_on), EINVAL);
	});
	EXPECT_EQ(getauxval(at_feature_size), base_feature_size);
	EXPECT_EQ(getauxval(at_align), base_feature_align);
	EXPECT_NE(access(path_sysctl, F_OK), 0);
	EXPECT_NE(access(path_counters, F_OK), 0);
	EXPECT_NE(access(path_unguarded, F_OK), 0);
}

TEST(Without, TheLibraryNamesTheCause)
{
	SLICE_EXT_NEEDS(built_without());
	slice_ext_info info{};
	EXPECT_EQ(slice_ext_query(&info), SLICE_EXT_KERNEL_WITHOUT);
	EXPECT_EQ(info.reason, SLICE_EXT_KERNEL_WITHOUT);
	EXPECT_EQ(slice_ext_enable(), SLICE_EXT_KERNEL_WITHOUT);
	EXPECT_STRNE(slice_ext_reason_text(SLICE_EXT_KERNEL_WITHOUT), "");
	EXPECT_STRNE(slice_ext_reason_hint(SLICE_EXT_KERNEL_WITHOUT), "");
}

TEST(Without, ASectionOfTheLibraryCostsNothingAndBreaksNothing)
{
	SLICE_EXT_NEEDS(built_without());
	for (int i = 0; i < 1000; ++i) {
		slice_ext_enter();
		EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
	}
}

} // namespace
} // namespace slice_test
