// SPDX-License-Identifier: MIT
#include "demo/locker.hpp"

namespace slice_ext::tool
{

namespace
{

// A waiter looks at the lock word some ten times a microsecond, not as often as it can: the cache
// line stays with the holder, and an emulator, for which a pause is costly, twice as fast.
constexpr std::uint64_t kStepsBetweenLooks = 64;

// Against the protocol, and behind the library's back: that is what an abuser does.
void set_request_for_good()
{
	if (slice_ext_self.ctrl != nullptr)
		slice_ext_self.ctrl[0] = 1;
}

} // namespace

Locker::Locker(const DemoOptions &options, const Calibration &calibration, bool extended,
               std::uint32_t index, int cpu, ContendedLock &lock)
	: options_(options), calibration_(calibration), extended_(extended), identity_(index + 1),
	  cpu_(cpu),
	  // Each a bit slower than the one before, up to a limit: equal periods would lock the
	  // threads in step.
	  pause_steps_(calibration.work.steps_for_us(options.pause_us * (1 + 0.27 * (index % 8)))),
	  lock_(lock), random_(index + 1)
{
}

void Locker::run(StartGate &gate, const std::atomic<bool> &stop)
{
	if (extended_) {
		if (const int reason = slice_ext_enable())
			error_ = slice_ext_reason_text(static_cast<slice_ext_reason>(reason));
	}
	SwitchDetector detector;
	switches_known_ = detector.available();
	const Parsed<Counters> before = read_own_counters();
	if (gate.wait() && error_.empty()) {
		detector.arm();
		while (one_section(detector, stop))
			BusyWork::run(pause_steps_);
	}
	const Parsed<Counters> after = read_own_counters();
	if (before.value && after.value)
		counters_ = *after.value - *before.value;
	if (extended_)
		slice_ext_disable();
}

// Returns with the lock and, in the arm with extension, inside a section; or false without either.
bool Locker::acquire(SwitchDetector &detector, const std::atomic<bool> &stop)
{
	const bool sections = extended_ && !options_.abuse;
	const bool sections_wait = sections && options_.extend_while_waiting;
	if (sections_wait)
		slice_ext_enter();
	for (;;) {
		if (stop.load(std::memory_order_relaxed)) {
			if (sections_wait)
				slice_ext_leave();
			return false;
		}
		if (detector.touched()) {
			// Switched out while waiting: allowed, but the count has to be read now,
			// since it cannot be once the lock is held. The switch took the request
			// away, too.
			if (sections_wait)
				slice_ext_leave();
			detector.count();
			if (sections_wait)
				slice_ext_enter();
		}
		if (extended_ && options_.abuse)
			set_request_for_good();
		if (!lock_.is_free()) {
			cpu_relax();
			BusyWork::run(kStepsBetweenLooks);
			continue;
		}
		if (sections && !sections_wait)
			slice_ext_enter();
		if (lock_.try_lock(identity_))
			return true;
		if (sections && !sections_wait && slice_ext_leave() == SLICE_EXT_YIELDED)
			++outcomes_.withdrawn_yielded;
	}
}

bool Locker::one_section(SwitchDetector &detector, const std::atomic<bool> &stop)
{
	const std::uint64_t steps =
		random_.between(calibration_.work.steps_for_us(options_.hold_low_us),
	                        calibration_.work.steps_for_us(options_.hold_high_us));
	const std::uint64_t asked = CycleClock::now();
	if (!acquire(detector, stop))
		return false;

	const std::uint64_t acquired = CycleClock::now();
	const bool unseen = detector.touched();
	const std::uint64_t rt_before = visible_.rt_hits.load(std::memory_order_relaxed);
	lock_.count_section();
	if (options_.heartbeat)
		calibration_.work.run_alive(steps, visible_.alive);
	else
		BusyWork::run(steps);
	const bool touched = detector.touched();
	const std::uint64_t rt_hits = visible_.rt_hits.load(std::memory_order_relaxed) - rt_before;
	const std::uint64_t released = CycleClock::now();
	lock_.unlock();

	slice_ext_outcome outcome = SLICE_EXT_INACTIVE;
	if (extended_ && !options_.abuse) {
		outcome = slice_ext_leave();
		count_outcome(outcome);
	}
	if (touched) {
		const std::uint64_t switches = detector.count();
		// A grant that was still there to be given back means that no switch happened
		// before: one would have taken the request with it. What was counted then is the
		// yield itself.
		if (!unseen && switches > 0 && outcome != SLICE_EXT_YIELDED) {
			++switches_.sections;
			if (switches <= rt_hits)
				++switches_.only_by_rt;
		}
	}
	wait_.record(calibration_.clock.to_ns(acquired - asked));
	hold_.record(calibration_.clock.to_ns(released - acquired));
	visible_.sections.store(visible_.sections.load(std::memory_order_relaxed) + 1,
	                        std::memory_order_relaxed);
	return true;
}

void Locker::count_outcome(slice_ext_outcome outcome)
{
	switch (outcome) {
	case SLICE_EXT_UNDISTURBED:
		++outcomes_.undisturbed;
		break;
	case SLICE_EXT_YIELDED:
		++outcomes_.yielded;
		break;
	case SLICE_EXT_ENDED:
		++outcomes_.ended;
		break;
	case SLICE_EXT_INACTIVE:
	case SLICE_EXT_NESTED:
		break;
	}
}

ArmResult Locker::result() const
{
	ArmResult result;
	result.sections = visible_.sections.load(std::memory_order_relaxed);
	result.wait = wait_;
	result.hold = hold_;
	result.switches = switches_known_ ? std::optional(switches_) : std::nullopt;
	result.outcomes = outcomes_;
	result.own_counters = counters_;
	result.machine_counters = Counters{};
	return result;
}

} // namespace slice_ext::tool
