// SPDX-License-Identifier: MIT
/**
 * @file numbers.hpp
 * The kernel interface as the tests expect it.
 *
 * Written out a second time on purpose: a test that took its numbers from the
 * header under test could not find a wrong one there.
 */
#ifndef SLICE_EXT_TESTS_COMMON_NUMBERS_HPP
#define SLICE_EXT_TESTS_COMMON_NUMBERS_HPP

#include <cstdint>

namespace slice_test
{

constexpr long nr_rseq = 334;
constexpr long nr_yield = 471;

constexpr unsigned off_cpu_id_start = 0;
constexpr unsigned off_cpu_id = 4;
constexpr unsigned off_rseq_cs = 8;
constexpr unsigned off_flags = 16;
constexpr unsigned off_node_id = 20;
constexpr unsigned off_mm_cid = 24;
constexpr unsigned off_slice_ctrl = 28;
constexpr unsigned off_request = 28;
constexpr unsigned off_granted = 29;
constexpr unsigned feature_size = 33;
constexpr unsigned feature_align = 64;
constexpr unsigned legacy_size = 32;
constexpr unsigned base_feature_size = 28;
constexpr unsigned base_feature_align = 32;

constexpr std::uint32_t flag_available = 1U << 4;
constexpr std::uint32_t flag_enabled = 1U << 5;

constexpr int rseq_unregister = 1 << 0;
constexpr int rseq_default_on = 1 << 1;
constexpr std::uint32_t rseq_signature = 0x53053053;

constexpr unsigned long at_feature_size = 27;
constexpr unsigned long at_align = 28;

constexpr int pr_slice = 79;
constexpr unsigned long pr_get = 1;
constexpr unsigned long pr_set = 2;
constexpr unsigned long pr_enable = 1;

/** The kernel's internal ENOTSUPP. */
constexpr int error_off_at_boot = 524;

constexpr const char *path_sysctl = "/proc/sys/kernel/sched_preempt_delay_us";
constexpr const char *path_counters = "/proc/preempt_delay";
constexpr const char *path_unguarded = "/sys/kernel/debug/sched/preempt_delay_unguarded";

} // namespace slice_test

#endif
