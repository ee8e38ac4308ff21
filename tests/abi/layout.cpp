// SPDX-License-Identifier: MIT
// Where the kernel writes what, and what it tells a process about that.
#include "needs.hpp"
#include "requester.hpp"

#include <slice_ext/abi.h>

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/auxv.h>

namespace slice_test
{
namespace
{

// The header under test against numbers of the tests' own.
static_assert(offsetof(slice_ext_abi_rseq, cpu_id_start) == off_cpu_id_start);
static_assert(offsetof(slice_ext_abi_rseq, cpu_id) == off_cpu_id);
static_assert(offsetof(slice_ext_abi_rseq, rseq_cs) == off_rseq_cs);
static_assert(offsetof(slice_ext_abi_rseq, flags) == off_flags);
static_assert(offsetof(slice_ext_abi_rseq, node_id) == off_node_id);
static_assert(offsetof(slice_ext_abi_rseq, mm_cid) == off_mm_cid);
static_assert(offsetof(slice_ext_abi_rseq, request) == off_request);
static_assert(offsetof(slice_ext_abi_rseq, granted) == off_granted);
static_assert(offsetof(slice_ext_abi_rseq, end) == feature_size);
static_assert(SLICE_EXT_ABI_RSEQ_SLICE_CTRL == off_slice_ctrl);
static_assert(SLICE_EXT_ABI_RSEQ_ALIGN == feature_align);
static_assert(SLICE_EXT_ABI_RSEQ_LEGACY_SIZE == legacy_size);
static_assert(SLICE_EXT_ABI_RSEQ_BASE_END == base_feature_size);
static_assert(SLICE_EXT_ABI_RSEQ_BASE_ALIGN == base_feature_align);
static_assert(SLICE_EXT_ABI_FLAG_AVAILABLE == flag_available);
static_assert(SLICE_EXT_ABI_FLAG_ENABLED == flag_enabled);
static_assert(SLICE_EXT_ABI_RSEQ_UNREGISTER == rseq_unregister);
static_assert(SLICE_EXT_ABI_RSEQ_SLICE_EXT_DEFAULT_ON == rseq_default_on);
static_assert(SLICE_EXT_ABI_RSEQ_SIGNATURE == rseq_signature);
static_assert(SLICE_EXT_ABI_AT_RSEQ_FEATURE_SIZE == at_feature_size);
static_assert(SLICE_EXT_ABI_AT_RSEQ_ALIGN == at_align);
static_assert(SLICE_EXT_ABI_PR == pr_slice);
static_assert(SLICE_EXT_ABI_PR_GET == pr_get);
static_assert(SLICE_EXT_ABI_PR_SET == pr_set);
static_assert(SLICE_EXT_ABI_PR_ENABLE == pr_enable);
static_assert(SLICE_EXT_ABI_NR_YIELD == nr_yield);
static_assert(SLICE_EXT_ABI_ENOTSUPP == error_off_at_boot);

constexpr std::uint8_t pattern = 0xa5;

TEST(Layout, AuxiliaryVectorNamesTheFeature)
{
	SLICE_EXT_NEEDS(need::feature());
	EXPECT_EQ(getauxval(at_feature_size), feature_size);
	EXPECT_EQ(getauxval(at_align), feature_align);
}

TEST(Layout, RegistrationWritesItsWordsAndNoOther)
{
	SLICE_EXT_NEEDS(need::series());
	for (const std::uint32_t length : {32U, 33U, 64U}) {
		SCOPED_TRACE(length);
		in_thread([length] {
			RseqArea area(pattern);
			ASSERT_EQ(area.enroll(length), 0);
			const auto cpu = static_cast<std::uint32_t>(sched_getcpu());
			EXPECT_EQ(area.u32(off_cpu_id_start), cpu);
			EXPECT_EQ(area.u32(off_cpu_id), cpu);
			EXPECT_EQ(area.u64(off_rseq_cs), 0U);
			EXPECT_EQ(area.flags(), flag_available);
			EXPECT_LT(area.u32(off_node_id), 1024U);
			EXPECT_LT(area.u32(off_mm_cid), 1024U);
			for (unsigned offset = off_slice_ctrl; offset < RseqArea::capacity;
			     ++offset)
				EXPECT_EQ(area.u8(offset), pattern) << "byte " << offset;
		});
	}
}

TEST(Layout, OptingInZeroesTheWordOnly)
{
	SLICE_EXT_NEEDS(need::series());
	for (const std::uint32_t length : {32U, 33U, 64U}) {
		SCOPED_TRACE(length);
		in_thread([length] {
			RseqArea area(pattern);
			ASSERT_EQ(area.enroll(length), 0);
			ASSERT_EQ(set_enabled(true), 0);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			for (unsigned offset = legacy_size; offset < RseqArea::capacity; ++offset)
				EXPECT_EQ(area.u8(offset), pattern) << "byte " << offset;
		});
	}
}

} // namespace
} // namespace slice_test
