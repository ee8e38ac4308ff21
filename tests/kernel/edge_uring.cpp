// SPDX-License-Identifier: MIT
// io_uring: its task work, its system call and its own thread, beside grants.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include <liburing.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 20;

/** An io_uring of the calling thread. */
class Ring
{
      public:
	explicit Ring(io_uring_params parameters = {})
		: error_(-io_uring_queue_init_params(64, &ring_, &parameters))
	{
	}
	~Ring()
	{
		if (!error_)
			io_uring_queue_exit(&ring_);
	}
	Ring(const Ring &) = delete;
	Ring &operator=(const Ring &) = delete;

	int error() const
	{
		return error_;
	}
	io_uring *get()
	{
		return &ring_;
	}
	/** Completions that wait to be taken. Makes no system call. */
	unsigned ready() const
	{
		return io_uring_cq_ready(&ring_);
	}
	/** Takes one that is there. @return its result */
	int take()
	{
		io_uring_cqe *cqe = nullptr;
		if (io_uring_peek_cqe(&ring_, &cqe) != 0)
			return -EAGAIN;
		const int result = cqe->res;
		io_uring_cqe_seen(&ring_, cqe);
		return result;
	}

      private:
	io_uring ring_{};
	int error_;
};

class EdgeUring : public Edge
{
      protected:
	void SetUp() override
	{
		Edge::SetUp();
		if (IsSkipped() || HasFatalFailure())
			return;
		if (const int error = Ring().error())
			GTEST_SKIP() << "no io_uring: " << std::strerror(error);
	}
};

TEST_F(EdgeUring, ASubmitInsideAGrantEndsItAndIsDone)
{
	in_thread([] {
		RseqArea area;
		Ring ring;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			io_uring_prep_nop(io_uring_get_sqe(ring.get()));
			ASSERT_TRUE(get_grant(area));
			EXPECT_EQ(io_uring_submit(ring.get()), 1);
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(leave(area), -1);
			ASSERT_EQ(ring.ready(), 1U);
			EXPECT_EQ(ring.take(), 0);
		}
		const Counters counters = Counters::of_this_thread() - before;
		expect_about(counters, "granted", rounds);
		expect_about(counters, "ended_syscall", rounds);
	});
}

/** When the completions come, from the wake-up that asks for the CPU. */
struct Arrival {
	const char *name;
	std::int64_t after;
	/** Another thread wakes up at the same moment. */
	bool with_another;

	friend std::ostream &operator<<(std::ostream &out, const Arrival &arrival)
	{
		return out << arrival.name;
	}
};

class EdgeUringCompletion : public EdgeUring, public testing::WithParamInterface<Arrival>
{
};

// Timeouts, because they complete by task work that an interrupt brings. On PREEMPT_RT
// they expire in ksoftirqd, which waits for the end of the grant itself: there no more
// is to be seen than that all of it arrives.
TEST_P(EdgeUringCompletion, ArrivesInASection)
{
	const auto [name, after, with_another] = GetParam();
	other_.reset();
	Periodic::Setup setup;
	setup.first = now_ns() + 20 * ms;
	setup.policy = eager(200 * us);
	other_ = std::make_unique<Periodic>(setup);
	std::unique_ptr<Periodic> another;
	if (with_another) {
		Periodic::Setup same = setup;
		same.first += after;
		same.policy = eager(100 * us);
		another = std::make_unique<Periodic>(same);
	}
	in_thread([&] {
		RseqArea area;
		Ring ring;
		ASSERT_EQ(opt_in(area), 0);
		std::vector<__kernel_timespec> times(rounds);
		for (int i = 0; i < rounds; ++i) {
			const std::int64_t at = setup.first + after + i * setup.period;
			times[i] = {at / second, at % second};
			io_uring_prep_timeout(io_uring_get_sqe(ring.get()), &times[i], 0,
			                      IORING_TIMEOUT_ABS);
		}
		ASSERT_EQ(io_uring_submit(ring.get()), rounds);
		const Counters before = Counters::of_this_thread();
		unsigned inside = 0;
		unsigned arrived = 0;
		bool granted = false;
		const std::uint64_t end = ticks() + to_ticks((rounds + 40) * ms);
		area.set_request(1);
		const std::uint64_t until = patience();
		while (ticks() < end || (arrived < rounds && ticks() < until)) {
			const std::uint32_t word = area.ctrl();
			const unsigned ready = ring.ready();
			// Granted before and after.
			if (granted && word == ctrl_granted)
				inside += ready - arrived;
			arrived = ready;
			granted = word == ctrl_granted;
			if (word == ctrl_idle)
				area.set_request(1);
		}
		area.set_request(0);
		const Counters counters = Counters::of_this_thread() - before;
		std::printf("%u arrived, %u of them inside a grant\n", arrived, inside);
		report(name, arrived, counters);
		EXPECT_EQ(arrived, static_cast<unsigned>(rounds));
		for (unsigned i = 0; i < arrived; ++i)
			EXPECT_EQ(ring.take(), -ETIME);
		EXPECT_GT(counters["granted"], at_least(rounds));
		if (preempt_rt())
			return;
		if (after == 0) {
			EXPECT_GE(counters["denied_work"], at_least(rounds));
		} else if (with_another) {
			EXPECT_GE(counters["ended_work"], at_least(rounds));
		} else {
			EXPECT_GE(inside, at_least(rounds));
			expect_about(counters, "ended_work", 0);
		}
	});
}

INSTANTIATE_TEST_SUITE_P(At, EdgeUringCompletion,
                         testing::Values(Arrival{"WithTheWakeUp", 0, false},
                                         Arrival{"InTheGrant", 30 * us, false},
                                         Arrival{"InTheGrantWithAnotherWakeUp", 25 * us, true}),
                         [](const auto &info) { return info.param.name; });

// On the same CPU, so that it is what the thread has to share the CPU with.
TEST_F(EdgeUring, ASubmitToAPollingThreadLeavesTheGrantAlone)
{
	in_thread([] {
		RseqArea area;
		io_uring_params parameters{};
		parameters.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF;
		parameters.sq_thread_cpu = static_cast<unsigned>(test_cpu());
		parameters.sq_thread_idle = 10'000;
		Ring ring(parameters);
		ASSERT_EQ(ring.error(), 0);
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		int live = 0;
		int yielded = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			io_uring_prep_nop(io_uring_get_sqe(ring.get()));
			EXPECT_EQ(io_uring_submit(ring.get()), 1);
			live += area.ctrl() == ctrl_granted;
			yielded += leave(area) == 1;
			const std::uint64_t until = ticks() + to_ticks(second);
			while (!ring.ready() && ticks() < until) {
			}
			ASSERT_EQ(ring.ready(), 1U);
			EXPECT_EQ(ring.take(), 0);
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("live after the submit", live, counters);
		EXPECT_GE(live, at_least(rounds));
		EXPECT_GE(yielded, at_least(rounds));
		EXPECT_EQ(counters["ended_yield"], yielded);
	});
}

} // namespace
} // namespace slice_test
