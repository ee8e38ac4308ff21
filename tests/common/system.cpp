// SPDX-License-Identifier: MIT
#include "system.hpp"

#include <cerrno>
#include <fstream>

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{

namespace
{

constexpr const char *cgroup_root = "/sys/fs/cgroup";

// The C library of Debian 12 has no sched_setattr(2), and <linux/sched/types.h>
// collides with its <sched.h>.
struct SchedAttr {
	std::uint32_t size;
	std::uint32_t policy;
	std::uint64_t flags;
	std::int32_t nice;
	std::uint32_t priority;
	std::uint64_t runtime;
	std::uint64_t deadline;
	std::uint64_t period;
};

} // namespace

std::vector<int> allowed_cpus()
{
	std::vector<int> cpus;
	cpu_set_t set;
	CPU_ZERO(&set);
	sched_getaffinity(getpid(), sizeof set, &set);
	for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
		if (CPU_ISSET(cpu, &set))
			cpus.push_back(cpu);
	return cpus;
}

int test_cpu()
{
	static const int cpu = allowed_cpus().back();
	return cpu;
}

int pin(int cpu, pid_t tid)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof set, &set) == 0 ? 0 : errno;
}

pid_t thread_id()
{
	return static_cast<pid_t>(syscall(SYS_gettid));
}

Policy fair()
{
	Policy policy;
	policy.policy = SCHED_OTHER;
	return policy;
}

Policy eager(std::int64_t slice)
{
	Policy policy = fair();
	policy.nice = -20;
	policy.runtime = slice;
	return policy;
}

Policy batch()
{
	Policy policy;
	policy.policy = SCHED_BATCH;
	return policy;
}

Policy idle_policy()
{
	Policy policy;
	policy.policy = SCHED_IDLE;
	return policy;
}

Policy fifo(int priority)
{
	Policy policy;
	policy.policy = SCHED_FIFO;
	policy.priority = priority;
	return policy;
}

Policy deadline(std::int64_t runtime, std::int64_t period)
{
	constexpr int sched_deadline = 6;
	Policy policy;
	policy.policy = sched_deadline;
	policy.runtime = runtime;
	policy.period = period;
	return policy;
}

int apply(const Policy &policy, pid_t tid)
{
	SchedAttr attr{};
	attr.size = sizeof attr;
	attr.policy = static_cast<std::uint32_t>(policy.policy);
	attr.nice = policy.nice;
	attr.priority = static_cast<std::uint32_t>(policy.priority);
	attr.runtime = static_cast<std::uint64_t>(policy.runtime);
	attr.deadline = static_cast<std::uint64_t>(policy.period);
	attr.period = static_cast<std::uint64_t>(policy.period);
	return syscall(SYS_sched_setattr, tid, &attr, 0) == 0 ? 0 : errno;
}

std::optional<std::string> read_line(const std::string &path)
{
	std::ifstream file(path);
	std::string line;
	if (!std::getline(file, line))
		return std::nullopt;
	return line;
}

int write_file(const std::string &path, const std::string &text)
{
	const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	const ssize_t written = write(fd, text.data(), text.size());
	const int error = written < 0 ? errno : 0;
	close(fd);
	return error;
}

FileGuard::FileGuard(std::string path, const std::string &value)
	: path_(std::move(path)), before_(read_line(path_)), error_(write_file(path_, value))
{
}

FileGuard::~FileGuard()
{
	if (before_)
		write_file(path_, *before_);
}

bool preempt_rt()
{
	static const bool rt =
		read_line("/sys/kernel/realtime").value_or("0") == "1" ||
		read_line("/proc/version").value_or("").find("PREEMPT_RT") != std::string::npos;
	return rt;
}

EagerSoftirq::EagerSoftirq(int cpu)
{
	if (!preempt_rt())
		return;
	const std::string wanted = "ksoftirqd/" + std::to_string(cpu);
	glob_t found{};
	if (glob("/proc/[0-9]*/comm", 0, nullptr, &found) == 0)
		for (std::size_t i = 0; i < found.gl_pathc && !pid_; ++i)
			if (read_line(found.gl_pathv[i]) == wanted)
				pid_ = std::stoi(std::string(found.gl_pathv[i]).substr(6));
	globfree(&found);
	if (pid_)
		apply(eager(), pid_);
}

EagerSoftirq::~EagerSoftirq()
{
	if (pid_)
		apply(fair(), pid_);
}

ControlGroup::ControlGroup(const std::string &name) : path_(std::string(cgroup_root) + "/" + name)
{
	const std::string root = cgroup_root;
	const auto controllers = read_line(root + "/cgroup.controllers");
	if (!controllers || controllers->find("cpu") == std::string::npos) {
		problem_ = "no version 2 control groups with the cpu controller";
		return;
	}
	if (write_file(root + "/cgroup.subtree_control", "+cpu") != 0) {
		problem_ = "cannot enable the cpu controller in the root group";
		return;
	}
	if (mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST) {
		problem_ = "cannot make " + path_;
		return;
	}
	made_ = true;
	if (write_file(path_ + "/cgroup.type", "threaded") != 0)
		problem_ = "cannot make a threaded group";
}

ControlGroup::~ControlGroup()
{
	if (made_)
		rmdir(path_.c_str());
}

std::int64_t ControlGroup::value(const std::string &file, const std::string &key) const
{
	std::ifstream in(path_ + "/" + file);
	std::string name;
	for (std::int64_t number = 0; in >> name >> number;)
		if (name == key)
			return number;
	return -1;
}

int ControlGroup::leave(pid_t tid)
{
	return write_file(std::string(cgroup_root) + "/cgroup.threads", std::to_string(tid));
}

int ControlGroup::enter(pid_t tid) const
{
	return write_file(path_ + "/cgroup.threads", std::to_string(tid));
}

} // namespace slice_test
