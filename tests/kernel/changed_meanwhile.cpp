// SPDX-License-Identifier: MIT
// What another CPU can do to a thread in the middle of an extension: change its policy, lend it a
// priority, move it to another CPU or group, freeze it, take its CPU away. No time is measured; the
// thread has to go on afterwards, and every grant has to be accounted for.
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "subject.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <sstream>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr std::int64_t patience = 20 * second;
constexpr int hits_wanted = 12;

class ChangedMeanwhile : public testing::Test
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
		Periodic::Setup ordinary;
		ordinary.cpu = there_;
		waiting_ = std::make_unique<Periodic>(ordinary);
		subject_ = std::make_unique<Subject>(there_);
		ASSERT_EQ(subject_->error(), 0);
	}

	/** Does @p change while an extension runs and then @p back, again and again; @return how
	 * often an extension was running a moment before. */
	int change(const std::function<int()> &change, const std::function<int()> &back)
	{
		int hits = 0;
		in_thread(
			[&] {
				// Above the ordinary threads of this CPU, or it sees a grant too late.
				ASSERT_EQ(apply(fifo(30)), 0);
				while (hits < hits_wanted) {
					ASSERT_TRUE(subject_->wait_granted(patience))
						<< "no grant after " << hits << " changes";
					++hits;
					ASSERT_EQ(change(), 0);
					sleep_ns(3 * ms);
					ASSERT_EQ(back(), 0);
					ASSERT_TRUE(subject_->wait_progress(patience))
						<< "it stands still after change " << hits;
				}
			},
			here_);
		return hits;
	}

	/** The account has no hole, and something of each kind happened. */
	void settle()
	{
		subject_->stop();
		const Counters &counters = subject_->counters();
		std::ostringstream text;
		text << "kernel: " << counters << '\n';
		std::fputs(text.str().c_str(), stdout);
		EXPECT_GE(counters["granted"], hits_wanted);
		EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
		EXPECT_EQ(counters["granted"], counters.ended());
	}

	int policy(const Policy &policy) const
	{
		return apply(policy, subject_->tid());
	}

	int here_ = 0;
	int there_ = 0;
	std::unique_ptr<FileGuard> sysctl_;
	std::unique_ptr<EagerSoftirq> softirq_;
	std::unique_ptr<Periodic> waiting_;
	std::unique_ptr<Subject> subject_;
};

TEST_F(ChangedMeanwhile, PolicyToRealTimeAndBack)
{
	EXPECT_EQ(change([&] { return policy(fifo(10)); }, [&] { return policy(fair()); }), hits_wanted);
	settle();
}

TEST_F(ChangedMeanwhile, PolicyToIdleAndBack)
{
	EXPECT_EQ(change([&] { return policy(idle_policy()); }, [&] { return policy(fair()); }),
	          hits_wanted);
	settle();
	EXPECT_GT(subject_->counters()["denied_class"], 0);
}

TEST_F(ChangedMeanwhile, PolicyToBatchAndBack)
{
	EXPECT_EQ(change([&] { return policy(batch()); }, [&] { return policy(fair()); }), hits_wanted);
	settle();
}

TEST_F(ChangedMeanwhile, Nice)
{
	Policy nice = fair();
	nice.nice = 15;
	EXPECT_EQ(change([&] { return policy(nice); }, [&] { return policy(fair()); }), hits_wanted);
	settle();
}

TEST_F(ChangedMeanwhile, MovedToAnotherCpuAndBack)
{
	EXPECT_EQ(change([&] { return pin(here_, subject_->tid()); },
	                 [&] { return pin(there_, subject_->tid()); }),
	          hits_wanted);
	settle();
	const Counters &counters = subject_->counters();
	// The migration thread is no fair one.
	EXPECT_GT(counters["ended_nonfair"] + counters["ended_switch"] + counters["denied_nonfair"], 0);
}

TEST_F(ChangedMeanwhile, MovedToAGroupWithAQuotaAndBack)
{
	const ControlGroup group("slice-ext-test-moved");
	SLICE_EXT_NEEDS(group.problem());
	ASSERT_EQ(group.set("cpu.max", "1000 10000"), 0);
	EXPECT_EQ(change([&] { return group.enter(subject_->tid()); },
	                 [&] { return ControlGroup::leave(subject_->tid()); }),
	          hits_wanted);
	settle();
}

TEST_F(ChangedMeanwhile, FrozenAndThawed)
{
	const ControlGroup group("slice-ext-test-frozen");
	SLICE_EXT_NEEDS(group.problem());
	ASSERT_EQ(group.enter(subject_->tid()), 0);
	EXPECT_EQ(change(
			  [&] {
				  if (const int error = group.set("cgroup.freeze", "1"))
					  return error;
				  const std::int64_t end = now_ns() + patience;
				  while (group.value("cgroup.events", "frozen") != 1)
					  if (now_ns() > end)
						  return ETIMEDOUT;
				  return 0;
			  },
			  [&] { return group.set("cgroup.freeze", "0"); }),
	          hits_wanted);
	EXPECT_EQ(ControlGroup::leave(subject_->tid()), 0);
	settle();
}

/** FUTEX_LOCK_PI: the waiter lends its priority to the owner that the word names. */
class PiLock
{
      public:
	explicit PiLock(pid_t owner) : word_(static_cast<std::uint32_t>(owner))
	{
	}
	/** Waits for the lock in vain. @return the errno value */
	int wait(std::int64_t ns)
	{
		timespec now{};
		clock_gettime(CLOCK_REALTIME, &now);
		const std::int64_t end = now.tv_nsec + ns;
		const timespec until{now.tv_sec + end / second, end % second};
		const long result =
			syscall(SYS_futex, &word_, FUTEX_LOCK_PI_PRIVATE, 0, &until, nullptr, 0);
		return result == 0 ? 0 : errno;
	}

      private:
	std::atomic<std::uint32_t> word_;
};

// The thread does not know: it owns a lock that a real-time thread of another CPU waits for.
TEST_F(ChangedMeanwhile, BoostedAndNoMore)
{
	PiLock lock(subject_->tid());
	EXPECT_EQ(change(
			  [&] {
				  const int error = lock.wait(5 * ms);
				  return error == ETIMEDOUT ? 0 : error + 1000;
			  },
			  [] { return 0; }),
	          hits_wanted);
	settle();
}

// The CPU with the extension goes down. Its thread, which may run nowhere else, is let go.
TEST_F(ChangedMeanwhile, TheCpuIsTakenAway)
{
	const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(there_) + "/online";
	SLICE_EXT_NEEDS(access(path.c_str(), W_OK) == 0 ? std::string() :
	                                                  path + " cannot be written");
	const FileGuard online(path, "1");
	std::int64_t on_it_again = 0;
	EXPECT_EQ(change(
			  [&] {
				  // It may be pinned there no more, and the waiting one neither.
				  waiting_.reset();
				  softirq_.reset();
				  return write_file(path, "0");
			  },
			  [&] {
				  if (const int error = write_file(path, "1"))
					  return error;
				  const Counters before = Counters::of_machine(there_);
				  if (const int error = pin(there_, subject_->tid()))
					  return error;
				  softirq_ = std::make_unique<EagerSoftirq>(there_);
				  Periodic::Setup ordinary;
				  ordinary.cpu = there_;
				  waiting_ = std::make_unique<Periodic>(ordinary);
				  // The timer of a CPU that came back bounds a grant again.
				  const bool granted = subject_->wait_granted(patience);
				  const Counters now = Counters::of_machine(there_);
				  on_it_again += now["granted"] > before["granted"];
				  return granted ? 0 : ETIMEDOUT;
			  }),
	          hits_wanted);
	settle();
	EXPECT_EQ(on_it_again, hits_wanted);
}

} // namespace
} // namespace slice_test
