// SPDX-License-Identifier: MIT
/**
 * @file needs.hpp
 * What a test needs of the machine, and what happens when it is not there.
 *
 * A missing need skips the test with its reason. Where the environment has
 * SLICE_EXT_REQUIRE=1, as in the virtual machine that was built to have it all,
 * it is a failure.
 */
#ifndef SLICE_EXT_TESTS_COMMON_NEEDS_HPP
#define SLICE_EXT_TESTS_COMMON_NEEDS_HPP

#include <gtest/gtest.h>

#include <string>

namespace slice_test
{

/** SLICE_EXT_REQUIRE=1. */
bool required();

/** Each gives an empty string, or the reason why the need is not met. */
namespace need
{
/** The kernel has the prctl. */
std::string feature();
/** feature(), and the kernel is this project's: counters and sysctl are there. */
std::string series();
/** series(), and the sysctl may be written. */
std::string control();
/** SCHED_FIFO may be used. */
std::string real_time();
/** At least two CPUs. */
std::string two_cpus();
/** The switch that drops the guard is built in and may be written. */
std::string unguarded_switch();
} // namespace need

} // namespace slice_test

#define SLICE_EXT_NEEDS(reason_expression)                                                         \
	do {                                                                                       \
		const std::string slice_ext_reason_ = (reason_expression);                         \
		if (!slice_ext_reason_.empty()) {                                                  \
			if (slice_test::required())                                                \
				GTEST_FAIL() << slice_ext_reason_;                                 \
			GTEST_SKIP() << slice_ext_reason_;                                         \
		}                                                                                  \
	} while (0)

#endif
