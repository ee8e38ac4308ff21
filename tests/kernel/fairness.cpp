// SPDX-License-Identifier: MIT
// Extra time is charged: who always asks and never yields gets no more than its
// weight's share.
#include "counters.hpp"
#include "fixture.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>

namespace slice_test
{
namespace
{

std::int64_t own_cpu_time()
{
	timespec ts{};
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * second + ts.tv_nsec;
}

/** A thread that spins and tells how much CPU time it got. */
struct Hog {
	std::thread thread;
	std::int64_t cpu_time = 0;
	Counters counters;
	int error = 0;

	Hog(bool abuser, int nice, std::atomic<int> &ready, const std::atomic<bool> &stop)
	{
		thread = std::thread([this, abuser, nice, &ready, &stop] {
			pin(test_cpu());
			RseqArea area;
			error = opt_in(area);
			Policy policy = fair();
			policy.nice = nice;
			if (!error)
				error = apply(policy);
			const std::uint8_t request = abuser ? 1 : 0;
			++ready;
			while (ready.load(std::memory_order_relaxed) < 2) {
			}
			const Counters before = Counters::of_this_thread();
			const std::int64_t start = own_cpu_time();
			while (!stop.load(std::memory_order_relaxed))
				area.set_request(request);
			area.set_request(0);
			cpu_time = own_cpu_time() - start;
			counters = Counters::of_this_thread() - before;
		});
	}
};

class Fairness : public OneCpu
{
      protected:
	void SetUp() override
	{
		prepare("100");
	}

	/** @return the abuser's part of the time both got, per cent */
	double share(int nice_of_the_other, std::int64_t time)
	{
		std::atomic<int> ready{0};
		std::atomic<bool> stop{false};
		Hog abuser(true, 0, ready, stop);
		Hog other(false, nice_of_the_other, ready, stop);
		sleep_ns(time);
		stop = true;
		abuser.thread.join();
		other.thread.join();
		EXPECT_EQ(abuser.error, 0);
		EXPECT_EQ(other.error, 0);
		EXPECT_GT(abuser.counters["granted"], 20) << "nothing was abused";
		EXPECT_EQ(other.counters["granted"], 0);
		const double part = 100.0 * static_cast<double>(abuser.cpu_time) /
		                    static_cast<double>(abuser.cpu_time + other.cpu_time);
		report("grants", abuser.counters["granted"], abuser.counters);
		std::printf("abuser: %.2f %% of %.0f ms\n", part,
		            static_cast<double>(abuser.cpu_time + other.cpu_time) / ms);
		return part;
	}
};

TEST_F(Fairness, AnAbuserGetsHalfBesideAnEqual)
{
	EXPECT_NEAR(share(0, deterministic() ? second : 5 * second), 50.0, 1.0);
}

} // namespace
} // namespace slice_test
