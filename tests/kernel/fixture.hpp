// SPDX-License-Identifier: MIT
/**
 * @file fixture.hpp
 * What the tests on one CPU share.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_FIXTURE_HPP
#define SLICE_EXT_TESTS_KERNEL_FIXTURE_HPP

#include "counters.hpp"
#include "needs.hpp"
#include "requester.hpp"
#include "system.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

namespace slice_test
{

class OneCpu : public testing::Test
{
      protected:
	/** Checks the needs and sets the sysctl; for SetUp(). */
	void prepare(const std::string &delay_us)
	{
		SLICE_EXT_NEEDS(need::control());
		sysctl_ = std::make_unique<FileGuard>(path_sysctl, delay_us);
		softirq_ = std::make_unique<EagerSoftirq>(test_cpu());
		ASSERT_EQ(sysctl_->error(), 0);
		ASSERT_EQ(sysctl_->get(), delay_us);
	}

	/** The value of ticks() at which a wait for one event has gone wrong. */
	static std::uint64_t patience()
	{
		return ticks() + to_ticks(50 * ms);
	}

	/** How many of @p expected must have come out as told. On a machine whose
	 * time the tests do not control, a stall may end any grant. */
	static std::int64_t at_least(std::int64_t expected)
	{
		return deterministic() ? expected * 9 / 10 : expected / 2;
	}

	static void report(const char *what, std::int64_t count, const Counters &counters)
	{
		std::ostringstream text;
		text << what << ' ' << count << "; kernel: " << counters;
		std::puts(text.str().c_str());
	}

	std::unique_ptr<FileGuard> sysctl_;
	std::unique_ptr<EagerSoftirq> softirq_;
};

} // namespace slice_test

#endif
