// SPDX-License-Identifier: MIT
// The bound: an extension lasts as long as the sysctl says and no longer.
//
// The thread under test requests without pause and never yields, so each grant
// runs to its end. What the bound is worth is seen by the thread that waits: it
// may run later than without requests by the sysctl's value and one more timer
// interrupt.
#include "contest.hpp"
#include "fixture.hpp"

#include <gtest/gtest.h>

#include <string>

namespace slice_test
{
namespace
{

const std::int64_t duration = deterministic() ? 40 * ms : 300 * ms;

class Expiry : public OneCpu, public testing::WithParamInterface<int>
{
      protected:
	void SetUp() override
	{
		prepare(std::to_string(GetParam()));
	}
};

TEST_P(Expiry, IsHonoured)
{
	const std::int64_t length = GetParam() * us;
	const Periodic::Setup other;
	const Contest base = contest(Demand::none, other, duration);
	const Contest extended = contest(Demand::always, other, duration);
	describe("without requests", base);
	describe("requesting always", extended);
	ASSERT_EQ(base.error, 0);
	ASSERT_EQ(extended.error, 0);

	const auto wakeups = static_cast<std::int64_t>(extended.lateness.size());
	ASSERT_GT(wakeups, 20);
	EXPECT_EQ(base.counters["granted"], 0);
	EXPECT_GE(extended.counters["granted"], at_least(wakeups));
	EXPECT_GE(extended.counters["ended_expired"], at_least(extended.counters["granted"]));
	EXPECT_EQ(extended.counters["ended_yield"], 0);

	// On PREEMPT_RT the other thread's timer expires in ksoftirqd, an ordinary
	// thread with a turn of its own to wait for: its lateness tells nothing.
	if (!preempt_rt()) {
		const std::int64_t added = extended.median_lateness() - base.median_lateness();
		std::printf("sysctl %d us: the waiting thread ran %.2f us later\n", GetParam(),
		            static_cast<double>(added) / us);
		EXPECT_GE(added, deterministic() ? length - 500 : length / 2);
		EXPECT_LE(added, length + (deterministic() ? 3 * us : 200 * us));
	}

	// The user's own view misses the way back from the decision, so the
	// shortest may be over before the thread can look.
	if (deterministic()) {
		EXPECT_LE(quantile(extended.used, 1.0), length + 500);
	}
	if (length >= 5 * us) {
		ASSERT_FALSE(extended.used.empty());
		EXPECT_GE(median(extended.used), length - (deterministic() ? 1 : 4) * us);
	}
}

INSTANTIATE_TEST_SUITE_P(Microseconds, Expiry, testing::Values(1, 5, 30, 100),
                         [](const auto &info) { return std::to_string(info.param); });

} // namespace
} // namespace slice_test
