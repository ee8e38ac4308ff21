// SPDX-License-Identifier: MIT
/// @file slice_ext.hpp
/// C++17 face of slice_ext.h: sections, a lock adapter and per-thread enabling
/// that follow scopes. Nothing here allocates, and only the adapted lock throws.
#ifndef SLICE_EXT_SLICE_EXT_HPP
#define SLICE_EXT_SLICE_EXT_HPP

#include <slice_ext/slice_ext.h>

#include <utility>

namespace slice_ext
{

using reason = ::slice_ext_reason;
using owner = ::slice_ext_owner;
using outcome = ::slice_ext_outcome;
using info = ::slice_ext_info;

/// slice_ext_query().
[[nodiscard]] inline info query() noexcept
{
	info found;
	::slice_ext_query(&found);
	return found;
}

/// slice_ext_enable(): SLICE_EXT_AVAILABLE if the thread is enabled now.
inline reason enable() noexcept
{
	return static_cast<reason>(::slice_ext_enable());
}

/// slice_ext_disable(): SLICE_EXT_AVAILABLE if the thread is disabled now.
inline reason disable() noexcept
{
	return static_cast<reason>(::slice_ext_disable());
}

/// slice_ext_enabled().
[[nodiscard]] inline bool enabled() noexcept
{
	return ::slice_ext_enabled() != 0;
}

/// Enables the thread for a scope, and disables it at the end unless it was
/// enabled before. Construct and destroy it in the same thread.
class [[nodiscard]] thread_scope
{
      public:
	thread_scope() noexcept : was_enabled_(slice_ext::enabled()), why_(enable())
	{
	}

	~thread_scope()
	{
		if (!was_enabled_)
			disable();
	}

	thread_scope(const thread_scope &) = delete;
	thread_scope &operator=(const thread_scope &) = delete;

	/// SLICE_EXT_AVAILABLE if the thread is enabled, or why not.
	[[nodiscard]] reason why() const noexcept
	{
		return why_;
	}

	explicit operator bool() const noexcept
	{
		return why_ == SLICE_EXT_AVAILABLE;
	}

      private:
	bool was_enabled_;
	reason why_;
};

/// A section that lasts as long as the object, or until leave().
class [[nodiscard]] section
{
      public:
	section() noexcept
	{
		::slice_ext_enter();
	}

	~section()
	{
		if (open_)
			::slice_ext_leave();
	}

	section(const section &) = delete;
	section &operator=(const section &) = delete;

	/// Ends the section before the scope does. Again: SLICE_EXT_INACTIVE.
	outcome leave() noexcept
	{
		if (!std::exchange(open_, false))
			return SLICE_EXT_INACTIVE;
		return ::slice_ext_leave();
	}

      private:
	bool open_ = true;
};

/// A lock whose critical sections ask for an extension. Meets Lockable, so
/// std::lock_guard, std::unique_lock, std::scoped_lock and std::lock take it.
///
/// @tparam Lock  a Lockable type, or a reference to one to adapt an existing lock:
///         `extended_lock<std::mutex>` owns, `extended_lock<std::mutex &>` refers
template <class Lock> class extended_lock
{
      public:
	template <class... Args>
	explicit extended_lock(Args &&...args) : lock_(std::forward<Args>(args)...)
	{
	}

	extended_lock(const extended_lock &) = delete;
	extended_lock &operator=(const extended_lock &) = delete;

	/// Blocks. A free lock is taken inside the section. A thread that has to
	/// wait asks for nothing meanwhile: a waiter that spins would keep the
	/// holder off the CPU, and the kernel drops the request of one that sleeps.
	void lock()
	{
		if (try_lock())
			return;
		lock_.lock();
		::slice_ext_enter();
	}

	/// Withdraws the request if the lock is not free, or if it throws.
	[[nodiscard]] bool try_lock()
	{
		section attempt;

		if (!lock_.try_lock())
			return false;
		::slice_ext_enter(); // outlives the attempt
		return true;
	}

	/// Gives the CPU back, if the section was extended, after the lock is free.
	void unlock()
	{
		lock_.unlock();
		::slice_ext_leave();
	}

      private:
	Lock lock_;
};

} // namespace slice_ext

#endif
