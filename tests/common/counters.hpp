// SPDX-License-Identifier: MIT
/**
 * @file counters.hpp
 * The kernel's own account: per thread and per CPU.
 */
#ifndef SLICE_EXT_TESTS_COMMON_COUNTERS_HPP
#define SLICE_EXT_TESTS_COMMON_COUNTERS_HPP

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

#include <sys/types.h>

namespace slice_test
{

/** Every counter the kernel publishes, in its order. */
inline constexpr std::array counter_names{
	"requests",       "granted",      "kept",          "denied_off",       "denied_work",
	"denied_fault",   "denied_class", "denied_core",   "denied_bandwidth", "denied_hres",
	"denied_nonfair", "ended_yield",  "ended_syscall", "ended_expired",    "ended_nonfair",
	"ended_switch",   "ended_work",
};

/** A snapshot, or the difference of two. A name that the kernel did not publish
 * is missing(), so that a renamed counter cannot pass as zero. */
class Counters
{
      public:
	/** Of the calling thread, from /proc/thread-self/sched. Makes system
	 * calls, so it ends a live grant. */
	static Counters of_this_thread();
	/** Of any thread, from /proc/<tid>/sched; empty when it is gone. */
	static Counters of_thread(pid_t tid);
	/** Of one CPU, or of all when @p cpu is negative, from /proc/preempt_delay. */
	static Counters of_machine(int cpu = -1);

	std::int64_t operator[](const std::string &name) const;
	bool missing(const std::string &name) const
	{
		return values_.count(name) == 0;
	}
	bool empty() const
	{
		return values_.empty();
	}

	std::int64_t denied() const
	{
		return sum("denied_");
	}
	std::int64_t ended() const
	{
		return sum("ended_");
	}

	Counters operator-(const Counters &before) const;
	Counters operator+(const Counters &other) const;

	friend std::ostream &operator<<(std::ostream &out, const Counters &counters);

      private:
	static Counters from_sched(const std::string &path);
	std::int64_t sum(const char *prefix) const;

	std::map<std::string, std::int64_t> values_;
};

} // namespace slice_test

#endif
