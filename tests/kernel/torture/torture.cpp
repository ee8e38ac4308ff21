// SPDX-License-Identifier: MIT
//
// Hostile processes on every CPU, real-time and deadline threads that have to get through, and
// CPUs, groups, policies and the sysctl that change under all of them. Which way the races go
// the test does not know; what has to hold afterwards it does.
//
// Environment:
//   SLICE_EXT_SECONDS  how long, in seconds (default 12)
//   SLICE_EXT_HOTPLUG  1: CPUs go down and up (default). 0: they do not, and what a kernel 6.12
//                      without the series cannot take together with that is done instead:
//                      the fair class has its deadline servers (sched_cpu_dying() stops an
//                      inactive one once more, running_bw underflows), hostile threads use
//                      SCHED_DEADLINE (inactive_task_timer() divides by the number of CPUs left
//                      where the thread was, 0), and on PREEMPT_RT affinities are changed from
//                      outside (affine_move_task() warns).
//                      2: all of it at once
//   SLICE_EXT_BASE     1: on a kernel without the feature, to see what it does by itself; then
//                      only the well-behaved threads are judged
//   SLICE_EXT_SEED     of the choices made (default: from the clock). The same seed gives the
//                      same choices, but not the same races
#include "counters.hpp"
#include "disturb.hpp"
#include "hostile.hpp"
#include "needs.hpp"
#include "numbers.hpp"
#include "requester.hpp"
#include "timing.hpp"
#include "watch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test::torture
{
namespace
{

/** Nothing but a lost wake-up takes this long, not even on a busy host. */
constexpr std::int64_t patience = 30 * second;

/**
 * The process that keeps hostile processes going, and is the parent of all that lose theirs.
 * It is not the test itself, because who forks them should have no other threads.
 */
class Keeper
{
      public:
	Keeper(Shared &shared, const Groups &groups, std::uint64_t seed, std::size_t wanted)
	{
		std::cout.flush();
		pid_ = fork();
		if (pid_ == 0)
			keep(shared, groups, Dice(seed), wanted);
	}
	/** Waits until all of them are gone. @return whether they went in time */
	bool wait()
	{
		const std::int64_t late = now_ns() + patience;
		int status = 0;
		while (pid_ > 0 && waitpid(pid_, &status, WNOHANG) != pid_) {
			if (now_ns() > late)
				return false;
			sleep_ns(10 * ms);
		}
		return pid_ > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}

      private:
	[[noreturn]] static void keep(Shared &shared, const Groups &groups, Dice dice,
	                              std::size_t wanted)
	{
		std::set<pid_t> alive;
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		apply(fifo(50));
		while (!shared.stop) {
			while (alive.size() < wanted)
				alive.insert(start(shared, groups, dice));
			for (pid_t pid; (pid = waitpid(-1, nullptr, WNOHANG)) > 0;)
				alive.erase(pid);
			sleep_ns(1 * ms);
		}
		// Whoever forks while being killed leaves somebody for the next round.
		for (pid_t pid = 0; pid >= 0 || errno != ECHILD;) {
			groups.kill_all();
			while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
			}
			sleep_ns(1 * ms);
		}
		_exit(EXIT_SUCCESS);
	}
	static pid_t start(Shared &shared, const Groups &groups, Dice &dice)
	{
		const std::size_t group = dice.below(groups.size());
		const std::uint64_t seed = dice.next();
		const pid_t pid = fork();
		if (pid != 0)
			return pid;
		groups.set(group, "cgroup.procs", "0");
		apply(fair());
		live(shared, seed);
	}

	pid_t pid_;
};

/** Whatever has to have happened at least once; the rest is a matter of luck. */
std::vector<std::string> missing(const Shared &shared, const Counters &machine)
{
	std::vector<std::string> names;
	if (shared.execs == 0)
		names.emplace_back("exec");
	for (const char *name :
	     {"granted", "denied_off", "denied_work", "denied_class", "denied_nonfair",
	      "ended_yield", "ended_syscall", "ended_expired", "ended_nonfair"})
		if (machine[name] <= 0)
			names.emplace_back(name);
	return names;
}

/** As long as asked for, and then until everything has been seen, for @p more at the most. */
void in_time(std::int64_t seconds, std::int64_t more, const Shared &shared, const Counters &before)
{
	const std::int64_t start = now_ns();
	const auto elapsed = [start] { return (now_ns() - start) / second; };
	while (elapsed() < seconds)
		sleep_ns(100 * ms);
	while (elapsed() < seconds + more &&
	       !missing(shared, Counters::of_machine() - before).empty())
		sleep_ns(100 * ms);
}

std::int64_t flip_sysctl(Dice &dice)
{
	constexpr std::array values{"30", "100", "1", "100"};
	const bool off = dice.one_in(4);
	write_file(path_sysctl, off ? "0" : dice.pick(values));
	return static_cast<std::int64_t>(dice.below(off ? 20 * ms : 100 * ms));
}

/** Holds the deadline servers of the fair class switched off. */
class WithoutFairServers
{
      public:
	explicit WithoutFairServers(const std::vector<int> &cpus)
	{
		// From an ordinary thread on the CPU, whose server is active for that reason.
		for (const int cpu : cpus)
			in_thread(
				[&] {
					files_.push_back(std::make_unique<FileGuard>(
						"/sys/kernel/debug/sched/fair_server/cpu" +
							std::to_string(cpu) + "/runtime",
						"0"));
				},
				cpu);
	}
	int error() const
	{
		int error = 0;
		for (const auto &file : files_)
			error = error ? error : file->error();
		return error;
	}

      private:
	std::vector<std::unique_ptr<FileGuard>> files_;
};

std::string can_take_cpus_down()
{
	const std::string file =
		"/sys/devices/system/cpu/cpu" + std::to_string(allowed_cpus().back()) + "/online";
	return access(file.c_str(), W_OK) == 0 ? "" : file + " cannot be written";
}

std::string guard()
{
	return read_line(path_unguarded).value_or("0") == "0"
	               ? ""
	               : std::string("the guard is dropped: write 0 to ") + path_unguarded;
}

TEST(Torture, EveryGrantIsAccountedForAndNobodyIsHeldUp)
{
	const bool base = number_from_environment("SLICE_EXT_BASE", 0) != 0 && get_enabled() < 0;
	if (!base)
		SLICE_EXT_NEEDS(need::control());
	SLICE_EXT_NEEDS(need::two_cpus());
	SLICE_EXT_NEEDS(need::real_time());
	SLICE_EXT_NEEDS(can_take_cpus_down());
	SLICE_EXT_NEEDS(guard());
	const std::int64_t seconds =
		static_cast<std::int64_t>(number_from_environment("SLICE_EXT_SECONDS", 12));
	const std::uint64_t seed = number_from_environment(
		"SLICE_EXT_SEED", static_cast<std::uint64_t>(now_ns()) % 1'000'000);
	const std::uint64_t hotplug_mode = number_from_environment("SLICE_EXT_HOTPLUG", 1);
	const bool with_hotplug = hotplug_mode != 0;
	const bool all_at_once = hotplug_mode != 1;
	std::cout << "SLICE_EXT_SEED=" << seed << " SLICE_EXT_SECONDS=" << seconds
		  << " SLICE_EXT_HOTPLUG=" << hotplug_mode << std::endl;

	// Processes that die are no news, and a serial console is slow.
	const FileGuard quiet("/proc/sys/debug/exception-trace", "0");
	const std::string sysctl_before = read_line(path_sysctl).value_or("");
	const std::vector<int> cpus = allowed_cpus();
	const Counters before = Counters::of_machine();
	Shared *shared = Shared::create();
	ASSERT_NE(shared, nullptr);
	shared->deadline = all_at_once;
	Dice dice(seed);
	std::uint64_t flips = 0;
	std::uint64_t outside = 0;
	{
		const Groups groups;
		ASSERT_EQ(groups.problem(), "");
		const WithoutFairServers servers(all_at_once ? std::vector<int>{} : cpus);
		ASSERT_EQ(servers.error(), 0);
		Keeper keeper(*shared, groups, dice.next(), 3 * cpus.size());
		auto watchers = watch(cpus);
		Hotplug hotplug(dice.next(), with_hotplug ? cpus : std::vector<int>{});
		{
			const FileGuard sysctl(path_sysctl, "100");
			Disturber sysctl_flipper(dice.next(), flip_sysctl);
			Disturber regrouper(dice.next(),
			                    [&](Dice &own) { return disturb_groups(groups, own); });
			Disturber meddler(dice.next(), [&](Dice &own) {
				return disturb_threads(groups, own, all_at_once || !preempt_rt());
			});
			apply(fifo(60));
			in_time(seconds, base ? 0 : 2 * seconds, *shared, before);
			shared->stop = true;
			outside = regrouper.times() + meddler.times();
			flips = sysctl_flipper.times();
		}
		hotplug.stop();
		EXPECT_TRUE(keeper.wait()) << "a hostile process cannot be killed";

		// Now that it is quiet each of them has to come by once more.
		for (auto &watcher : watchers) {
			const std::uint64_t runs = watcher->runs();
			const std::int64_t late = now_ns() + patience;
			while (watcher->runs() == runs && now_ns() < late)
				sleep_ns(1 * ms);
			EXPECT_GT(watcher->runs(), runs) << watcher->name() << " is stuck";
		}
		for (auto &watcher : watchers) {
			watcher->stop();
			std::cout << watcher->name() << ": " << watcher->runs()
				  << " runs, longest gap " << watcher->longest_gap() / us
				  << " us\n";
			EXPECT_EQ(watcher->error(), 0) << watcher->name();
			EXPECT_GT(watcher->runs(), static_cast<std::uint64_t>(seconds))
				<< watcher->name();
			EXPECT_LT(watcher->longest_gap(), patience) << watcher->name();
		}
		EXPECT_EQ(hotplug.cycles() > 0, with_hotplug);
		EXPECT_TRUE(hotplug.all_online());
		EXPECT_EQ(Groups::remove(), 0) << "errno of removing the control groups";
		std::cout << "CPUs down and up " << hotplug.cycles() << " times\n";
	}
	apply(fair());
	const Counters machine = Counters::of_machine() - before;
	std::cout << shared->lives << " hostile processes, " << shared->acts << " acts, "
		  << shared->execs << " execs, " << outside << " acts from outside, sysctl written "
		  << flips << " times; kernel: " << machine << std::endl;

	if (base)
		return;
	EXPECT_EQ(read_line(path_sysctl), sysctl_before);
	EXPECT_EQ(shared->violations, 0U) << shared->violation;
	EXPECT_EQ(missing(*shared, machine), std::vector<std::string>{});
	EXPECT_EQ(machine["requests"], machine["granted"] + machine.denied());
	EXPECT_EQ(machine["granted"], machine.ended());
	EXPECT_GE(machine["ended_yield"], static_cast<std::int64_t>(shared->yields));
}

} // namespace
} // namespace slice_test::torture
