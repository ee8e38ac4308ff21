// SPDX-License-Identifier: MIT
#include "rseq_area.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Weak: the C libraries without rseq support do not have them.
extern "C" {
extern const std::ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
}

namespace slice_test
{

int sys_rseq(void *area, std::uint32_t length, int flags, std::uint32_t signature)
{
	return syscall(nr_rseq, area, length, flags, signature) == 0 ? 0 : errno;
}

long sys_yield()
{
	const long result = syscall(nr_yield);
	return result >= 0 ? result : -errno;
}

int sys_prctl(unsigned long arg2, unsigned long arg3, unsigned long arg4, unsigned long arg5)
{
	const int result = prctl(pr_slice, arg2, arg3, arg4, arg5);
	return result >= 0 ? result : -errno;
}

int set_enabled(bool on)
{
	return -sys_prctl(pr_set, on ? pr_enable : 0);
}

int get_enabled()
{
	return sys_prctl(pr_get);
}

namespace
{

unsigned char *new_area(std::uint8_t fill, unsigned offset)
{
	constexpr std::size_t boundary = 256;
	auto *memory = static_cast<unsigned char *>(std::aligned_alloc(boundary, 2 * boundary));
	if (!memory)
		throw std::bad_alloc();
	std::memset(memory, fill, 2 * boundary);
	return memory + offset;
}

} // namespace

RseqArea::RseqArea(std::uint8_t fill, unsigned offset) : RseqView(new_area(fill, offset))
{
}

RseqArea::~RseqArea()
{
	if (length_)
		sys_rseq(base(), length_, rseq_unregister);
	const auto address = reinterpret_cast<std::uintptr_t>(base());
	std::free(reinterpret_cast<void *>(address & ~std::uintptr_t{255}));
}

int RseqArea::enroll(std::uint32_t length, int flags)
{
	const int error = sys_rseq(base(), length, flags);
	if (!error)
		length_ = length;
	return error;
}

int RseqArea::withdraw()
{
	const int error = sys_rseq(base(), length_, rseq_unregister);
	if (!error)
		length_ = 0;
	return error;
}

RseqView libc_area()
{
	if (!&__rseq_size || !__rseq_size)
		return RseqView(nullptr);
	return RseqView(static_cast<char *>(__builtin_thread_pointer()) + __rseq_offset);
}

} // namespace slice_test
