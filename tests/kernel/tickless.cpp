// SPDX-License-Identifier: MIT
// CPUs without a tick and apart from the balancing of the others.
#include "contest.hpp"
#include "needs.hpp"
#include "subject.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace slice_test
{
namespace
{

/** Whether a list as "1" or "1-3,5" of a file in /sys/devices/system/cpu has the CPU. */
std::string listed(const std::string &file, int cpu)
{
	const std::string list =
		read_line("/sys/devices/system/cpu/" + file).value_or("no such file");
	std::istringstream in(list);
	for (std::string range; std::getline(in, range, ',');) {
		int first = -1;
		int last = -1;
		char dash = 0;
		std::istringstream(range) >> first >> dash >> last;
		if (first >= 0 && cpu >= first && cpu <= std::max(first, last))
			return {};
	}
	return "CPU " + std::to_string(cpu) + " is not in " + file + " (" + list +
	       "): boot with nohz_full= and isolcpus=domain";
}

class Tickless : public testing::Test
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(need::control());
		SLICE_EXT_NEEDS(need::real_time());
		// Isolated CPUs are not in the affinity that a program starts with.
		std::string reason = "there is one CPU only";
		for (cpu_ = 1; cpu_ < 8 && !reason.empty(); ++cpu_) {
			reason = listed("nohz_full", cpu_);
			if (reason.empty())
				reason = listed("isolated", cpu_);
			if (reason.empty())
				break;
		}
		SLICE_EXT_NEEDS(reason);
		length_ = std::make_unique<FileGuard>(path_sysctl, "100");
		ASSERT_EQ(length_->error(), 0);
		other_.cpu = cpu_;
	}

	int cpu_ = 0;
	Periodic::Setup other_;
	std::unique_ptr<FileGuard> length_;
};

TEST_F(Tickless, GrantsEndByTheirOwnTimer)
{
	const Contest result = contest(Demand::always, other_, 2 * second);
	describe("requesting always", result);
	ASSERT_EQ(result.error, 0);
	EXPECT_GT(result.counters["granted"], 50);
	// Without a tick nothing else would.
	EXPECT_GT(result.counters["ended_expired"], result.counters["granted"] / 2);
	EXPECT_EQ(result.counters["requests"],
	          result.counters["granted"] + result.counters.denied());
	EXPECT_GT(result.lateness.size(), 50U) << "the other thread hardly ran";
}

TEST_F(Tickless, ARealTimeWakeupIsRefusedFor)
{
	other_.policy = fifo(10);
	const Contest result = contest(Demand::always, other_, 2 * second);
	describe("real-time", result);
	ASSERT_EQ(result.error, 0);
	const auto wakeups = static_cast<std::int64_t>(result.lateness.size());
	EXPECT_GT(wakeups, 50);
	EXPECT_GE(result.counters["denied_nonfair"] + result.counters["ended_nonfair"],
	          wakeups / 2);
	EXPECT_EQ(result.counters["granted"], 0);
}

// Nobody else is there: no tick, no reschedule, nothing to be asked for.
TEST_F(Tickless, AloneThereIsNothingToAskFor)
{
	Subject subject(cpu_);
	ASSERT_EQ(subject.error(), 0);
	sleep_ns(200 * ms);
	const Counters before = Counters::of_machine(cpu_);
	sleep_ns(second);
	const Counters alone = Counters::of_machine(cpu_) - before;
	std::ostringstream text;
	text << "alone: " << alone << '\n';
	std::fputs(text.str().c_str(), stdout);
	EXPECT_LE(alone["requests"], 20) << "a tick would make some hundred";
	EXPECT_TRUE(subject.wait_progress(20 * second));
}

} // namespace
} // namespace slice_test
