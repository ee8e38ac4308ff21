// SPDX-License-Identifier: MIT
// The scheduling policy decides who gets an extension, from the moment at which it changes. One CPU.
#include "fixture.hpp"
#include "periodic.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace slice_test
{
namespace
{

const std::int64_t phase = deterministic() ? 20 * ms : 200 * ms;
/** Beside a thread of SCHED_IDLE place_entity() multiplies another one's lag by some 340: it
 * can be long before that one is eligible again, and asks for the CPU. */
constexpr int most_phases = 50;
constexpr std::int64_t enough = 6;

class PolicyChange : public OneCpu
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(need::real_time());
		prepare("100");
	}

	/** Spins with the request set under one policy after the other; the account of each. */
	static std::vector<Counters> under(const std::vector<Policy> &policies)
	{
		std::vector<Counters> accounts;
		in_thread([&] {
			RseqArea area;
			ASSERT_EQ(opt_in(area), 0);
			for (const Policy &policy : policies) {
				ASSERT_EQ(apply(policy), 0);
				const Counters before = Counters::of_this_thread();
				Counters account;
				for (int i = 0; i < most_phases && account["requests"] < enough;
				     ++i) {
					const std::uint64_t end = ticks() + to_ticks(phase);
					while (ticks() < end)
						area.set_request(1);
					area.set_request(0);
					account = Counters::of_this_thread() - before;
				}
				accounts.push_back(account);
				report("policy", policy.policy, accounts.back());
			}
		});
		return accounts;
	}

	static void granted(const Counters &account)
	{
		EXPECT_GE(account["granted"], enough / 2);
		EXPECT_EQ(account["denied_class"], 0);
	}
	static void refused(const Counters &account, std::int64_t least)
	{
		EXPECT_EQ(account["granted"], 0);
		EXPECT_GE(account["denied_class"], least);
	}
};

TEST_F(PolicyChange, IdleAndBack)
{
	Periodic other({});
	const auto accounts = under({fair(), idle_policy(), fair()});
	ASSERT_EQ(accounts.size(), 3U);
	granted(accounts[0]);
	refused(accounts[1], 5);
	granted(accounts[2]);
}

TEST_F(PolicyChange, BatchIsOrdinary)
{
	Periodic other({});
	const auto accounts = under({batch(), fair()});
	ASSERT_EQ(accounts.size(), 2U);
	granted(accounts[0]);
	granted(accounts[1]);
}

TEST_F(PolicyChange, NiceIsOrdinary)
{
	Periodic other({});
	Policy low = fair();
	low.nice = 10;
	const auto accounts = under({low, fair()});
	ASSERT_EQ(accounts.size(), 2U);
	granted(accounts[0]);
	granted(accounts[1]);
}

// The one that asks for the CPU is above it.
TEST_F(PolicyChange, RealTimeAndBack)
{
	Periodic ordinary({});
	Periodic::Setup setup;
	setup.policy = fifo(20);
	setup.period = 1497 * us;
	Periodic urgent(setup);
	const auto accounts = under({fair(), fifo(10), fair()});
	ASSERT_EQ(accounts.size(), 3U);
	EXPECT_GT(accounts[0]["granted"], 5);
	EXPECT_GT(accounts[0]["denied_nonfair"] + accounts[0]["ended_nonfair"], 0);
	refused(accounts[1], 5);
	EXPECT_GT(accounts[2]["granted"], 5);
}

// Its own budget ends again and again, and somebody else is to run.
TEST_F(PolicyChange, DeadlineAndBack)
{
	if (allowed_cpus().size() > 1)
		GTEST_SKIP() << "a deadline thread cannot be pinned to one of several CPUs";
	Periodic other({});
	const auto accounts = under({fair(), deadline(500 * us, 2 * ms), fair()});
	ASSERT_EQ(accounts.size(), 3U);
	granted(accounts[0]);
	refused(accounts[1], 1);
	granted(accounts[2]);
}

} // namespace
} // namespace slice_test
