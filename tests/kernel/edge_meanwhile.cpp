// SPDX-License-Identifier: MIT
// What another CPU can do to a thread in the middle of a grant: signal, stop, kill it, take
// its memory away, complete its requests. No time is measured; the act is repeated until it
// has met enough grants.
#include "child.hpp"
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <sstream>
#include <thread>
#include <utility>

#include <liburing.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr std::int64_t patience = 20 * second;
constexpr std::int64_t most_time = 60 * second;
constexpr int acts_wanted = 12;
constexpr std::size_t page = 4096;

/** What a child that asks without pause shares with the test. */
struct Shared {
	alignas(64) unsigned char area[64];
	std::atomic<std::uint64_t> rounds;
	std::atomic<int> error;
	/** The child is to end by itself. */
	std::atomic<bool> stop;
	std::atomic<int> signals;
};

class EdgeMeanwhile : public testing::Test
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(need::control());
		SLICE_EXT_NEEDS(need::two_cpus());
		SLICE_EXT_NEEDS(need::real_time());
		sysctl_ = std::make_unique<FileGuard>(path_sysctl, "100");
		ASSERT_EQ(sysctl_->error(), 0);
		here_ = allowed_cpus().front();
		there_ = allowed_cpus().back();
		softirq_ = std::make_unique<EagerSoftirq>(there_);
		before_ = Counters::of_machine();
		Periodic::Setup ordinary;
		ordinary.cpu = there_;
		waiting_ = std::make_unique<Periodic>(ordinary);
		void *memory = mmap(nullptr, page, PROT_READ | PROT_WRITE,
		                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(memory, MAP_FAILED);
		shared_ = new (memory) Shared{};
		sched_getaffinity(0, sizeof affinity_, &affinity_);
		// Above the ordinary threads of this CPU, or it sees a grant too late.
		ASSERT_EQ(pin(here_), 0);
		ASSERT_EQ(apply(fifo(30)), 0);
	}
	void TearDown() override
	{
		if (!shared_)
			return;
		if (child_ > 0) {
			kill(child_, SIGKILL);
			child_outcome();
		}
		apply(fair());
		sched_setaffinity(0, sizeof affinity_, &affinity_);
		waiting_.reset();
		const Counters all = machine();
		std::ostringstream text;
		text << "kernel: " << all << '\n';
		std::fputs(text.str().c_str(), stdout);
		EXPECT_GE(all["granted"], acts_wanted);
		EXPECT_EQ(all["requests"], all["granted"] + all.denied());
		EXPECT_EQ(all["granted"], all.ended());
		munmap(shared_, page);
	}

	Counters machine() const
	{
		return Counters::of_machine() - before_;
	}
	RseqView area() const
	{
		return RseqView(shared_->area);
	}

	/** Starts child_: on the other CPU, asks until it is told to stop, or is stopped.
	 * @param beside what another thread of it does, on this CPU */
	void start_child(const std::function<void()> &beside = {})
	{
		ticks_per_ns();
		std::fflush(nullptr);
		std::memset(shared_->area, 0, sizeof shared_->area);
		shared_->rounds = 0;
		child_ = fork();
		if (child_ == 0)
			ask(beside);
		ASSERT_TRUE(wait_progress());
	}
	[[noreturn]] void ask(const std::function<void()> &beside)
	{
		// First of all: this CPU belongs to the parent.
		pin(there_);
		apply(fair());
		std::thread other;
		if (beside)
			other = std::thread([&] {
				pin(here_);
				apply(fifo(30));
				beside();
			});
		RseqView view = area();
		shared_->error = sys_rseq(view.base(), 64, 0);
		if (!shared_->error)
			shared_->error = set_enabled(true);
		while (!shared_->stop) {
			view.set_request(1);
			shared_->rounds.store(shared_->rounds + 1, std::memory_order_relaxed);
			// Hands off its memory: what becomes of that, the kernel is to find.
			if (view.granted())
				spin(150 * us);
		}
		view.set_request(0);
		_exit(shared_->error ? 1 : 0);
	}
	/** Spins until a grant runs. */
	bool wait_granted() const
	{
		const std::int64_t end = now_ns() + patience;
		while (!area().granted())
			if (now_ns() > end)
				return false;
		return true;
	}
	bool wait_progress() const
	{
		const std::uint64_t start = shared_->rounds;
		const std::int64_t end = now_ns() + patience;
		while (shared_->rounds <= start + 1) {
			if (now_ns() > end)
				return false;
			sleep_ns(ms);
		}
		return true;
	}
	Outcome child_outcome()
	{
		int status = 0;
		if (waitpid(std::exchange(child_, 0), &status, __WALL) < 0)
			return -1;
		return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	}
	void end_child()
	{
		shared_->stop = true;
		EXPECT_EQ(child_outcome(), 0);
		EXPECT_EQ(shared_->error, 0);
	}
	/** Acts again and again: often enough, and until what is @p wanted has been seen. */
	void repeat(
		const std::function<void()> &act,
		const std::function<bool()> &wanted = [] { return true; })
	{
		const std::int64_t end = now_ns() + most_time;
		int acts = 0;
		for (; acts < acts_wanted || !wanted(); ++acts) {
			ASSERT_LT(now_ns(), end)
				<< "none of " << acts << " met a grant: " << machine();
			act();
			if (HasFatalFailure())
				FAIL() << "act " << acts;
		}
		std::printf("%d acts\n", acts);
	}
	/** A grant was ended by what was to be done before user mode. */
	bool ended_by_work() const
	{
		return machine()["ended_work"] > 0;
	}

	int here_ = 0;
	int there_ = 0;
	Shared *shared_ = nullptr;
	std::unique_ptr<FileGuard> sysctl_;
	std::unique_ptr<EagerSoftirq> softirq_;
	std::unique_ptr<Periodic> waiting_;
	Counters before_;
	cpu_set_t affinity_{};
	pid_t child_ = 0;
};

TEST_F(EdgeMeanwhile, PtraceInterruptsIt)
{
	start_child();
	ASSERT_EQ(ptrace(PTRACE_SEIZE, child_, nullptr, nullptr), 0);
	const auto stop = [this] {
		ASSERT_EQ(ptrace(PTRACE_INTERRUPT, child_, nullptr, nullptr), 0);
		int status = 0;
		ASSERT_EQ(waitpid(child_, &status, __WALL), child_);
		ASSERT_TRUE(WIFSTOPPED(status));
	};
	int inside = 0;
	const auto act = [&] {
		ASSERT_TRUE(wait_granted());
		stop();
		// The kernel brings the word up to date when the thread runs again.
		inside += area().granted() != 0;
		ASSERT_EQ(ptrace(PTRACE_CONT, child_, nullptr, nullptr), 0);
		ASSERT_TRUE(wait_progress()) << "it stands still";
	};
	repeat(act, [&] { return inside > 0; });
	stop();
	ASSERT_EQ(ptrace(PTRACE_DETACH, child_, nullptr, nullptr), 0);
	end_child();
}

Shared *shared_of_handler;

TEST_F(EdgeMeanwhile, SignalsReachIt)
{
	shared_of_handler = shared_;
	struct sigaction action = {};
	action.sa_handler = [](int) { ++shared_of_handler->signals; };
	struct sigaction old = {};
	ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
	start_child();
	int sent = 0;
	repeat([&] {
		ASSERT_TRUE(wait_granted());
		ASSERT_EQ(kill(child_, SIGUSR1), 0);
		++sent;
		ASSERT_TRUE(wait_progress());
		EXPECT_EQ(shared_->signals, sent);
	});
	end_child();
	sigaction(SIGUSR1, &old, nullptr);
}

TEST_F(EdgeMeanwhile, ASignalKillsIt)
{
	const auto act = [this] {
		start_child();
		ASSERT_TRUE(wait_granted());
		ASSERT_EQ(kill(child_, SIGKILL), 0);
		EXPECT_EQ(child_outcome(), -SIGKILL);
	};
	repeat(act, [this] { return ended_by_work(); });
}

TEST_F(EdgeMeanwhile, ASiblingEndsTheProcess)
{
	const auto act = [this] {
		start_child([this] {
			sleep_ns(10 * ms);
			if (wait_granted())
				syscall(SYS_exit_group, 42);
		});
		EXPECT_EQ(child_outcome(), 42);
	};
	repeat(act, [this] { return ended_by_work(); });
}

constexpr int starts_disabled = 43;
const ChildMode disabled_mode("disabled", [] { return get_enabled() == 0 ? starts_disabled : 1; });

TEST_F(EdgeMeanwhile, ASiblingExecs)
{
	const auto act = [this] {
		start_child([this] {
			sleep_ns(10 * ms);
			if (wait_granted())
				become("disabled");
		});
		EXPECT_EQ(child_outcome(), starts_disabled);
	};
	repeat(act, [this] { return ended_by_work(); });
}

TEST_F(EdgeMeanwhile, ASiblingUnmapsTheArea)
{
	repeat([this] {
		start_child([this] {
			sleep_ns(10 * ms);
			if (wait_granted())
				munmap(shared_, page);
			pause();
		});
		EXPECT_EQ(child_outcome(), -SIGSEGV);
	});
}

TEST_F(EdgeMeanwhile, ASiblingMakesTheAreaReadOnly)
{
	repeat([this] {
		start_child([this] {
			sleep_ns(10 * ms);
			if (wait_granted())
				mprotect(shared_, page, PROT_READ);
			pause();
		});
		EXPECT_EQ(child_outcome(), -SIGSEGV);
	});
}

// Completions come from this CPU, as task work, while the ring's thread is over there.
TEST_F(EdgeMeanwhile, CompletionsReachIt)
{
	int pipe_ends[2];
	ASSERT_EQ(pipe(pipe_ends), 0);
	std::atomic<unsigned> ready{0};
	std::atomic<unsigned> inside{0};
	std::atomic<int> problem{0};
	std::atomic<bool> started{false};
	std::thread asking([&] {
		pin(there_);
		apply(fair());
		io_uring ring{};
		RseqView view = area();
		problem = -io_uring_queue_init(64, &ring, 0);
		if (problem)
			return;
		problem = sys_rseq(view.base(), 64, 0);
		if (!problem)
			problem = set_enabled(true);
		io_uring_prep_poll_multishot(io_uring_get_sqe(&ring), pipe_ends[0], POLLIN);
		if (!problem && io_uring_submit(&ring) != 1)
			problem = EIO;
		started = true;
		bool granted = false;
		while (!shared_->stop && !problem) {
			view.set_request(1);
			const unsigned now = io_uring_cq_ready(&ring);
			const bool still = view.granted();
			if (granted && still)
				inside += now - ready;
			ready = now;
			granted = still;
		}
		view.set_request(0);
		sys_rseq(view.base(), 64, rseq_unregister);
		io_uring_queue_exit(&ring);
	});
	while (!started && !problem)
		sleep_ns(ms);
	unsigned sent = 0;
	if (!problem)
		repeat([&] {
			EXPECT_TRUE(wait_granted());
			ASSERT_EQ(write(pipe_ends[1], "", 1), 1);
			++sent;
			const std::int64_t end = now_ns() + patience;
			while (ready < sent && now_ns() < end)
				sleep_ns(ms);
			ASSERT_EQ(ready, sent) << "it did not arrive";
		});
	shared_->stop = true;
	asking.join();
	EXPECT_EQ(problem, 0);
	std::printf("%u arrived, %u of them inside a grant\n", ready.load(), inside.load());
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

// The polling thread is on this CPU, so what is submitted inside a grant is often done
// before its end.
TEST_F(EdgeMeanwhile, APollingThreadServesIt)
{
	constexpr int submits = 50;
	// The polling thread is an ordinary one, and has this CPU.
	ASSERT_EQ(apply(fair()), 0);
	int live = 0;
	int done_inside = 0;
	int done = 0;
	in_thread(
		[&] {
			io_uring ring{};
			io_uring_params parameters{};
			parameters.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF;
			parameters.sq_thread_cpu = static_cast<unsigned>(here_);
			parameters.sq_thread_idle = 10'000;
			ASSERT_EQ(io_uring_queue_init_params(64, &ring, &parameters), 0);
			RseqView view = area();
			ASSERT_EQ(sys_rseq(view.base(), 64, 0), 0);
			ASSERT_EQ(set_enabled(true), 0);
			for (int i = 0; i < submits; ++i) {
				io_uring_prep_nop(io_uring_get_sqe(&ring));
				ASSERT_TRUE(
					until_granted(view, ticks() + to_ticks(patience)).granted);
				EXPECT_EQ(io_uring_submit(&ring), 1);
				live += view.granted();
				bool ready = false;
				while (view.granted() && !ready)
					ready = io_uring_cq_ready(&ring) > 0;
				done_inside += ready && view.granted();
				leave(view);
				const std::int64_t end = now_ns() + patience;
				while (!io_uring_cq_ready(&ring) && now_ns() < end) {
				}
				io_uring_cqe *cqe = nullptr;
				ASSERT_EQ(io_uring_peek_cqe(&ring, &cqe), 0);
				done += cqe->res == 0;
				io_uring_cqe_seen(&ring, cqe);
			}
			EXPECT_EQ(sys_rseq(view.base(), 64, rseq_unregister), 0);
			io_uring_queue_exit(&ring);
		},
		there_);
	std::printf("%d live after the submit, %d done inside\n", live, done_inside);
	EXPECT_EQ(done, submits);
	EXPECT_GT(live, submits / 4);
}

} // namespace
} // namespace slice_test
