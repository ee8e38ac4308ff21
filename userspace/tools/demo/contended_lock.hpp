// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_CONTENDED_LOCK_HPP
#define SLICE_EXT_TOOL_DEMO_CONTENDED_LOCK_HPP

#include <atomic>
#include <cstdint>

namespace slice_ext::tool
{

inline void cpu_relax()
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// The one spinlock of the demo, its holder in the lock word, and what it protects.
class ContendedLock
{
      public:
	// HOLDER is 1 or more, and the caller's own.
	bool try_lock(std::uint32_t holder)
	{
		std::uint32_t free = 0;
		return holder_.compare_exchange_strong(free, holder, std::memory_order_acquire,
		                                       std::memory_order_relaxed);
	}
	void unlock()
	{
		holder_.store(0, std::memory_order_release);
	}
	bool is_free() const
	{
		return holder_.load(std::memory_order_relaxed) == 0;
	}
	std::uint32_t holder() const
	{
		return holder_.load(std::memory_order_relaxed);
	}

	// Only for the holder. A plain increment on purpose: it loses sections if the lock does not
	// work.
	void count_section()
	{
		sections_ = sections_ + 1;
	}
	std::uint64_t sections() const
	{
		return sections_;
	}

      private:
	alignas(128) std::atomic<std::uint32_t> holder_{0};
	alignas(128) volatile std::uint64_t sections_ = 0;
};

} // namespace slice_ext::tool

#endif
