// SPDX-License-Identifier: MIT
// Core scheduling: a hardware thread may be idle until its sibling reschedules, so there are no
// extensions while it is on. Two hardware threads of one core.
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "subject.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include <sys/prctl.h>

namespace slice_test
{
namespace
{

constexpr int pr_sched_core = 62;
constexpr unsigned long create_cookie = 1;
constexpr unsigned long scope_thread = 0;

std::string siblings()
{
	if (std::string reason = need::two_cpus(); !reason.empty())
		return reason;
	const std::string list =
		read_line("/sys/devices/system/cpu/cpu" + std::to_string(test_cpu()) +
	                  "/topology/thread_siblings_list")
			.value_or("");
	if (list.find_first_of(",-") == std::string::npos)
		return "the CPU is the only hardware thread of its core (" + list + ")";
	return {};
}

TEST(CoreScheduling, RefusesFromTheFirstCookieOn)
{
	SLICE_EXT_NEEDS(need::control());
	SLICE_EXT_NEEDS(siblings());
	const FileGuard length(path_sysctl, "100");
	ASSERT_EQ(length.error(), 0);
	const int cpu = test_cpu();
	const EagerSoftirq softirq(cpu);
	Periodic::Setup setup;
	setup.cpu = cpu;
	Periodic other(setup);
	Subject subject(cpu);
	ASSERT_EQ(subject.error(), 0);

	ASSERT_TRUE(subject.wait_granted(20 * second)) << "no grant before";
	if (prctl(pr_sched_core, create_cookie, subject.tid(), scope_thread, 0) != 0) {
		if (errno == ENODEV || errno == EINVAL)
			SLICE_EXT_NEEDS(std::string("no core scheduling here: ") + std::strerror(errno));
		FAIL() << std::strerror(errno);
	}
	sleep_ns(50 * ms);
	const Counters before = Counters::of_thread(subject.tid());
	sleep_ns(second);
	const Counters with_cookie = Counters::of_thread(subject.tid()) - before;
	std::ostringstream text;
	text << "with a cookie: " << with_cookie << '\n';
	std::fputs(text.str().c_str(), stdout);
	EXPECT_EQ(with_cookie["granted"], 0);
	EXPECT_GT(with_cookie["denied_core"], 10);
	EXPECT_TRUE(subject.wait_progress(20 * second));
	subject.stop();
}

} // namespace
} // namespace slice_test
