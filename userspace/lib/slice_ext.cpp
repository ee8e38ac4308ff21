// SPDX-License-Identifier: MIT
#include <slice_ext/slice_ext.h>

#include "system.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include <pthread.h>

__thread slice_ext_thread slice_ext_self __attribute__((tls_model("initial-exec")));

namespace slice_ext_internal
{
namespace
{

struct area {
	slice_ext_owner owner;
	slice_ext_abi_rseq *rseq;
	unsigned size; // bytes that belong to the area
};

// The area this library registered for the thread, if it did. On the heap, not in
// thread-local storage: if it cannot be unregistered it is leaked, and the kernel
// never writes to memory that has become something else.
__thread area own __attribute__((tls_model("initial-exec")));

pthread_once_t exit_once = PTHREAD_ONCE_INIT;
pthread_key_t exit_key;
bool exit_key_valid;

const system &sys()
{
	return *current_system;
}

area find_area()
{
	if (own.rseq)
		return own;

	const libc_area libc = sys().libc();
	if (libc.rseq) {
		const volatile slice_ext_abi_rseq *rseq = libc.rseq;

		// Negative: not registered in this thread, whatever libc did in others.
		if (static_cast<int32_t>(rseq->cpu_id) >= 0) {
			// glibc before 2.41 has 32 bytes and says 20, 28 or 32.
			const unsigned size = libc.size > SLICE_EXT_ABI_RSEQ_LEGACY_SIZE
			                              ? libc.size
			                              : SLICE_EXT_ABI_RSEQ_LEGACY_SIZE;
			return {SLICE_EXT_OWNER_LIBC, libc.rseq, size};
		}
	}
	return {SLICE_EXT_OWNER_NONE, nullptr, 0};
}

slice_ext_reason why_not_prctl(long error, unsigned feature_size)
{
	switch (error) {
	case EINVAL:
		// A kernel that advertises the feature knows the operation.
		return feature_size >= SLICE_EXT_ABI_RSEQ_END ? SLICE_EXT_BLOCKED_PRCTL
		                                              : SLICE_EXT_KERNEL_WITHOUT;
	case SLICE_EXT_ABI_ENOTSUPP:
		return SLICE_EXT_KERNEL_WITHOUT;
	default:
		return SLICE_EXT_BLOCKED_PRCTL;
	}
}

// The kernel has the feature and does not offer it to this area.
slice_ext_reason why_not_offered(unsigned area_size, unsigned feature_size)
{
	// Advertised: a 7.x kernel, or ours and on, which takes any area.
	if (feature_size >= SLICE_EXT_ABI_RSEQ_END && area_size <= SLICE_EXT_ABI_RSEQ_LEGACY_SIZE)
		return SLICE_EXT_AREA_TOO_SMALL;
	return SLICE_EXT_OFF_AT_BOOT;
}

// Would a registration be accepted? The address cannot be one of user space, so
// this fails whatever the state is: EFAULT only after the kernel has found that
// the thread has no area yet.
slice_ext_reason why_no_area(int &error)
{
	void *nowhere = reinterpret_cast<void *>(~uintptr_t{0} << 12);
	const long result = sys().rseq(nowhere, SLICE_EXT_ABI_RSEQ_ALIGN, 0);

	if (result == -EFAULT)
		return SLICE_EXT_NO_AREA;
	error = static_cast<int>(-result);
	if (result == -EINVAL || result == -EBUSY)
		return SLICE_EXT_OTHER_OWNER;
	return SLICE_EXT_BLOCKED_RSEQ;
}

slice_ext_reason find_reason(slice_ext_info &info, const area &found)
{
	const long enabled = sys().prctl(SLICE_EXT_ABI_PR_GET, 0);
	if (enabled < 0) {
		info.error = static_cast<int>(-enabled);
		return why_not_prctl(-enabled, info.feature_size);
	}
	info.enabled = enabled == 1;

	// Every kernel with the prctl has the system call.
	const long yielded = sys().yield();
	if (yielded < 0) {
		info.error = static_cast<int>(-yielded);
		return SLICE_EXT_BLOCKED_YIELD;
	}

	const volatile slice_ext_abi_rseq *rseq = found.rseq;
	if (!rseq) {
		if (info.feature_size < SLICE_EXT_ABI_RSEQ_END)
			return SLICE_EXT_OFF_AT_BOOT;
		const slice_ext_reason reason = why_no_area(info.error);
		if (reason == SLICE_EXT_OTHER_OWNER)
			info.owner = SLICE_EXT_OWNER_OTHER;
		return reason;
	}

	// The flags, not a trial: 7.x kills on a SET when they were tampered with.
	if (!(rseq->flags & SLICE_EXT_ABI_FLAG_AVAILABLE))
		return why_not_offered(found.size, info.feature_size);

	return info.delay_us == 0 ? SLICE_EXT_SYSCTL_ZERO : SLICE_EXT_AVAILABLE;
}

slice_ext_reason inspect(slice_ext_info &info, area &found)
{
	found = {SLICE_EXT_OWNER_NONE, nullptr, 0};
	info = {};
	info.delay_us = -1;
	if (!sys().supported_arch)
		return SLICE_EXT_UNSUPPORTED_ARCH;

	found = find_area();
	info.owner = found.owner;
	info.area_size = found.size;
	info.feature_size = static_cast<unsigned>(sys().auxv(SLICE_EXT_ABI_AT_RSEQ_FEATURE_SIZE));
	info.feature_align = static_cast<unsigned>(sys().auxv(SLICE_EXT_ABI_AT_RSEQ_ALIGN));
	info.delay_us = sys().delay_us();
	return find_reason(info, found);
}

void release_own_area()
{
	if (own.rseq && sys().rseq(own.rseq, own.size, SLICE_EXT_ABI_RSEQ_UNREGISTER) == 0)
		free(own.rseq);
	own = {};
	pthread_setspecific(exit_key, nullptr);
}

void at_thread_exit(void *)
{
	slice_ext_disable();
}

void make_exit_key()
{
	exit_key_valid = pthread_key_create(&exit_key, at_thread_exit) == 0;
}

unsigned at_least(unsigned long value, unsigned minimum)
{
	return value > minimum ? static_cast<unsigned>(value) : minimum;
}

slice_ext_reason register_own_area(const slice_ext_info &info)
{
	pthread_once(&exit_once, make_exit_key);
	if (!exit_key_valid || pthread_setspecific(exit_key, &own) != 0)
		return SLICE_EXT_NO_AREA;

	// Whatever a future kernel advertises: whole units of its alignment.
	const unsigned align = at_least(info.feature_align, SLICE_EXT_ABI_RSEQ_ALIGN);
	const unsigned size =
		(at_least(info.feature_size, SLICE_EXT_ABI_RSEQ_END) + align - 1) / align * align;
	void *memory = nullptr;
	if (posix_memalign(&memory, align, size) != 0)
		return SLICE_EXT_NO_AREA;
	for (unsigned i = 0; i < size; i++)
		static_cast<unsigned char *>(memory)[i] = 0;

	auto *rseq = static_cast<slice_ext_abi_rseq *>(memory);
	rseq->cpu_id = UINT32_MAX;
	if (sys().rseq(rseq, size, 0) != 0) {
		free(memory);
		pthread_setspecific(exit_key, nullptr);
		return SLICE_EXT_NO_AREA;
	}
	own = {SLICE_EXT_OWNER_SELF, rseq, size};
	return SLICE_EXT_AVAILABLE;
}

} // namespace
} // namespace slice_ext_internal

using namespace slice_ext_internal;

extern "C" {

slice_ext_reason slice_ext_query(slice_ext_info *info)
{
	slice_ext_info local;
	area found;

	if (!info)
		info = &local;
	const slice_ext_reason reason = inspect(*info, found);
	info->reason = reason;
	return reason;
}

int slice_ext_enable(void)
{
	if (slice_ext_enabled())
		return 0;

	slice_ext_info info;
	area found;
	slice_ext_reason reason = inspect(info, found);

	if (reason == SLICE_EXT_NO_AREA) {
		reason = register_own_area(info);
		found = own;
	}
	if (reason != SLICE_EXT_AVAILABLE && reason != SLICE_EXT_SYSCTL_ZERO)
		return reason;

	const long result = sys().prctl(SLICE_EXT_ABI_PR_SET, SLICE_EXT_ABI_PR_ENABLE);
	if (result < 0) {
		if (own.rseq)
			release_own_area();
		switch (-result) {
		case SLICE_EXT_ABI_ENOTSUPP:
			return why_not_offered(found.size, info.feature_size);
		case ENXIO:
		case EFAULT:
			return SLICE_EXT_NO_AREA;
		default:
			return SLICE_EXT_BLOCKED_PRCTL;
		}
	}

	slice_ext_self.ctrl = &found.rseq->request;
	return 0;
}

int slice_ext_disable(void)
{
	if (!slice_ext_enabled())
		return 0;

	// In this order each step leaves handlers a state their sections can use.
	volatile unsigned char *ctrl = slice_ext_self.ctrl;
	slice_ext_self.depth = 0;
	ctrl[0] = 0;
	slice_ext_self.ctrl = nullptr;

	const long result = sys().prctl(SLICE_EXT_ABI_PR_SET, 0);
	if (own.rseq)
		release_own_area();
	return result < 0 ? SLICE_EXT_BLOCKED_PRCTL : 0;
}

int slice_ext_enabled(void)
{
	return slice_ext_self.ctrl != nullptr;
}

slice_ext_outcome slice_ext_yield_granted(void)
{
	// 0 if the extension ended between the read of `granted` and this call; an
	// error if a sandbox was set up since, and then the call itself ended it.
	const bool yielded = sys().yield() == 1;

	slice_ext_self.depth = 0;
	return yielded ? SLICE_EXT_YIELDED : SLICE_EXT_ENDED;
}

void slice_ext_enter_call(void)
{
	slice_ext_enter();
}

slice_ext_outcome slice_ext_leave_call(void)
{
	return slice_ext_leave();
}

} // extern "C"
