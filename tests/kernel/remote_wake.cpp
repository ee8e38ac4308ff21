// SPDX-License-Identifier: MIT
// A real-time thread woken from another CPU beside a thread that asks for ever. Clocks of two
// emulated CPUs tell nothing about each other, so what is looked at is whether each wake-up is
// answered, and whether the kernel refused or ended extra time for one.
#include "counters.hpp"
#include "needs.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

enum class Channel { futex, eventfd };

constexpr std::uint32_t all_calls = 600;
/** An ordinary thread's own slice, shorter than any tick: each tick ends it. */
constexpr std::int64_t short_slice = 100'000;

struct Shared {
	std::atomic<std::uint32_t> called{0};
	/** The call of this number has left the kernel: the thread is runnable. */
	std::atomic<std::uint32_t> complete{0};
	std::atomic<std::uint32_t> answered{0};
	std::atomic<bool> granted{false};
	std::atomic<bool> stop{false};
};

Policy with_short_slice()
{
	Policy policy = fair();
	policy.runtime = short_slice;
	return policy;
}

/** The real-time thread. A lost wake-up leaves a call without an answer. */
class Answering
{
      public:
	Answering(Channel channel, Shared &shared, int cpu)
		: channel_(channel), shared_(shared), event_(::eventfd(0, EFD_CLOEXEC))
	{
		thread_ = std::thread([this, cpu] {
			pin(cpu);
			error_ = event_ < 0 ? errno : apply(fifo(10));
			while (!shared_.stop) {
				const std::uint32_t before = shared_.answered;
				const std::uint32_t now = wait(before);
				if (now != before + 1)
					++out_of_order_;
				shared_.answered.store(now, std::memory_order_release);
			}
		});
	}
	~Answering()
	{
		shared_.stop = true;
		call(shared_.answered + 1);
		thread_.join();
		close(event_);
	}
	Answering(const Answering &) = delete;
	Answering &operator=(const Answering &) = delete;

	void call(std::uint32_t number)
	{
		shared_.called = number;
		if (channel_ == Channel::futex) {
			syscall(SYS_futex, &shared_.called, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr,
			        0);
		} else {
			const std::uint64_t one = 1;
			if (write(event_, &one, sizeof one) != sizeof one)
				error_ = errno;
		}
		shared_.complete.store(number, std::memory_order_release);
	}
	int error() const
	{
		return error_;
	}
	unsigned out_of_order() const
	{
		return out_of_order_;
	}

      private:
	std::uint32_t wait(std::uint32_t before)
	{
		if (channel_ == Channel::futex) {
			while (shared_.called == before)
				syscall(SYS_futex, &shared_.called, FUTEX_WAIT_PRIVATE, before,
				        nullptr, nullptr, 0);
			return shared_.called;
		}
		std::uint64_t count = 0;
		if (read(event_, &count, sizeof count) != sizeof count)
			error_ = errno;
		return before + static_cast<std::uint32_t>(count);
	}

	Channel channel_;
	Shared &shared_;
	int event_;
	std::atomic<int> error_{0};
	std::atomic<unsigned> out_of_order_{0};
	std::thread thread_;
};

struct Outcome {
	std::uint32_t calls = 0;
	unsigned unanswered = 0;
	unsigned out_of_order = 0;
	int error = 0;
	/** Turns of the asking thread's loop after each complete wake-up, before its answer. */
	std::vector<std::int64_t> held;
	/** Turns inside each grant that no wake-up disturbed. */
	std::vector<std::int64_t> whole;
	Counters counters;

	std::int64_t worst_held() const
	{
		return quantile(held, 1);
	}
	std::int64_t held_for(std::int64_t turns) const
	{
		return std::count_if(held.begin(), held.end(),
		                     [&](std::int64_t one) { return one >= turns; });
	}
};

void ask_for_ever(Shared &shared, Outcome &outcome)
{
	RseqArea area;
	outcome.error = opt_in(area);
	if (!outcome.error)
		outcome.error = apply(with_short_slice());
	if (outcome.error)
		return;
	const Counters before = Counters::of_this_thread();
	std::int64_t inside = 0;
	bool disturbed = false;
	while (!shared.stop.load(std::memory_order_relaxed)) {
		const std::uint32_t complete = shared.complete.load(std::memory_order_acquire);
		if (complete != shared.answered.load(std::memory_order_acquire)) {
			if (complete < outcome.held.size())
				++outcome.held[complete];
			disturbed = true;
		}
		const std::uint32_t word = area.ctrl();
		const bool granted = word & 0xff00;
		if (granted) {
			++inside;
		} else if (inside) {
			if (!disturbed && outcome.whole.size() < outcome.whole.capacity())
				outcome.whole.push_back(inside);
			inside = 0;
		}
		if (!inside)
			disturbed = false;
		shared.granted.store(granted, std::memory_order_relaxed);
		if (!word)
			area.set_request(1);
	}
	area.set_request(0);
	outcome.counters = Counters::of_this_thread() - before;
}

Outcome call_beside_asker(Channel channel)
{
	constexpr std::int64_t answer_time = 10 * second;
	constexpr std::int64_t most_time = 60 * second;
	const int here = allowed_cpus().front();
	const int there = allowed_cpus().back();
	Shared shared;
	Outcome outcome;
	outcome.held.resize(all_calls + 1);
	outcome.whole.reserve(10'000);
	{
		Answering answering(channel, shared, there);
		std::thread asker([&] {
			pin(there);
			ask_for_ever(shared, outcome);
		});
		std::thread hog([&] {
			pin(there);
			apply(with_short_slice());
			while (!shared.stop.load(std::memory_order_relaxed)) {
			}
		});
		in_thread(
			[&] {
				const std::int64_t end = now_ns() + most_time;
				unsigned random = 7;
				for (std::uint32_t n = 1; n <= all_calls && now_ns() < end; ++n) {
					random = random * 1664525U + 1013904223U;
					// Half of them at any moment, half into a grant.
					spin(random >> 12);
					const std::int64_t patience = now_ns() + 20 * ms;
					while (n % 2 && !shared.granted && now_ns() < patience) {
					}
					spin((random >> 4) % 16384);
					answering.call(n);
					outcome.calls = n;
					const std::int64_t late = now_ns() + answer_time;
					while (shared.answered != n && now_ns() < late) {
					}
					if (shared.answered != n) {
						++outcome.unanswered;
						break;
					}
				}
				shared.stop = true;
			},
			here);
		asker.join();
		hog.join();
		outcome.out_of_order = answering.out_of_order();
		if (!outcome.error)
			outcome.error = answering.error();
	}
	return outcome;
}

void describe(const char *what, const Outcome &outcome, std::int64_t whole)
{
	std::ostringstream text;
	text << what << ": " << outcome.calls
	     << " wake-ups, asking thread's turns before the answer: "
	     << "worst " << outcome.worst_held() << ", " << outcome.held_for(whole / 2)
	     << " times half of a grant's " << whole << " or more; kernel: " << outcome.counters
	     << '\n';
	std::fputs(text.str().c_str(), stdout);
}

class RemoteWake : public testing::TestWithParam<Channel>
{
};

TEST_P(RemoteWake, IsNotLostAndEndsOrPreventsGrants)
{
	SLICE_EXT_NEEDS(need::control());
	SLICE_EXT_NEEDS(need::two_cpus());
	SLICE_EXT_NEEDS(need::real_time());
	SLICE_EXT_NEEDS(need::unguarded_switch());
	// Long against what the emulation of an interrupt between CPUs takes.
	const FileGuard length(path_sysctl, "100");
	ASSERT_EQ(length.error(), 0);
	constexpr std::uint32_t least_calls = all_calls / 4;
	constexpr std::size_t least_grants = 20;

	const Outcome guarded = call_beside_asker(GetParam());
	ASSERT_EQ(guarded.error, 0);
	ASSERT_GE(guarded.whole.size(), least_grants);
	const std::int64_t whole = median(guarded.whole);
	Outcome dropped;
	{
		const FileGuard drop(path_unguarded, "1");
		ASSERT_EQ(drop.error(), 0);
		dropped = call_beside_asker(GetParam());
	}
	describe("guarded", guarded, whole);
	describe("guard dropped", dropped, whole);

	for (const Outcome *outcome : {&std::as_const(guarded), &std::as_const(dropped)}) {
		EXPECT_EQ(outcome->error, 0);
		EXPECT_GE(outcome->calls, least_calls);
		EXPECT_EQ(outcome->unanswered, 0U);
		EXPECT_EQ(outcome->out_of_order, 0U);
		EXPECT_GT(outcome->counters["granted"], 0);
		EXPECT_EQ(outcome->counters["granted"], outcome->counters.ended());
	}
	// The turns are printed only: an emulated CPU may run on for milliseconds before it sees an
	// interrupt from another one, also with the sysctl at 0. The kernel's account is exact.
	EXPECT_GT(guarded.counters["denied_nonfair"] + guarded.counters["ended_nonfair"], 0);
	EXPECT_EQ(dropped.counters["denied_nonfair"] + dropped.counters["ended_nonfair"], 0)
		<< "the control shows nothing";
}

INSTANTIATE_TEST_SUITE_P(By, RemoteWake, testing::Values(Channel::futex, Channel::eventfd),
                         [](const auto &info) {
				 return info.param == Channel::futex ? "futex" : "eventfd";
			 });

} // namespace
} // namespace slice_test
