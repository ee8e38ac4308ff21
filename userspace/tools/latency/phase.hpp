// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_PHASE_HPP
#define SLICE_EXT_TOOL_LATENCY_PHASE_HPP

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "latency/record.hpp"

namespace slice_ext::tool::latency
{

// The worst wake-up latency of a real-time thread, found by enumeration instead of sampling: its
// wake-ups are stepped through every phase relative to the tick, at which the slice of one of two
// ordinary threads on the same CPU ends. One of the two asks for extra time.

// What the asking thread does.
enum class PhaseMode {
	plain,  // sections like a user's, but nobody is asked: for kernels without the feature
	user,   // sections of a given length, left in order
	abuser, // asks all the time and never gives the CPU back
};

// Phases first, first + step, ... < end, in nanoseconds from the tick; first may be negative.
struct PhaseWindow {
	std::int64_t first = 0;
	std::int64_t end = 0;
	std::int64_t step = 0;
};

struct PhaseOptions {
	int cpu = 0;
	int priority = 95;
	PhaseMode mode = PhaseMode::plain;
	std::uint64_t hold = 20000; // length of a section, ns; of plain and user
	std::uint64_t period = 0;   // ns; 0: the kernel's tick
	std::vector<PhaseWindow> windows;
	// Wake-ups per period that do not disturb each other.
	unsigned wake_ups_per_period = 4;
	// Samples of each phase that have to hit the asking thread, and how often that is tried.
	unsigned samples = 2;
	unsigned attempts = 16;
};

// The "measure" object of an experiment's arm: mode ("plain", "user", "abuser"), hold_us,
// period_us, priority, step_ns (the whole period in this step, 10..1000000) or windows (a list of
// {from_us, to_us, step_ns}), wake_ups_per_period (1..16), samples (1..1000), attempts (1..10000).
// Throws std::invalid_argument with a text for the author of the file.
PhaseOptions phase_options_from_json(const nlohmann::json &measure);

// Each phase of WINDOWS once, ascending, reduced to 0..period-1.
std::vector<std::uint64_t> phases_of(const std::vector<PhaseWindow> &windows, std::uint64_t period);

// Book-keeping of the search: which phase is to be tried next, and what was found.
class PhasePlan
{
      public:
	PhasePlan(std::vector<std::uint64_t> phases, std::uint64_t period, unsigned slots,
	          unsigned samples, unsigned attempts);

	// Index of the next phase to try in part SLOT of the period; -1: nothing left there.
	int next(unsigned slot) const;
	// What the wake-up at phase INDEX found.
	void found(int index, std::uint64_t latency, PhaseState state);
	bool done() const;
	// Starts over with the phases between the first and the last that met extra time and
	// those among them that did not. False if there are none.
	bool revisit_grants();

	unsigned slots() const
	{
		return static_cast<unsigned>(queues_.size());
	}
	std::uint64_t phase(int index) const
	{
		return entries_[static_cast<std::size_t>(index)].phase;
	}
	std::uint64_t wake_ups() const
	{
		return wake_ups_;
	}
	// Phases that never met the asking thread.
	std::size_t uncovered() const;
	// The worst of each phase and state, by phase.
	std::vector<PhaseSample> samples() const;

      private:
	static constexpr unsigned kStates = 5;
	struct Entry {
		std::uint64_t phase;
		unsigned tries = 0;
		unsigned hits = 0; // of the state that is wanted
		std::uint64_t worst[kStates] = {};
		bool seen[kStates] = {};
	};
	struct Queue {
		std::size_t position = 0;
		std::vector<int> indexes;
	};
	bool finished(const Entry &entry) const;

	std::vector<Entry> entries_;
	std::vector<Queue> queues_;
	std::uint64_t slot_length_;
	unsigned samples_;
	unsigned attempts_;
	bool want_granted_ = false;
	std::uint64_t wake_ups_ = 0;
};

// Runs the search; STOP set from elsewhere ends it early, with what was found so far.
// Throws std::system_error: no right to SCHED_FIFO or to lock memory, no such CPU;
// std::runtime_error: the feature cannot be used by a user or abuser, or no tick was found.
PhaseScan measure_phase(const PhaseOptions &options, const std::atomic<bool> &stop);

} // namespace slice_ext::tool::latency

#endif
