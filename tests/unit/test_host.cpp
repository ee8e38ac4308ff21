// SPDX-License-Identifier: MIT
// The real kernel and libc of the host, whatever they are, and sandboxes around
// them. What a stock kernel cannot show is shown by a filter that answers in its
// place: SECCOMP_RET_ERRNO with 0 is a system call that succeeds.
//
// Built twice, dynamic and static; each is run with and without libc's rseq.
#include "lib/system.hpp"

#include <slice_ext/slice_ext.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using slice_ext_internal::current_system;
using slice_ext_internal::real_system;

namespace
{

constexpr int any_argument = -1;

struct Rule {
	int number;
	int first_argument;
	int answer; // errno; 0: success without doing anything
};

const Rule prctl_refused = {SYS_prctl, SLICE_EXT_ABI_PR, EPERM};
const Rule prctl_unknown = {SYS_prctl, SLICE_EXT_ABI_PR, EINVAL};
const Rule prctl_absent = {SYS_prctl, SLICE_EXT_ABI_PR, ENOSYS};
const Rule prctl_pretended = {SYS_prctl, SLICE_EXT_ABI_PR, 0};
const Rule yield_refused = {SLICE_EXT_ABI_NR_YIELD, any_argument, EPERM};
const Rule yield_absent = {SLICE_EXT_ABI_NR_YIELD, any_argument, ENOSYS};
const Rule yield_pretended = {SLICE_EXT_ABI_NR_YIELD, any_argument, 0};
const Rule rseq_refused = {SYS_rseq, any_argument, EPERM};
const Rule rseq_absent = {SYS_rseq, any_argument, ENOSYS};

bool confine(std::initializer_list<Rule> rules)
{
	std::vector<sock_filter> filter;
	const auto load = [&](size_t offset) {
		filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<__u32>(offset)));
	};
	// All but this and the next `skip` instructions when the word differs.
	const auto unless = [&](int value, __u8 skip) {
		filter.push_back(
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(value), 0, skip));
	};
	for (const Rule &rule : rules) {
		const bool argument = rule.first_argument != any_argument;
		load(offsetof(seccomp_data, nr));
		unless(rule.number, argument ? 3 : 1);
		if (argument) {
			load(offsetof(seccomp_data, args[0]));
			unless(rule.first_argument, 1);
		}
		filter.push_back(BPF_STMT(BPF_RET | BPF_K,
		                          SECCOMP_RET_ERRNO | static_cast<__u32>(rule.answer)));
	}
	filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));

	const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Runs in a child inside the sandbox; the child's result, or what became of it.
int confined(std::initializer_list<Rule> rules, const std::function<int()> &body)
{
	const pid_t child = fork();
	if (child == 0) {
		if (!confine(rules))
			_exit(120);
		_exit(body());
	}
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int query_and_enable()
{
	const slice_ext_reason reason = slice_ext_query(nullptr);
	const int enabled = slice_ext_enable();

	// NO_AREA and SYSCTL_ZERO do not stop enabling.
	if (reason != SLICE_EXT_NO_AREA && reason != SLICE_EXT_SYSCTL_ZERO && enabled != reason)
		return 121;
	slice_ext_enter();
	slice_ext_leave();
	return reason;
}

bool libc_has_area()
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
	const char *tunables = getenv("GLIBC_TUNABLES");
	return !tunables || !strstr(tunables, "glibc.pthread.rseq=0");
#else
	return false;
#endif
}

bool kernel_knows_the_prctl()
{
	return real_system.prctl(SLICE_EXT_ABI_PR_GET, 0) >= 0;
}

unsigned feature_size()
{
	return static_cast<unsigned>(real_system.auxv(SLICE_EXT_ABI_AT_RSEQ_FEATURE_SIZE));
}

TEST(Host, QueryAgreesWithWhatTheKernelSays)
{
	slice_ext_info info;
	const slice_ext_reason reason = slice_ext_query(&info);

	EXPECT_EQ(info.feature_size, feature_size());
	EXPECT_EQ(info.owner, libc_has_area() ? SLICE_EXT_OWNER_LIBC : SLICE_EXT_OWNER_NONE);
	if (libc_has_area())
		EXPECT_GE(info.area_size, 32u);
	else
		EXPECT_EQ(info.area_size, 0u);

	if (!kernel_knows_the_prctl()) {
		EXPECT_EQ(reason, SLICE_EXT_KERNEL_WITHOUT);
		EXPECT_TRUE(info.error == EINVAL || info.error == SLICE_EXT_ABI_ENOTSUPP);
	} else if (feature_size() < SLICE_EXT_ABI_RSEQ_END) {
		EXPECT_EQ(reason, SLICE_EXT_OFF_AT_BOOT);
	} else if (!libc_has_area()) {
		EXPECT_EQ(reason, SLICE_EXT_NO_AREA);
	} else {
		EXPECT_TRUE(reason == SLICE_EXT_AVAILABLE || reason == SLICE_EXT_SYSCTL_ZERO ||
		            reason == SLICE_EXT_AREA_TOO_SMALL || reason == SLICE_EXT_OFF_AT_BOOT);
	}
}

TEST(Host, QueryChangesNothing)
{
	const auto libc = real_system.libc();
	slice_ext_abi_rseq before = {}, after = {};
	if (libc.rseq)
		memcpy(&before, libc.rseq, SLICE_EXT_ABI_RSEQ_LEGACY_SIZE);

	slice_ext_query(nullptr);

	if (libc.rseq)
		memcpy(&after, libc.rseq, SLICE_EXT_ABI_RSEQ_LEGACY_SIZE);
	EXPECT_EQ(before.flags, after.flags);
	EXPECT_EQ(memcmp(&before.request, &after.request, 4), 0);
	EXPECT_FALSE(slice_ext_enabled());
	EXPECT_NE(real_system.prctl(SLICE_EXT_ABI_PR_GET, 0), 1);
}

TEST(Host, SectionsRunWhateverEnableSays)
{
	const int reason = slice_ext_enable();
	for (int i = 0; i < 100000; i++) {
		slice_ext_enter();
		const slice_ext_outcome outcome = slice_ext_leave();
		ASSERT_EQ(outcome == SLICE_EXT_INACTIVE, reason != 0);
	}
	EXPECT_EQ(slice_ext_disable(), 0);
}

TEST(Host, RegistrationProbeTellsFreeFromTaken)
{
	void *nowhere = reinterpret_cast<void *>(~uintptr_t{0} << 12);
	EXPECT_EQ(real_system.rseq(nowhere, SLICE_EXT_ABI_RSEQ_ALIGN, 0),
	          libc_has_area() ? -EINVAL : -EFAULT);
}

TEST(Host, SandboxRefusesPrctl)
{
	EXPECT_EQ(confined({prctl_refused}, query_and_enable), SLICE_EXT_BLOCKED_PRCTL);
	EXPECT_EQ(confined({prctl_absent}, query_and_enable), SLICE_EXT_BLOCKED_PRCTL);
}

TEST(Host, SandboxThatPlaysAnOldKernelIsFoundOutByTheAuxiliaryVector)
{
	EXPECT_EQ(confined({prctl_unknown}, query_and_enable),
	          feature_size() < SLICE_EXT_ABI_RSEQ_END ? SLICE_EXT_KERNEL_WITHOUT
	                                                  : SLICE_EXT_BLOCKED_PRCTL);
}

TEST(Host, SandboxRefusesYield)
{
	EXPECT_EQ(confined({prctl_pretended, yield_refused}, query_and_enable),
	          SLICE_EXT_BLOCKED_YIELD);
	EXPECT_EQ(confined({prctl_pretended, yield_absent}, query_and_enable),
	          SLICE_EXT_BLOCKED_YIELD);
}

TEST(Host, YieldDoesNotMatterToAKernelWithout)
{
	if (kernel_knows_the_prctl())
		GTEST_SKIP() << "this kernel has the feature";
	EXPECT_EQ(confined({yield_refused}, query_and_enable), SLICE_EXT_KERNEL_WITHOUT);
}

// The host's own rseq(2) and libc, with a kernel around them that advertises the
// feature: enough for everything up to the first grant.
slice_ext_internal::system advertising;
unsigned registered;
unsigned unregistered;

void pretend_advertised()
{
	advertising = real_system;
	advertising.auxv = [](unsigned long type) -> unsigned long {
		return type == SLICE_EXT_ABI_AT_RSEQ_FEATURE_SIZE ? SLICE_EXT_ABI_RSEQ_END
		                                                  : SLICE_EXT_ABI_RSEQ_ALIGN;
	};
	advertising.rseq = [](void *area, unsigned size, int flags) {
		const long result = real_system.rseq(area, size, flags);
		(flags ? unregistered : registered) += result == 0;
		return result;
	};
	current_system = &advertising;
}

TEST(Host, SandboxRefusesRseq)
{
	for (const Rule &rule : {rseq_refused, rseq_absent}) {
		const int reason = confined({prctl_pretended, yield_pretended, rule}, [] {
			pretend_advertised();
			return static_cast<int>(slice_ext_query(nullptr));
		});
		if (libc_has_area())
			EXPECT_NE(reason, SLICE_EXT_BLOCKED_RSEQ);
		else
			EXPECT_EQ(reason, SLICE_EXT_BLOCKED_RSEQ);
	}
}

TEST(Host, OwnAreaIsRegisteredWithTheRealKernel)
{
	if (libc_has_area())
		GTEST_SKIP() << "libc has registered its area";

	EXPECT_EQ(confined({prctl_pretended, yield_pretended},
	                   [] {
				   pretend_advertised();
				   if (slice_ext_enable() != 0 || registered != 1)
					   return 1;
				   slice_ext_enter();
				   if (slice_ext_leave() != SLICE_EXT_UNDISTURBED)
					   return 2;
				   slice_ext_info info;
				   slice_ext_query(&info);
				   if (info.owner != SLICE_EXT_OWNER_SELF)
					   return 3;
				   // The kernel fills the area in: it is the thread's.
				   const auto *area = reinterpret_cast<const slice_ext_abi_rseq *>(
					   slice_ext_self.ctrl - SLICE_EXT_ABI_RSEQ_REQUEST);
				   if (static_cast<int32_t>(area->cpu_id) < 0)
					   return 4;
				   if (slice_ext_disable() != 0 || unregistered != 1)
					   return 5;
				   return 0;
			   }),
	          0);
}

TEST(Host, OwnAreaIsGivenBackAtThreadExit)
{
	if (libc_has_area())
		GTEST_SKIP() << "libc has registered its area";

	EXPECT_EQ(
		confined({prctl_pretended, yield_pretended},
	                 [] {
				 pretend_advertised();
				 int failed = 0;
				 for (int i = 0; i < 50; i++)
					 std::thread([&] { failed |= slice_ext_enable(); }).join();
				 return failed || registered != 50 || unregistered != 50;
			 }),
		0);
}

TEST(Host, AreaOfAnotherOwnerIsLeftAlone)
{
	if (libc_has_area())
		GTEST_SKIP() << "libc has registered its area";

	EXPECT_EQ(confined({prctl_pretended, yield_pretended},
	                   [] {
				   pretend_advertised();
				   alignas(64) static char others[64];
				   if (real_system.rseq(others, 32, 0) != 0)
					   return 1;
				   slice_ext_info info;
				   if (slice_ext_query(&info) != SLICE_EXT_OTHER_OWNER ||
		                       info.owner != SLICE_EXT_OWNER_OTHER)
					   return 2;
				   if (slice_ext_enable() != SLICE_EXT_OTHER_OWNER)
					   return 3;
				   // Still theirs.
				   return real_system.rseq(others, 32, 0) == -EBUSY ? 0 : 4;
			   }),
	          0);
}

TEST(Host, SystemCallsKeepErrno)
{
	errno = 4711;
	real_system.prctl(99, 0);
	real_system.yield();
	real_system.rseq(nullptr, 1, 1);
	real_system.auxv(12345);
	real_system.delay_us();
	EXPECT_EQ(errno, 4711);
}

} // namespace
