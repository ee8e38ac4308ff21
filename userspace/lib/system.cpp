// SPDX-License-Identifier: MIT
#include "system.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

// glibc 2.35 and newer. Weak, so that the library also links with, and starts on,
// a libc without them, and needs no dlsym() in a static program.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
}

namespace slice_ext_internal
{
namespace
{

#if defined(SYS_rseq)
constexpr long nr_rseq = SYS_rseq;
#elif defined(SLICE_EXT_ABI_NR_RSEQ)
constexpr long nr_rseq = SLICE_EXT_ABI_NR_RSEQ;
#else
constexpr long nr_rseq = -1;
#endif

// syscall() reports through errno, which belongs to the caller.
template <class... Args> long raw_syscall(long number, Args... args)
{
	const int saved = errno;
	long result = syscall(number, args...);

	if (result == -1)
		result = -errno;
	errno = saved;
	return result;
}

long real_prctl(unsigned long operation, unsigned long argument)
{
	return raw_syscall(SYS_prctl, static_cast<unsigned long>(SLICE_EXT_ABI_PR), operation,
	                   argument, 0UL, 0UL);
}

long real_rseq(void *area, unsigned size, int flags)
{
	return raw_syscall(nr_rseq, area, size, flags, SLICE_EXT_ABI_RSEQ_SIGNATURE);
}

long real_yield()
{
	return raw_syscall(SLICE_EXT_ABI_NR_YIELD);
}

unsigned long real_auxv(unsigned long type)
{
	const int saved = errno;
	const unsigned long value = getauxval(type);

	errno = saved;
	return value;
}

libc_area real_libc()
{
	// Size 0: libc was told to leave rseq alone, or the kernel refused it.
	if (&__rseq_offset == nullptr || &__rseq_size == nullptr || __rseq_size == 0)
		return {nullptr, 0};

	char *thread = static_cast<char *>(__builtin_thread_pointer());
	return {reinterpret_cast<slice_ext_abi_rseq *>(thread + __rseq_offset), __rseq_size};
}

int real_delay_us()
{
	const int saved = errno;
	int value = -1;
	const int fd = open(SLICE_EXT_ABI_SYSCTL, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		char text[16];
		const ssize_t length = read(fd, text, sizeof(text) - 1);

		if (length > 0) {
			text[length] = '\0';
			value = static_cast<int>(strtol(text, nullptr, 10));
		}
		close(fd);
	}
	errno = saved;
	return value;
}

} // namespace

const system real_system = {
	SLICE_EXT_ABI_ARCH != 0, real_prctl, real_rseq, real_yield, real_auxv, real_libc,
	real_delay_us,
};

const system *current_system = &real_system;

} // namespace slice_ext_internal
