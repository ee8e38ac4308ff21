// SPDX-License-Identifier: MIT
// Query, enable and disable against every kernel, libc and sandbox the library
// tells apart.
#include "simulated.hpp"

#include <slice_ext/slice_ext.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include <pthread.h>

namespace
{

using Kernel = Simulated::Kernel;

struct Case {
	const char *name;
	void (*arrange)(Simulated &);
	slice_ext_reason query;
	slice_ext_reason enable;
	slice_ext_owner owner;
	unsigned area_size;
	int error;
};

const Case cases[] = {
	{"series_glibc_2_36", [](Simulated &s) { s.libc_registers(20, 32); }, SLICE_EXT_AVAILABLE,
         SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_LIBC, 32, 0},
	{"series_glibc_2_39", [](Simulated &s) { s.libc_registers(32, 32); }, SLICE_EXT_AVAILABLE,
         SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_LIBC, 32, 0},
	{"series_glibc_2_41", [](Simulated &s) { s.libc_registers(33, 33); }, SLICE_EXT_AVAILABLE,
         SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_LIBC, 33, 0},
	{"series_no_libc_area", [](Simulated &) {}, SLICE_EXT_NO_AREA, SLICE_EXT_AVAILABLE,
         SLICE_EXT_OWNER_NONE, 0, 0},
	{"series_area_not_registered_in_this_thread",
         [](Simulated &s) { s.libc_announces_without_registering(20); }, SLICE_EXT_NO_AREA,
         SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_NONE, 0, 0},
	{"series_other_owner", [](Simulated &s) { s.other_registers(); }, SLICE_EXT_OTHER_OWNER,
         SLICE_EXT_OTHER_OWNER, SLICE_EXT_OWNER_OTHER, 0, EINVAL},
	{"series_other_owner_despite_libc",
         [](Simulated &s) {
		 s.libc_announces_without_registering(20);
		 s.other_registers();
	 },
         SLICE_EXT_OTHER_OWNER, SLICE_EXT_OTHER_OWNER, SLICE_EXT_OWNER_OTHER, 0, EINVAL},
	{"series_off_at_boot",
         [](Simulated &s) {
		 s.on_at_boot = false;
		 s.libc_registers(20, 32);
	 },
         SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OWNER_LIBC, 32, 0},
	{"series_off_at_boot_no_area", [](Simulated &s) { s.on_at_boot = false; },
         SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OWNER_NONE, 0, 0},
	{"series_sysctl_zero",
         [](Simulated &s) {
		 s.delay_us = 0;
		 s.libc_registers(20, 32);
	 },
         SLICE_EXT_SYSCTL_ZERO, SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_LIBC, 32, 0},
	{"without_glibc",
         [](Simulated &s) {
		 s.kernel = Kernel::without;
		 s.libc_registers(20, 32);
	 },
         SLICE_EXT_KERNEL_WITHOUT, SLICE_EXT_KERNEL_WITHOUT, SLICE_EXT_OWNER_LIBC, 32, EINVAL},
	{"without_no_area", [](Simulated &s) { s.kernel = Kernel::without; },
         SLICE_EXT_KERNEL_WITHOUT, SLICE_EXT_KERNEL_WITHOUT, SLICE_EXT_OWNER_NONE, 0, EINVAL},
	{"linux7x_option_off",
         [](Simulated &s) {
		 s.kernel = Kernel::linux7x_option_off;
		 s.libc_registers(33, 33);
	 },
         SLICE_EXT_KERNEL_WITHOUT, SLICE_EXT_KERNEL_WITHOUT, SLICE_EXT_OWNER_LIBC, 33,
         SLICE_EXT_ABI_ENOTSUPP},
	{"linux7x_glibc_2_41",
         [](Simulated &s) {
		 s.kernel = Kernel::linux7x;
		 s.libc_registers(33, 33);
	 },
         SLICE_EXT_AVAILABLE, SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_LIBC, 33, 0},
	{"linux7x_glibc_2_36",
         [](Simulated &s) {
		 s.kernel = Kernel::linux7x;
		 s.libc_registers(20, 32);
	 },
         SLICE_EXT_AREA_TOO_SMALL, SLICE_EXT_AREA_TOO_SMALL, SLICE_EXT_OWNER_LIBC, 32, 0},
	{"linux7x_no_area", [](Simulated &s) { s.kernel = Kernel::linux7x; }, SLICE_EXT_NO_AREA,
         SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_NONE, 0, 0},
	{"linux7x_off_at_boot",
         [](Simulated &s) {
		 s.kernel = Kernel::linux7x;
		 s.on_at_boot = false;
		 s.libc_registers(33, 33);
	 },
         SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OWNER_LIBC, 33, 0},
	{"linux7x_off_at_boot_no_area",
         [](Simulated &s) {
		 s.kernel = Kernel::linux7x;
		 s.on_at_boot = false;
	 },
         SLICE_EXT_NO_AREA, SLICE_EXT_OFF_AT_BOOT, SLICE_EXT_OWNER_NONE, 0, 0},
	{"sandbox_prctl_eperm",
         [](Simulated &s) {
		 s.libc_registers(33, 33);
		 s.deny_prctl = EPERM;
	 },
         SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_OWNER_LIBC, 33, EPERM},
	{"sandbox_prctl_enosys",
         [](Simulated &s) {
		 s.kernel = Kernel::without;
		 s.libc_registers(20, 32);
		 s.deny_prctl = ENOSYS;
	 },
         SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_OWNER_LIBC, 32, ENOSYS},
	{"sandbox_prctl_einval_where_the_feature_is_advertised",
         [](Simulated &s) {
		 s.libc_registers(33, 33);
		 s.deny_prctl = EINVAL;
	 },
         SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_OWNER_LIBC, 33, EINVAL},
	{"sandbox_prctl_set_only",
         [](Simulated &s) {
		 s.libc_registers(33, 33);
		 s.deny_set = EPERM;
	 },
         SLICE_EXT_AVAILABLE, SLICE_EXT_BLOCKED_PRCTL, SLICE_EXT_OWNER_LIBC, 33, 0},
	{"sandbox_yield_enosys",
         [](Simulated &s) {
		 s.libc_registers(33, 33);
		 s.deny_yield = ENOSYS;
	 },
         SLICE_EXT_BLOCKED_YIELD, SLICE_EXT_BLOCKED_YIELD, SLICE_EXT_OWNER_LIBC, 33, ENOSYS},
	{"sandbox_yield_eperm",
         [](Simulated &s) {
		 s.libc_registers(33, 33);
		 s.deny_yield = EPERM;
	 },
         SLICE_EXT_BLOCKED_YIELD, SLICE_EXT_BLOCKED_YIELD, SLICE_EXT_OWNER_LIBC, 33, EPERM},
	{"sandbox_rseq_enosys", [](Simulated &s) { s.deny_rseq = ENOSYS; }, SLICE_EXT_BLOCKED_RSEQ,
         SLICE_EXT_BLOCKED_RSEQ, SLICE_EXT_OWNER_NONE, 0, ENOSYS},
	{"sandbox_rseq_eperm", [](Simulated &s) { s.deny_rseq = EPERM; }, SLICE_EXT_BLOCKED_RSEQ,
         SLICE_EXT_BLOCKED_RSEQ, SLICE_EXT_OWNER_NONE, 0, EPERM},
	{"sandbox_rseq_does_not_matter_with_a_libc_area",
         [](Simulated &s) {
		 s.libc_registers(33, 33);
		 s.deny_rseq = EPERM;
	 },
         SLICE_EXT_AVAILABLE, SLICE_EXT_AVAILABLE, SLICE_EXT_OWNER_LIBC, 33, 0},
	{"unsupported_arch",
         [](Simulated &s) {
		 s.unsupported_arch();
		 s.libc_registers(33, 33);
	 },
         SLICE_EXT_UNSUPPORTED_ARCH, SLICE_EXT_UNSUPPORTED_ARCH, SLICE_EXT_OWNER_NONE, 0, 0},
};

class Availability : public testing::TestWithParam<Case>
{
      protected:
	Availability()
	{
		GetParam().arrange(kernel);
		// Whatever other libraries keep in the bytes the kernel must not touch.
		memset(&kernel.libc_memory.request, 0xa5, 4);
	}

	Simulated kernel;
};

TEST_P(Availability, QueryGivesTheReason)
{
	slice_ext_info info;
	EXPECT_EQ(slice_ext_query(&info), GetParam().query);
	EXPECT_EQ(info.reason, GetParam().query);
	EXPECT_EQ(info.owner, GetParam().owner);
	EXPECT_EQ(info.area_size, GetParam().area_size);
	EXPECT_EQ(info.error, GetParam().error);
	EXPECT_EQ(info.enabled, 0);
	if (GetParam().query == SLICE_EXT_UNSUPPORTED_ARCH) {
		EXPECT_EQ(info.delay_us, -1);
	}
	EXPECT_EQ(slice_ext_query(nullptr), GetParam().query);
}

TEST_P(Availability, QueryChangesNothing)
{
	const slice_ext_abi_rseq before = kernel.libc_memory;
	slice_ext_abi_rseq *const area = kernel.area();

	errno = 4711;
	slice_ext_query(nullptr);
	EXPECT_EQ(errno, 4711);

	EXPECT_EQ(memcmp(&before, &kernel.libc_memory, sizeof(before)), 0);
	EXPECT_EQ(kernel.area(), area);
	EXPECT_FALSE(kernel.enabled);
	EXPECT_FALSE(slice_ext_enabled());
	EXPECT_EQ(kernel.count("prctl SET 0") + kernel.count("prctl SET 1"), 0u);
	EXPECT_EQ(kernel.count("rseq register"), 0u);
}

TEST_P(Availability, EnableGivesItsReasonOrEnables)
{
	slice_ext_abi_rseq *const area = kernel.area();

	errno = 4711;
	ASSERT_EQ(slice_ext_enable(), GetParam().enable);
	EXPECT_EQ(errno, 4711);

	const bool enabled = GetParam().enable == SLICE_EXT_AVAILABLE;
	EXPECT_EQ(slice_ext_enabled(), enabled);
	EXPECT_EQ(kernel.enabled, enabled);
	slice_ext_enter();
	EXPECT_EQ(slice_ext_leave(), enabled ? SLICE_EXT_UNDISTURBED : SLICE_EXT_INACTIVE);

	// A refusal, and disabling, leave the thread as it was found.
	EXPECT_EQ(slice_ext_disable(), 0);
	EXPECT_EQ(kernel.area(), area);
	EXPECT_FALSE(kernel.enabled);
	EXPECT_FALSE(slice_ext_enabled());
	slice_ext_enter();
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
}

TEST_P(Availability, SectionsOfADisabledThreadTouchNothing)
{
	const slice_ext_abi_rseq before = kernel.libc_memory;
	slice_ext_enter();
	slice_ext_leave();
	EXPECT_EQ(memcmp(&before, &kernel.libc_memory, sizeof(before)), 0);
	EXPECT_TRUE(kernel.calls.empty());
}

INSTANTIATE_TEST_SUITE_P(All, Availability, testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Availability, EveryReasonOccursAbove)
{
	std::set<slice_ext_reason> seen;
	for (const Case &c : cases)
		seen.insert(c.query);
	for (int r = SLICE_EXT_AVAILABLE; r <= SLICE_EXT_UNSUPPORTED_ARCH; r++)
		EXPECT_TRUE(seen.count(static_cast<slice_ext_reason>(r))) << r;
}

TEST(Query, TellsWhatTheKernelSays)
{
	Simulated kernel;
	kernel.libc_registers(33, 33);
	kernel.delay_us = 77;
	ASSERT_EQ(slice_ext_enable(), 0);

	slice_ext_info info;
	EXPECT_EQ(slice_ext_query(&info), SLICE_EXT_AVAILABLE);
	EXPECT_EQ(info.enabled, 1);
	EXPECT_EQ(info.delay_us, 77);
	EXPECT_EQ(info.feature_size, 33u);
	EXPECT_EQ(info.feature_align, 64u);

	// 7.x has no such sysctl; unknown is not zero.
	kernel.kernel = Kernel::linux7x;
	EXPECT_EQ(slice_ext_query(&info), SLICE_EXT_AVAILABLE);
	EXPECT_EQ(info.delay_us, -1);
}

TEST(Query, InsideASectionKeepsIt)
{
	Simulated kernel;
	kernel.libc_registers(33, 33);
	ASSERT_EQ(slice_ext_enable(), 0);
	slice_ext_enter();
	slice_ext_query(nullptr);
	EXPECT_EQ(kernel.libc_memory.request, 1);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
}

TEST(Query, DoesNotCallTheNewSystemCallOnOldKernels)
{
	Simulated kernel;
	kernel.kernel = Kernel::without;
	slice_ext_query(nullptr);
	slice_ext_enable();
	EXPECT_EQ(kernel.count("yield"), 0u);
	EXPECT_EQ(kernel.count("rseq probe"), 0u);
}

TEST(Enable, IsIdempotent)
{
	Simulated kernel;
	ASSERT_EQ(slice_ext_enable(), 0);
	slice_ext_abi_rseq *const area = kernel.area();
	slice_ext_enter();
	EXPECT_EQ(slice_ext_enable(), 0);
	EXPECT_EQ(kernel.area(), area);
	EXPECT_EQ(area->request, 1);
	EXPECT_EQ(kernel.count("prctl SET 1"), 1u);
}

TEST(Disable, OfADisabledThreadAsksNobody)
{
	Simulated kernel;
	EXPECT_EQ(slice_ext_disable(), 0);
	EXPECT_TRUE(kernel.calls.empty());
}

TEST(Disable, ReportsASandboxAndStillEndsSections)
{
	Simulated kernel;
	kernel.libc_registers(33, 33);
	ASSERT_EQ(slice_ext_enable(), 0);
	slice_ext_enter();
	kernel.deny_prctl = EPERM;
	EXPECT_EQ(slice_ext_disable(), SLICE_EXT_BLOCKED_PRCTL);
	EXPECT_FALSE(slice_ext_enabled());
	EXPECT_EQ(kernel.libc_memory.request, 0);
	slice_ext_enter();
	EXPECT_EQ(kernel.libc_memory.request, 0);
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
}

TEST(OwnArea, SatisfiesTheKernelAndIsGivenBack)
{
	Simulated kernel;
	kernel.kernel = Kernel::linux7x;
	ASSERT_EQ(slice_ext_enable(), 0);
	ASSERT_TRUE(kernel.registered());
	EXPECT_GE(kernel.area_size(), unsigned{SLICE_EXT_ABI_RSEQ_END});
	EXPECT_EQ(kernel.cpu_id_before, UINT32_MAX);

	slice_ext_info info;
	EXPECT_EQ(slice_ext_query(&info), SLICE_EXT_AVAILABLE);
	EXPECT_EQ(info.owner, SLICE_EXT_OWNER_SELF);
	EXPECT_EQ(info.area_size, kernel.area_size());

	slice_ext_enter();
	ASSERT_TRUE(kernel.grant());
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_YIELDED);

	EXPECT_EQ(slice_ext_disable(), 0);
	EXPECT_FALSE(kernel.registered());
	EXPECT_EQ(kernel.count("rseq unregister"), 1u);
}

TEST(OwnArea, IsGivenBackWhenTheKernelRefusesToEnable)
{
	Simulated kernel;
	kernel.deny_set = EPERM;
	EXPECT_EQ(slice_ext_enable(), SLICE_EXT_BLOCKED_PRCTL);
	EXPECT_EQ(kernel.count("rseq register"), 1u);
	EXPECT_FALSE(kernel.registered());
}

TEST(OwnArea, RegistrationRefusedAfterAll)
{
	Simulated kernel;
	kernel.deny_register = EFAULT;
	EXPECT_EQ(slice_ext_enable(), SLICE_EXT_NO_AREA);
	EXPECT_FALSE(slice_ext_enabled());
}

TEST(OwnArea, IsUnregisteredWhenTheThreadExits)
{
	Simulated kernel;
	std::thread([&] {
		ASSERT_EQ(slice_ext_enable(), 0);
		ASSERT_TRUE(kernel.registered());
	}).join();
	EXPECT_FALSE(kernel.registered());
	EXPECT_EQ(kernel.count("rseq unregister"), 1u);
	EXPECT_EQ(kernel.calls.back(), "rseq unregister");
}

TEST(OwnArea, SectionsInThreadExitHandlersAreHarmless)
{
	Simulated kernel;
	static pthread_key_t key;
	static int rounds;
	static bool harmless;
	rounds = 0;
	harmless = true;
	// The second round comes after the library's own handler, whatever the order.
	ASSERT_EQ(pthread_key_create(&key,
	                             [](void *value) {
					     const bool enabled = slice_ext_enabled();
					     slice_ext_enter();
					     harmless &= slice_ext_leave() ==
		                                         (enabled ? SLICE_EXT_UNDISTURBED
		                                                  : SLICE_EXT_INACTIVE);
					     if (++rounds == 1)
						     pthread_setspecific(key, value);
					     else
						     harmless &= !enabled;
				     }),
	          0);
	std::thread([&] {
		ASSERT_EQ(slice_ext_enable(), 0);
		ASSERT_EQ(pthread_setspecific(key, &kernel), 0);
	}).join();
	pthread_key_delete(key);
	EXPECT_EQ(rounds, 2);
	EXPECT_TRUE(harmless);
	EXPECT_FALSE(kernel.registered());
}

TEST(OwnArea, IsLeakedRatherThanFreedWhileTheKernelHasIt)
{
	Simulated kernel;
	ASSERT_EQ(slice_ext_enable(), 0);
	slice_ext_abi_rseq *const area = kernel.area();
	kernel.deny_rseq = EPERM;
	EXPECT_EQ(slice_ext_disable(), 0);
	EXPECT_EQ(kernel.area(), area);
	// AddressSanitizer would object if it had been freed.
	area->cpu_id = 1;
	EXPECT_EQ(area->cpu_id, 1u);

	kernel.deny_rseq = 0;
	free(area);
}

TEST(Threads, EachStartsDisabled)
{
	Simulated kernel;
	kernel.libc_registers(33, 33);
	ASSERT_EQ(slice_ext_enable(), 0);
	std::thread([] {
		EXPECT_FALSE(slice_ext_enabled());
		slice_ext_enter();
		EXPECT_EQ(slice_ext_leave(), SLICE_EXT_INACTIVE);
	}).join();
	EXPECT_TRUE(slice_ext_enabled());
}

TEST(Reasons, EachHasItsOwnNameTextAndHint)
{
	std::set<std::string> names, texts, hints;
	for (int r = SLICE_EXT_AVAILABLE; r <= SLICE_EXT_UNSUPPORTED_ARCH; r++) {
		const auto reason = static_cast<slice_ext_reason>(r);
		names.insert(slice_ext_reason_name(reason));
		texts.insert(slice_ext_reason_text(reason));
		hints.insert(slice_ext_reason_hint(reason));
	}
	EXPECT_EQ(names.size(), 11u);
	EXPECT_EQ(texts.size(), 11u);
	EXPECT_EQ(hints.size(), 11u);
	EXPECT_EQ(names.count("unknown"), 0u);

	EXPECT_STREQ(slice_ext_reason_name(static_cast<slice_ext_reason>(99)), "unknown");
	EXPECT_NE(slice_ext_reason_text(static_cast<slice_ext_reason>(99)), nullptr);
	EXPECT_NE(slice_ext_reason_hint(static_cast<slice_ext_reason>(99)), nullptr);
}

} // namespace
