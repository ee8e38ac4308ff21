// SPDX-License-Identifier: MIT
// The negative control of every latency test: with the guard dropped a
// real-time thread does wait, and the kernel says that it was dropped.
#include "contest.hpp"
#include "fixture.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace slice_test
{
namespace
{

const std::int64_t duration = deterministic() ? 40 * ms : 300 * ms;

bool tainted()
{
	constexpr unsigned long taint_test = 1UL << 18;
	return std::stoul(read_line("/proc/sys/kernel/tainted").value_or("0")) & taint_test;
}

class Guard : public OneCpu
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(need::real_time());
		SLICE_EXT_NEEDS(need::unguarded_switch());
		prepare("30");
	}
};

// First: nothing else may have dropped the guard before.
TEST_F(Guard, IsInPlaceAndTheKernelUntainted)
{
	const std::string state = read_line(path_unguarded).value_or("");
	EXPECT_TRUE(state == "0" || state == "N") << state;
	EXPECT_FALSE(tainted());
	EXPECT_NE(write_file(path_unguarded, "2"), 0);
	EXPECT_FALSE(tainted()) << "a refused value tainted";
	EXPECT_EQ(write_file(path_unguarded, "0"), 0);
	EXPECT_FALSE(tainted()) << "setting 0 drops nothing";
}

TEST_F(Guard, DroppedItDelaysRealTimeThreads)
{
	Periodic::Setup other;
	other.policy = fifo(1);
	const Contest guarded = contest(Demand::always, other, duration);
	Contest dropped;
	{
		const FileGuard drop(path_unguarded, "1");
		ASSERT_EQ(drop.error(), 0);
		EXPECT_TRUE(tainted());
		dropped = contest(Demand::always, other, duration);
	}
	const Contest restored = contest(Demand::always, other, duration);
	describe("guarded", guarded);
	describe("guard dropped", dropped);
	describe("restored", restored);
	ASSERT_EQ(guarded.error, 0);
	ASSERT_EQ(dropped.error, 0);
	ASSERT_EQ(restored.error, 0);

	const auto wakeups = static_cast<std::int64_t>(dropped.lateness.size());
	EXPECT_GE(dropped.counters["granted"], at_least(wakeups));
	EXPECT_GE(dropped.median_lateness(), guarded.median_lateness() + 25 * us);
	EXPECT_LE(restored.counters["granted"], wakeups / 4);
	EXPECT_LE(restored.median_lateness(),
	          guarded.median_lateness() + (deterministic() ? 2 * us : 20 * us));
	EXPECT_TRUE(tainted()) << "the mark stays";
}

} // namespace
} // namespace slice_test
