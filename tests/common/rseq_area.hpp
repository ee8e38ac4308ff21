// SPDX-License-Identifier: MIT
/**
 * @file rseq_area.hpp
 * An rseq area under the test's own control, and the raw calls on it.
 */
#ifndef SLICE_EXT_TESTS_COMMON_RSEQ_AREA_HPP
#define SLICE_EXT_TESTS_COMMON_RSEQ_AREA_HPP

#include "numbers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace slice_test
{

/** rseq(2). @return 0 or the errno value. */
int sys_rseq(void *area, std::uint32_t length, int flags, std::uint32_t signature = rseq_signature);

/** rseq_slice_yield(2). @return its result, or the negated errno value. */
long sys_yield();

/** The slice extension prctl, all five arguments as given.
 * @return its result, or the negated errno value. */
int sys_prctl(unsigned long arg2, unsigned long arg3 = 0, unsigned long arg4 = 0,
              unsigned long arg5 = 0);

/** Opts the calling thread in or out. @return 0 or the errno value. */
int set_enabled(bool on);

/** 1 or 0, or the negated errno value. */
int get_enabled();

/**
 * The words of an rseq area at any address. All accesses are single loads or
 * stores that the compiler keeps: the kernel is the other party, in the same
 * thread.
 */
class RseqView
{
      public:
	explicit RseqView(void *base) : base_(static_cast<unsigned char *>(base))
	{
	}

	void *base() const
	{
		return base_;
	}

	std::uint8_t u8(unsigned offset) const
	{
		return __atomic_load_n(base_ + offset, __ATOMIC_RELAXED);
	}
	void set_u8(unsigned offset, std::uint8_t value)
	{
		__atomic_store_n(base_ + offset, value, __ATOMIC_RELAXED);
	}
	std::uint32_t u32(unsigned offset) const
	{
		return __atomic_load_n(reinterpret_cast<std::uint32_t *>(base_ + offset),
		                       __ATOMIC_RELAXED);
	}
	void set_u32(unsigned offset, std::uint32_t value)
	{
		__atomic_store_n(reinterpret_cast<std::uint32_t *>(base_ + offset), value,
		                 __ATOMIC_RELAXED);
	}
	std::uint64_t u64(unsigned offset) const
	{
		return __atomic_load_n(reinterpret_cast<std::uint64_t *>(base_ + offset),
		                       __ATOMIC_RELAXED);
	}
	void set_u64(unsigned offset, std::uint64_t value)
	{
		__atomic_store_n(reinterpret_cast<std::uint64_t *>(base_ + offset), value,
		                 __ATOMIC_RELAXED);
	}

	std::uint32_t ctrl() const
	{
		return u32(off_slice_ctrl);
	}
	std::uint32_t flags() const
	{
		return u32(off_flags);
	}
	std::uint8_t request() const
	{
		return u8(off_request);
	}
	std::uint8_t granted() const
	{
		return u8(off_granted);
	}
	void set_request(std::uint8_t value)
	{
		set_u8(off_request, value);
	}

      private:
	unsigned char *base_;
};

/** Values of RseqView::ctrl(). */
constexpr std::uint32_t ctrl_idle = 0x0000;
constexpr std::uint32_t ctrl_requested = 0x0001;
constexpr std::uint32_t ctrl_granted = 0x0100;

/**
 * Memory for an rseq area, filled with one byte value, and its registration.
 * The destructor unregisters and must run in the thread that registered.
 */
class RseqArea : public RseqView
{
      public:
	/** @param fill value of every byte
	 *  @param offset from a 256-byte boundary, to choose an alignment */
	explicit RseqArea(std::uint8_t fill = 0, unsigned offset = 0);
	~RseqArea();
	RseqArea(const RseqArea &) = delete;
	RseqArea &operator=(const RseqArea &) = delete;

	/** @return 0 or the errno value */
	int enroll(std::uint32_t length = 64, int flags = 0);
	/** @return 0 or the errno value */
	int withdraw();

	static constexpr std::size_t capacity = 192;

      private:
	std::uint32_t length_ = 0;
};

/** The area the C library registered for the calling thread; base() is null
 * when it registered none. */
RseqView libc_area();

} // namespace slice_test

#endif
