// SPDX-License-Identifier: MIT
/**
 * @file system.hpp
 * CPUs, scheduling policies, sysctls, control groups.
 */
#ifndef SLICE_EXT_TESTS_COMMON_SYSTEM_HPP
#define SLICE_EXT_TESTS_COMMON_SYSTEM_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace slice_test
{

/** The CPUs the process may use. */
std::vector<int> allowed_cpus();

/** The CPU single-CPU tests use: the last allowed one, because boot-time and
 * device interrupts gather on the first. */
int test_cpu();

/** Pins a thread (0: the calling one). @return 0 or the errno value. */
int pin(int cpu, pid_t tid = 0);

pid_t thread_id();

/** A scheduling policy with its parameters. */
struct Policy {
	int policy = 0; /**< SCHED_OTHER ... SCHED_DEADLINE */
	int priority = 0;
	int nice = 0;
	/** Fair: own slice (100 us..100 ms), 0 for the default.
	 * Deadline: run time per period. */
	std::int64_t runtime = 0;
	std::int64_t period = 0; /**< SCHED_DEADLINE: deadline and period */
};

/** An ordinary thread. */
Policy fair();
/** An ordinary thread that preempts other ordinary ones whenever it wakes up: its
 * slice is shorter than theirs, and its weight makes what it uses too little to
 * lose its turn. See do_preempt_short() in the kernel. Needs privilege. */
Policy eager(std::int64_t slice = 100'000);
Policy batch();
Policy idle_policy();
Policy fifo(int priority);
Policy deadline(std::int64_t runtime, std::int64_t period);

/** Applies a policy to a thread (0: the calling one). @return 0 or the errno value. */
int apply(const Policy &policy, pid_t tid = 0);

/** The file's first line; nothing when it cannot be read. */
std::optional<std::string> read_line(const std::string &path);
/** Writes without creating. @return 0 or the errno value. */
int write_file(const std::string &path, const std::string &text);

/** Holds a value in a kernel file and puts the old one back at the end. */
class FileGuard
{
      public:
	FileGuard(std::string path, const std::string &value);
	~FileGuard();
	FileGuard(const FileGuard &) = delete;
	FileGuard &operator=(const FileGuard &) = delete;

	/** @return 0 or the errno value */
	int set(const std::string &value) const
	{
		return write_file(path_, value);
	}
	std::string get() const
	{
		return read_line(path_).value_or("unreadable");
	}
	/** errno of the first write; 0 when it worked. */
	int error() const
	{
		return error_;
	}

      private:
	std::string path_;
	std::optional<std::string> before_;
	int error_;
};

/** The running kernel is a PREEMPT_RT build. */
bool preempt_rt();

/**
 * Makes the wake-ups of ordinary threads preempt on PREEMPT_RT as they do
 * elsewhere.
 *
 * There their timers expire in ksoftirqd, itself an ordinary thread. It wakes up
 * first and would wait until the running thread has used its slice. Does nothing
 * on other kernels.
 */
class EagerSoftirq
{
      public:
	explicit EagerSoftirq(int cpu);
	~EagerSoftirq();
	EagerSoftirq(const EagerSoftirq &) = delete;
	EagerSoftirq &operator=(const EagerSoftirq &) = delete;

      private:
	pid_t pid_ = 0;
};

/** A version 2 control group with the cpu controller, for the calling thread's
 * process; the process goes back and the group is removed at the end. */
class ControlGroup
{
      public:
	explicit ControlGroup(const std::string &name);
	~ControlGroup();
	ControlGroup(const ControlGroup &) = delete;
	ControlGroup &operator=(const ControlGroup &) = delete;

	/** Empty, or why the group is not there. */
	const std::string &problem() const
	{
		return problem_;
	}
	/** @return 0 or the errno value */
	int set(const std::string &file, const std::string &value) const
	{
		return write_file(path_ + "/" + file, value);
	}
	/** The value of a key in a file of the group, as "usage_usec" in cpu.stat; -1: none. */
	std::int64_t value(const std::string &file, const std::string &key) const;
	/** Moves a thread in (the group is threaded). @return 0 or the errno value */
	int enter(pid_t tid) const;
	/** Moves a thread of this process to the root. @return 0 or the errno value */
	static int leave(pid_t tid);

      private:
	std::string path_;
	std::string problem_;
	bool made_ = false;
};

} // namespace slice_test

#endif
