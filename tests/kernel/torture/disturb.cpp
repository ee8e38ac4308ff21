// SPDX-License-Identifier: MIT
#include "disturb.hpp"

#include "system.hpp"
#include "timing.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <utility>

#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test::torture
{

namespace
{

constexpr const char *cgroup_root = "/sys/fs/cgroup";
const std::string parent_group = std::string(cgroup_root) + "/slice-ext-torture";

} // namespace

Groups::Groups()
{
	if (write_file(std::string(cgroup_root) + "/cgroup.subtree_control", "+cpu") != 0) {
		problem_ = "no version 2 control groups with the cpu controller";
		return;
	}
	if ((mkdir(parent_group.c_str(), 0755) != 0 && errno != EEXIST) ||
	    write_file(parent_group + "/cgroup.subtree_control", "+cpu") != 0) {
		problem_ = "cannot make the control group " + parent_group;
		return;
	}
	for (const char *name : names)
		if (mkdir((parent_group + "/" + name).c_str(), 0755) != 0 && errno != EEXIST)
			problem_ = std::string("cannot make the control group ") + name;
	set_quota("5000 10000");
	set(2, "cpu.idle", "1");
}

Groups::~Groups()
{
	remove();
}

int Groups::remove()
{
	for (const char *name : names)
		if (rmdir((parent_group + "/" + name).c_str()) != 0)
			return errno;
	return rmdir(parent_group.c_str()) == 0 ? 0 : errno;
}

int Groups::set(std::size_t group, const char *file, const std::string &value) const
{
	return write_file(parent_group + "/" + names[group] + "/" + file, value);
}

void Groups::set_quota(const std::string &quota) const
{
	if (!preempt_rt())
		set(1, "cpu.max", quota);
}

pid_t Groups::any(Dice &dice, const char *file) const
{
	std::vector<pid_t> found;
	for (const char *name : names) {
		std::ifstream list(parent_group + "/" + name + "/" + file);
		for (pid_t pid; list >> pid;)
			found.push_back(pid);
	}
	return found.empty() ? 0 : dice.pick(found);
}

void Groups::kill_all() const
{
	for (std::size_t group = 0; group < names.size(); ++group) {
		set(group, "cgroup.freeze", "0");
		set(group, "cgroup.kill", "1");
	}
}

Disturber::Disturber(std::uint64_t seed, std::function<std::int64_t(Dice &)> action)
	: thread_([this, seed, action = std::move(action)] {
		  apply(fifo(60));
		  Dice dice(seed);
		  while (!stop_) {
			  const std::int64_t pause = action(dice);
			  ++times_;
			  sleep_ns(pause);
		  }
	  })
{
}

void Disturber::stop()
{
	stop_ = true;
	if (thread_.joinable())
		thread_.join();
}

Hotplug::Hotplug(std::uint64_t seed, std::vector<int> cpus)
	: cpus_(std::move(cpus)), disturber_(seed, [this](Dice &dice) {
		  if (cpus_.size() < 2)
			  return 100 * ms;
		  const int cpu = cpus_[1 + dice.below(cpus_.size() - 1)];
		  if (set_online(cpu, false) == 0) {
			  sleep_ns(static_cast<std::int64_t>(dice.below(100 * ms)));
			  if (set_online(cpu, true) == 0)
				  ++cycles_;
		  }
		  return static_cast<std::int64_t>(100 * ms + dice.below(400 * ms));
	  })
{
}

void Hotplug::stop()
{
	disturber_.stop();
	for (const int cpu : cpus_)
		set_online(cpu, true);
}

bool Hotplug::all_online() const
{
	return std::all_of(cpus_.begin() + (cpus_.empty() ? 0 : 1), cpus_.end(), [](int cpu) {
		return read_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online") ==
		       "1";
	});
}

int Hotplug::set_online(int cpu, bool online)
{
	return write_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online",
	                  online ? "1" : "0");
}

std::int64_t disturb_groups(const Groups &groups, Dice &dice)
{
	// Always one: the first and the last of a machine change the kernel's code.
	constexpr std::array quotas{"90000 100000", "2000 20000", "5000 10000", "1000 5000"};
	switch (dice.below(4)) {
	case 0:
		groups.set_quota(dice.pick(quotas));
		break;
	case 1:
		groups.set(3, "cgroup.freeze", "1");
		sleep_ns(static_cast<std::int64_t>(dice.below(20 * ms)));
		groups.set(3, "cgroup.freeze", "0");
		break;
	case 2:
		groups.set(2, "cpu.idle", dice.one_in(2) ? "1" : "0");
		break;
	default:
		// 0 would be this process.
		if (const pid_t process = groups.any(dice, "cgroup.procs"))
			groups.set(dice.below(groups.size()), "cgroup.procs",
			           std::to_string(process));
	}
	return 30 * ms;
}

std::int64_t disturb_threads(const Groups &groups, Dice &dice, bool affinity)
{
	const pid_t thread = groups.any(dice, "cgroup.threads");
	const pid_t process = groups.any(dice, "cgroup.procs");
	const std::uint64_t mask = dice.next();
	cpu_set_t set;
	if (!thread || !process)
		return 1 * ms;
	switch (dice.below(16)) {
	case 0:
		if (dice.one_in(8))
			kill(process, SIGKILL);
		break;
	case 1:
		kill(process, SIGSTOP);
		sleep_ns(static_cast<std::int64_t>(dice.below(5 * ms)));
		kill(process, SIGCONT);
		break;
	case 2:
		apply(fifo(1), thread);
		sleep_ns(static_cast<std::int64_t>(dice.below(2 * ms)));
		apply(fair(), thread);
		break;
	case 3:
		apply(dice.one_in(2) ? idle_policy() : batch(), thread);
		break;
	case 4:
	case 5:
		CPU_ZERO(&set);
		for (unsigned cpu = 0; cpu < 8; ++cpu)
			if (mask >> cpu & 1)
				CPU_SET(cpu, &set);
		if (affinity)
			sched_setaffinity(thread, sizeof set, &set);
		break;
	default:
		kill(process, dice.one_in(2) ? SIGUSR1 : SIGUSR2);
	}
	return static_cast<std::int64_t>(dice.below(20 * ms));
}

} // namespace slice_test::torture
