// SPDX-License-Identifier: MIT
/**
 * @file disturb.hpp
 * What an administrator, or a machine that breaks, does meanwhile.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_TORTURE_DISTURB_HPP
#define SLICE_EXT_TESTS_KERNEL_TORTURE_DISTURB_HPP

#include "dice.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace slice_test::torture
{

/** The control groups that hostile processes live in: without a quota, with one, idle, and
 * one that is frozen now and then. */
class Groups
{
      public:
	Groups();
	/** Removes them. They have to be empty. */
	~Groups();
	Groups(const Groups &) = delete;
	Groups &operator=(const Groups &) = delete;

	/** Empty, or why they are not there. */
	const std::string &problem() const
	{
		return problem_;
	}
	std::size_t size() const
	{
		return names.size();
	}
	/** Writes a file of one of them. @return 0 or the errno value */
	int set(std::size_t group, const char *file, const std::string &value) const;
	/**
	 * Of the group that has one; none on PREEMPT_RT. Before 6.18 a thread is throttled
	 * wherever it is. There it can hold a lock that the softirq waits for that would let it
	 * go on, and both wait for ever.
	 */
	void set_quota(const std::string &quota) const;
	/** A process or thread (@p file cgroup.procs or cgroup.threads) of any of them; 0 when
	 * there is none. */
	pid_t any(Dice &dice, const char *file) const;
	/** Thaws all, kills whoever is in them. */
	void kill_all() const;
	/** @return 0 or the errno value */
	static int remove();

      private:
	static constexpr std::array names{"free", "quota", "idle", "frozen"};

	std::string problem_;
};

/** A thread above the hostile ones that does one thing again and again. */
class Disturber
{
      public:
	/** @param action told a pause to keep, in ns */
	Disturber(std::uint64_t seed, std::function<std::int64_t(Dice &)> action);
	~Disturber()
	{
		stop();
	}
	Disturber(const Disturber &) = delete;
	Disturber &operator=(const Disturber &) = delete;

	void stop();
	std::uint64_t times() const
	{
		return times_;
	}

      private:
	std::atomic<bool> stop_{false};
	std::atomic<std::uint64_t> times_{0};
	std::thread thread_;
};

/** Takes CPUs down and up again. They are up at the end. */
class Hotplug
{
      public:
	/** @param cpus all but the first are taken down; may be empty */
	Hotplug(std::uint64_t seed, std::vector<int> cpus);
	~Hotplug()
	{
		stop();
	}
	Hotplug(const Hotplug &) = delete;
	Hotplug &operator=(const Hotplug &) = delete;

	void stop();
	/** CPUs that were down for a while. */
	std::uint64_t cycles() const
	{
		return cycles_;
	}
	bool all_online() const;

      private:
	static int set_online(int cpu, bool online);

	const std::vector<int> cpus_;
	std::atomic<std::uint64_t> cycles_{0};
	Disturber disturber_;
};

/** One of the things done to the groups. @return the pause to keep, ns */
std::int64_t disturb_groups(const Groups &groups, Dice &dice);
/** One of the things done to a hostile thread from outside. @return the pause to keep, ns */
std::int64_t disturb_threads(const Groups &groups, Dice &dice, bool affinity);

} // namespace slice_test::torture

#endif
