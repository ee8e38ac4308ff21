// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_LOCKER_HPP
#define SLICE_EXT_TOOL_DEMO_LOCKER_HPP

#include <slice_ext/slice_ext.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "demo/calibration.hpp"
#include "demo/contended_lock.hpp"
#include "demo/options.hpp"
#include "demo/random.hpp"
#include "demo/result.hpp"
#include "demo/start_gate.hpp"
#include "demo/switch_detector.hpp"

namespace slice_ext::tool
{

// A thread that takes the lock, works, releases it, pauses, and again.
class Locker
{
      public:
	// What other threads may look at while it runs.
	struct Visible {
		alignas(128) std::atomic<std::uint64_t> alive{
			0}; // CycleClock, while it holds the lock
		std::atomic<std::uint64_t> sections{0};
		alignas(128) std::atomic<std::uint64_t> rt_hits{
			0}; // times the RT thread took its CPU
	};

	// INDEX counts all lockers of the run from 0; it makes the thread's pauses and its hold
	// times.
	Locker(const DemoOptions &options, const Calibration &calibration, bool extended,
	       std::uint32_t index, int cpu, ContendedLock &lock);

	// The body of the thread. Never throws; what goes wrong is in error().
	void run(StartGate &gate, const std::atomic<bool> &stop);

	int cpu() const
	{
		return cpu_;
	}
	Visible &visible()
	{
		return visible_;
	}

	// After run().
	const std::string &error() const
	{
		return error_;
	}
	ArmResult result() const;

      private:
	bool acquire(SwitchDetector &detector, const std::atomic<bool> &stop);
	bool one_section(SwitchDetector &detector, const std::atomic<bool> &stop);
	void count_outcome(slice_ext_outcome outcome);

	const DemoOptions &options_;
	const Calibration &calibration_;
	const bool extended_;
	const std::uint32_t identity_; // in the lock word
	const int cpu_;
	const std::uint64_t pause_steps_;
	ContendedLock &lock_;
	Random random_;
	Visible visible_;

	Histogram wait_;
	Histogram hold_;
	bool switches_known_ = false;
	HolderSwitches switches_;
	Outcomes outcomes_;
	std::optional<Counters> counters_;
	std::string error_;
};

} // namespace slice_ext::tool

#endif
