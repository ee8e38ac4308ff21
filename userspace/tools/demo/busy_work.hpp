// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_BUSY_WORK_HPP
#define SLICE_EXT_TOOL_DEMO_BUSY_WORK_HPP

#include <atomic>
#include <cstdint>

#include "demo/cycle_clock.hpp"

namespace slice_ext::tool
{

// A calibrated amount of computation: no memory access, no system call.
//
// Amounts of work, not spans of time: a section that loses its CPU still has the rest of its work
// to do when it comes back, as a real one has. A loop that waits for a clock would be forgiven it.
class BusyWork
{
      public:
	// Time the fastest of many short runs took on the calling thread's CPU, hence without
	// interrupts: takes about 10 ms.
	static BusyWork calibrate(const CycleClock &clock);

	std::uint64_t steps_for_us(double microseconds) const
	{
		return static_cast<std::uint64_t>(microseconds * steps_per_us_);
	}
	double steps_per_us() const
	{
		return steps_per_us_;
	}

	static void run(std::uint64_t steps)
	{
		std::uint64_t state = steps;
		for (; steps != 0; --steps) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			// Keeps the compiler from folding the loop.
			asm volatile("" : "+r"(state));
		}
	}

	// The same, and stores the clock into ALIVE about every microsecond of it.
	void run_alive(std::uint64_t steps, std::atomic<std::uint64_t> &alive) const
	{
		const std::uint64_t chunk = steps_for_us(1) + 1;
		for (; steps > chunk; steps -= chunk) {
			alive.store(CycleClock::now(), std::memory_order_relaxed);
			run(chunk);
		}
		alive.store(CycleClock::now(), std::memory_order_relaxed);
		run(steps);
	}

      private:
	explicit BusyWork(double steps_per_us) : steps_per_us_(steps_per_us)
	{
	}
	double steps_per_us_;
};

} // namespace slice_ext::tool

#endif
