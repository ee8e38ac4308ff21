// SPDX-License-Identifier: MIT
// CPU bandwidth control: extensions do not let a group outrun its quota. One CPU.
#include "fixture.hpp"
#include "periodic.hpp"

#include <gtest/gtest.h>

namespace slice_test
{
namespace
{

constexpr std::int64_t length = 100 * us;
constexpr std::int64_t quota = 3 * ms;
constexpr std::int64_t period = 10 * ms;
const std::int64_t duration = deterministic() ? 300 * ms : second;

struct Spent {
	std::int64_t usage = 0; // ns
	std::int64_t periods = 0;
	std::int64_t throttled = 0;
	Counters counters;
};

class Quota : public OneCpu
{
      protected:
	void SetUp() override
	{
		prepare(std::to_string(length / us));
	}

	/** A thread of the group that never sleeps, and one outside that wants its CPU. */
	Spent spend(const ControlGroup &group, std::uint8_t request)
	{
		Spent spent;
		Periodic other({});
		in_thread([&] {
			RseqArea area;
			ASSERT_EQ(opt_in(area), 0);
			ASSERT_EQ(group.enter(thread_id()), 0);
			// From here on for whole periods: the first moment after a throttle.
			const std::int64_t throttled = group.value("cpu.stat", "nr_throttled");
			while (group.value("cpu.stat", "nr_throttled") == throttled)
				spin(100 * us);
			const Spent start = so_far(group);
			const Counters before = Counters::of_this_thread();
			const std::uint64_t end = ticks() + to_ticks(duration);
			while (ticks() < end)
				area.set_request(request);
			area.set_request(0);
			spent.counters = Counters::of_this_thread() - before;
			const Spent now = so_far(group);
			spent.usage = now.usage - start.usage;
			spent.periods = now.periods - start.periods;
			spent.throttled = now.throttled - start.throttled;
			ASSERT_EQ(ControlGroup::leave(thread_id()), 0);
		});
		std::printf("%s: %.3f ms in %lld periods of %.0f ms quota, throttled %lld times\n",
		            request ? "abuser" : "plain", static_cast<double>(spent.usage) / ms,
		            static_cast<long long>(spent.periods), static_cast<double>(quota) / ms,
		            static_cast<long long>(spent.throttled));
		return spent;
	}

      private:
	static Spent so_far(const ControlGroup &group)
	{
		Spent spent;
		spent.usage = group.value("cpu.stat", "usage_usec") * us;
		spent.periods = group.value("cpu.stat", "nr_periods");
		spent.throttled = group.value("cpu.stat", "nr_throttled");
		return spent;
	}
};

TEST_F(Quota, IsOutrunByAnExtensionPerPeriodAtMost)
{
	const ControlGroup group("slice-ext-test-outrun");
	SLICE_EXT_NEEDS(group.problem());
	ASSERT_EQ(group.set("cpu.max", std::to_string(quota / us) + " " + std::to_string(period / us)),
	          0);
	const Spent plain = spend(group, 0);
	const Spent abuser = spend(group, 1);
	report("granted", abuser.counters["granted"], abuser.counters);

	EXPECT_EQ(plain.counters["requests"], 0);
	EXPECT_GT(abuser.counters["granted"], abuser.periods / 2) << "nothing was abused";
	ASSERT_GT(plain.periods, duration / period / 2);
	ASSERT_GT(abuser.periods, duration / period / 2);
	EXPECT_GE(abuser.throttled, abuser.periods - 2) << "it was not held back each period";
	const auto per_period = [](const Spent &spent) {
		return static_cast<double>(spent.usage) / static_cast<double>(spent.periods);
	};
	EXPECT_LE(per_period(abuser), per_period(plain) + static_cast<double>(length));
	// The quota is accounted at ticks; what is too much is repaid in the next period, so over
	// all of them no more than one overrun is left.
	EXPECT_LE(abuser.usage, abuser.periods * quota + quota);
}

// Throttled most of the time, at ticks and by the timer of the period.
TEST_F(Quota, IsKeptWhenItIsHardlyAny)
{
	const ControlGroup group("slice-ext-test-least");
	SLICE_EXT_NEEDS(group.problem());
	ASSERT_EQ(group.set("cpu.max", "1000 10000"), 0);
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		ASSERT_EQ(group.enter(thread_id()), 0);
		const Counters before = Counters::of_this_thread();
		const std::uint64_t end = ticks() + to_ticks(300 * ms);
		while (ticks() < end)
			area.set_request(1);
		area.set_request(0);
		const Counters counters = Counters::of_this_thread() - before;
		ASSERT_EQ(ControlGroup::leave(thread_id()), 0);
		report("least quota", counters["requests"], counters);
		EXPECT_GT(counters["requests"], 0);
		EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
		EXPECT_EQ(counters["granted"], counters.ended());
	});
}

} // namespace
} // namespace slice_test
