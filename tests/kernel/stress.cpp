// SPDX-License-Identifier: MIT
// Races between CPUs: one CPU's wake-ups against grants on another. Nothing here
// measures time; every wake-up must be answered and every grant accounted for.
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

long futex(std::atomic<std::uint32_t> &word, int operation, std::uint32_t value,
           const timespec *timeout = nullptr)
{
	static_assert(sizeof word == sizeof(std::uint32_t));
	return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

/** A thread that answers each call from another CPU. */
class Answering
{
      public:
	Answering(const Policy &policy, int cpu)
	{
		thread_ = std::thread([this, policy, cpu] {
			pin(cpu);
			error_ = apply(policy);
			std::uint32_t seen = 0;
			while (!stop_) {
				while (calls_ == seen && !stop_)
					futex(calls_, FUTEX_WAIT_PRIVATE, seen);
				seen = calls_;
				answered_.store(seen, std::memory_order_release);
				futex(answered_, FUTEX_WAKE_PRIVATE, INT_MAX);
			}
		});
	}
	~Answering()
	{
		stop_ = true;
		++calls_;
		futex(calls_, FUTEX_WAKE_PRIVATE, INT_MAX);
		thread_.join();
	}
	Answering(const Answering &) = delete;
	Answering &operator=(const Answering &) = delete;

	/** @return false when no answer came in time */
	bool call(std::int64_t timeout)
	{
		const std::uint32_t number = ++calls_;
		futex(calls_, FUTEX_WAKE_PRIVATE, INT_MAX);
		const std::int64_t end = now_ns() + timeout;
		for (;;) {
			const std::uint32_t now = answered_.load(std::memory_order_acquire);
			if (now == number)
				return true;
			if (now_ns() > end)
				return false;
			const timespec wait{0, 100 * ms};
			futex(answered_, FUTEX_WAIT_PRIVATE, now, &wait);
		}
	}
	int error() const
	{
		return error_;
	}

      private:
	std::atomic<std::uint32_t> calls_{0};
	std::atomic<std::uint32_t> answered_{0};
	std::atomic<bool> stop_{false};
	std::atomic<int> error_{0};
	std::thread thread_;
};

/** A thread that asks for extensions and leaves its sections in every way. */
class Requesting
{
      public:
	explicit Requesting(int cpu, unsigned seed)
	{
		thread_ = std::thread([this, cpu, seed] {
			pin(cpu);
			tid_ = thread_id();
			RseqArea area;
			error_ = opt_in(area);
			unsigned random = seed;
			while (!stop_.load(std::memory_order_relaxed)) {
				random = random * 1664525U + 1013904223U;
				area.set_request(1);
				const std::uint64_t end = ticks() + to_ticks(random >> 15);
				const unsigned manner = random >> 8 & 3;
				while (ticks() < end)
					if (manner == 1)
						area.set_request(1);
				if (manner == 0)
					syscall(SYS_getppid);
				else if (manner != 1 && leave(area) == 1)
					++yields_;
			}
			area.set_request(0);
			counters_ = Counters::of_this_thread();
		});
	}
	void stop()
	{
		stop_ = true;
		if (thread_.joinable())
			thread_.join();
	}
	~Requesting()
	{
		stop();
	}
	Requesting(const Requesting &) = delete;
	Requesting &operator=(const Requesting &) = delete;

	int error() const
	{
		return error_;
	}
	pid_t tid() const
	{
		return tid_;
	}
	std::int64_t yields() const
	{
		return yields_;
	}
	const Counters &counters() const
	{
		return counters_;
	}

      private:
	std::atomic<bool> stop_{false};
	std::atomic<int> error_{0};
	std::atomic<pid_t> tid_{0};
	std::int64_t yields_ = 0;
	Counters counters_;
	std::thread thread_;
};

class Stress : public testing::TestWithParam<const char *>
{
};

TEST_P(Stress, EveryRemoteWakeupIsAnswered)
{
	SLICE_EXT_NEEDS(need::control());
	SLICE_EXT_NEEDS(need::two_cpus());
	SLICE_EXT_NEEDS(need::real_time());
	const FileGuard length(path_sysctl, GetParam());
	const std::vector<int> cpus = allowed_cpus();
	const int here = cpus.front();
	const int there = cpus.back();
	// On a busy host the guest's processors hardly ever run together: as long
	// as it takes to see enough, within reason.
	constexpr std::int64_t least_time = 2 * second;
	constexpr std::int64_t most_time = 60 * second;
	constexpr std::int64_t timeout = 10 * second;
	constexpr std::uint64_t least_calls = 100;
	constexpr std::int64_t least_events = 5;

	const Counters machine_before = Counters::of_machine();
	std::vector<std::unique_ptr<Requesting>> requesters;
	for (unsigned i = 0; i < 2; ++i)
		requesters.push_back(std::make_unique<Requesting>(there, i + 1));
	std::uint64_t calls = 0;
	std::uint64_t moves = 0;
	std::vector<std::int64_t> urgent_ns;
	std::vector<std::int64_t> ordinary_ns;
	{
		Answering urgent(fifo(10), there);
		Answering ordinary(eager(), there);
		const EagerSoftirq softirq(there);
		Periodic::Setup sleeper;
		sleeper.cpu = there;
		Periodic local(sleeper);
		in_thread(
			[&] {
				const std::int64_t start = now_ns();
				const auto seen_enough = [&] {
					const Counters now =
						Counters::of_machine() - machine_before;
					return calls >= least_calls &&
				               now["granted"] > least_events &&
				               now["denied_nonfair"] + now["ended_nonfair"] >
				                       least_events;
				};
				unsigned random = 7;
				for (;;) {
					const std::int64_t elapsed = now_ns() - start;
					if (elapsed > most_time ||
				            (elapsed > least_time && seen_enough()))
						break;
					random = random * 1664525U + 1013904223U;
					const std::int64_t t0 = now_ns();
					ASSERT_TRUE(urgent.call(timeout)) << "after " << calls;
					const std::int64_t t1 = now_ns();
					ASSERT_TRUE(ordinary.call(timeout)) << "after " << calls;
					urgent_ns.push_back(t1 - t0);
					ordinary_ns.push_back(now_ns() - t1);
					calls += 2;
					spin(random >> 14);
					// The migration thread, above all others, has to get in.
					if (calls % 16 == 0) {
						const pid_t tid = requesters[0]->tid();
						EXPECT_EQ(pin(here, tid), 0);
						EXPECT_EQ(pin(there, tid), 0);
						++moves;
					}
				}
			},
			here);
		EXPECT_EQ(urgent.error(), 0);
		EXPECT_EQ(ordinary.error(), 0);
	}
	Counters sum;
	std::int64_t yields = 0;
	for (auto &requester : requesters) {
		requester->stop();
		EXPECT_EQ(requester->error(), 0);
		yields += requester->yields();
		sum = requester->counters() + sum;
	}
	const Counters machine = Counters::of_machine() - machine_before;

	std::printf(
		"real-time answers: median %.0f worst %.0f us; ordinary: median %.0f worst %.0f us\n",
		static_cast<double>(median(urgent_ns)) / us,
		static_cast<double>(quantile(urgent_ns, 1)) / us,
		static_cast<double>(median(ordinary_ns)) / us,
		static_cast<double>(quantile(ordinary_ns, 1)) / us);
	std::ostringstream text;
	text << calls << " wake-ups, " << moves << " moves; kernel: " << sum << '\n';
	std::fputs(text.str().c_str(), stdout);
	EXPECT_GE(calls, least_calls);
	EXPECT_GT(moves, 1U);
	EXPECT_GT(sum["granted"], least_events);
	EXPECT_GT(sum["denied_nonfair"] + sum["ended_nonfair"], least_events);
	EXPECT_EQ(sum["ended_yield"], yields);
	EXPECT_EQ(sum["requests"], sum["granted"] + sum.denied());
	EXPECT_EQ(sum["granted"], sum.ended());
	for (const char *name : counter_names)
		EXPECT_EQ(machine[name], sum[name]) << name;
}

INSTANTIATE_TEST_SUITE_P(Microseconds, Stress, testing::Values("5", "100"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace slice_test
