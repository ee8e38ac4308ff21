// SPDX-License-Identifier: MIT
// kernel.sched_preempt_delay_us
#include "counters.hpp"
#include "fixture.hpp"
#include "periodic.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

namespace slice_test
{
namespace
{

class Sysctl : public OneCpu
{
      protected:
	void SetUp() override
	{
		prepare("30");
	}
};

TEST_F(Sysctl, TakesItsRange)
{
	for (const char *value : {"0", "1", "9", "10", "99", "100"}) {
		EXPECT_EQ(sysctl_->set(value), 0) << value;
		EXPECT_EQ(sysctl_->get(), value);
	}
}

TEST_F(Sysctl, RefusesTheRestAndKeepsItsValue)
{
	for (const char *value :
	     {"-1", "101", "1000", "4294967296", "4294967326", "text", "x1", "1.5"}) {
		EXPECT_EQ(sysctl_->set(value), EINVAL) << value;
		EXPECT_EQ(sysctl_->get(), "30") << "after " << value;
	}
}

TEST_F(Sysctl, ZeroStopsNewGrantsAtOnce)
{
	ASSERT_EQ(sysctl_->set("100"), 0);
	Periodic other({});
	std::atomic<bool> stop{false};
	std::thread spinning([&] {
		pin(test_cpu());
		RseqArea area;
		EXPECT_EQ(opt_in(area), 0);
		while (!stop.load(std::memory_order_relaxed))
			area.set_request(1);
	});
	constexpr std::int64_t phase = 50 * ms;
	const auto machine = [] { return Counters::of_machine(test_cpu()); };

	const Counters start = machine();
	sleep_ns(phase);
	const Counters on = machine() - start;
	ASSERT_EQ(sysctl_->set("0"), 0);
	const Counters at_zero = machine();
	sleep_ns(phase);
	const Counters off = machine() - at_zero;
	ASSERT_EQ(sysctl_->set("100"), 0);
	const Counters at_return = machine();
	sleep_ns(phase);
	const Counters again = machine() - at_return;
	stop = true;
	spinning.join();

	std::ostringstream text;
	text << "at 100: " << on << "\nat 0: " << off << "\nat 100: " << again << '\n';
	std::fputs(text.str().c_str(), stdout);
	EXPECT_GT(on["granted"], 10);
	EXPECT_EQ(on["denied_off"], 0);
	EXPECT_EQ(off["granted"], 0);
	EXPECT_GT(off["denied_off"], 10);
	EXPECT_GT(again["granted"], 10);
	EXPECT_EQ(again["denied_off"], 0);
}

} // namespace
} // namespace slice_test
