// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_RESULT_HPP
#define SLICE_EXT_TOOL_DEMO_RESULT_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "demo/histogram.hpp"
#include "kernel_counters.hpp"

namespace slice_ext::tool
{

// What slice_ext_leave() answered, by answer. "withdrawn": left after a failed attempt at the lock.
struct Outcomes {
	std::uint64_t undisturbed = 0;
	std::uint64_t yielded = 0;
	std::uint64_t ended = 0;
	std::uint64_t withdrawn_yielded = 0;

	Outcomes &operator+=(const Outcomes &more)
	{
		undisturbed += more.undisturbed;
		yielded += more.yielded;
		ended += more.ended;
		withdrawn_yielded += more.withdrawn_yielded;
		return *this;
	}
};

// Times the lock holder was switched out against its will.
struct HolderSwitches {
	std::uint64_t sections = 0;   // sections that lost the CPU at least once
	std::uint64_t only_by_rt = 0; // of these: to the demo's own real-time thread, nobody else

	std::uint64_t by_ordinary() const
	{
		return sections - only_by_rt;
	}
	HolderSwitches &operator+=(const HolderSwitches &more)
	{
		sections += more.sections;
		only_by_rt += more.only_by_rt;
		return *this;
	}
};

// One arm of the comparison: the phases without, or those with extension, added up.
struct ArmResult {
	double seconds = 0;
	std::uint64_t sections = 0;
	bool exclusive = true; // the lock kept sections apart
	Histogram wait;        // ns from the first attempt to holding the lock
	Histogram hold;        // ns the lock was held
	std::optional<HolderSwitches> switches =
		HolderSwitches{}; // nullopt: cannot be observed here
	Outcomes outcomes;
	std::optional<Counters> own_counters; // the lockers', added up; nullopt: not in this kernel
	std::optional<Counters> machine_counters; // everybody's
	Histogram rt_latency;                     // ns; empty without a real-time thread

	ArmResult &operator+=(const ArmResult &more);

	// The kernel's figures for the lockers, or for the machine where it does not count per
	// thread.
	std::optional<Counters> counters() const
	{
		return own_counters ? own_counters : machine_counters;
	}
};

} // namespace slice_ext::tool

#endif
