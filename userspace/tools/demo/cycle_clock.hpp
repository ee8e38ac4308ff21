// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_CYCLE_CLOCK_HPP
#define SLICE_EXT_TOOL_DEMO_CYCLE_CLOCK_HPP

#include <cstdint>
#include <ctime>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace slice_ext::tool
{

// A clock that can be read inside a section.
//
// clock_gettime() cannot: where the clocksource has no vDSO part (hpet, acpi_pm) it is a system
// call, and any system call ends a grant. So the time-stamp counter is read directly on x86, and
// converted with a rate measured once against CLOCK_MONOTONIC. Only differences on one CPU are
// meaningful; all threads of the demo are pinned.
class CycleClock
{
      public:
	static std::uint64_t now()
	{
#if defined(__x86_64__) || defined(__i386__)
		return __rdtsc();
#else
		timespec time;
		clock_gettime(CLOCK_MONOTONIC, &time);
		return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
		       static_cast<std::uint64_t>(time.tv_nsec);
#endif
	}

	// Takes 20 ms. Throws std::runtime_error when the counter cannot be read or does not
	// advance.
	static CycleClock calibrate();

	std::uint64_t to_ns(std::uint64_t ticks) const
	{
		return static_cast<std::uint64_t>(static_cast<double>(ticks) * ns_per_tick_);
	}
	double ns_per_tick() const
	{
		return ns_per_tick_;
	}

      private:
	explicit CycleClock(double ns_per_tick) : ns_per_tick_(ns_per_tick)
	{
	}
	double ns_per_tick_;
};

} // namespace slice_ext::tool

#endif
