// SPDX-License-Identifier: MIT
#include "latency/phase.hpp"

#include <sched.h>
#include <slice_ext/slice_ext.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>

#include "demo/pinned_thread.hpp"
#include "demo/rt_probe.hpp"

namespace slice_ext::tool::latency
{

namespace
{

constexpr std::int64_t kNsPerSecond = 1000000000;

std::int64_t now_ns()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return static_cast<std::int64_t>(time.tv_sec) * kNsPerSecond + time.tv_nsec;
}

void sleep_until(std::int64_t instant)
{
	const timespec until = {static_cast<time_t>(instant / kNsPerSecond),
	                        static_cast<long>(instant % kNsPerSecond)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
	}
}

// Resolution of the coarse clock: the kernel advances it once per tick.
std::uint64_t kernel_tick()
{
	timespec resolution;
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0)
		throw std::system_error(errno, std::generic_category(), "clock_getres");
	return static_cast<std::uint64_t>(resolution.tv_sec * kNsPerSecond + resolution.tv_nsec);
}

// Shared by the three threads. The two ordinary ones say in each turn of their loops who they are
// and where, so the last word is about the one that the wake-up interrupted.
struct alignas(64) Stage {
	std::atomic<unsigned> state{0};
	std::atomic<bool> stop{false};
	std::atomic<bool> ready{false};
	std::atomic<int> reason{SLICE_EXT_AVAILABLE};

	void say(PhaseState now)
	{
		state.store(static_cast<unsigned>(now), std::memory_order_relaxed);
	}
	bool over() const
	{
		return stop.load(std::memory_order_relaxed);
	}
};

void run_hog(Stage &stage)
{
	while (!stage.over())
		stage.say(PhaseState::hog);
}

PhaseState state_inside(const volatile unsigned char *ctrl)
{
	return ctrl[1] ? PhaseState::granted : PhaseState::section;
}

void run_abuser(Stage &stage, volatile unsigned char *ctrl)
{
	while (!stage.over()) {
		stage.say(state_inside(ctrl));
		// Cleared by the kernel when it answered or switched the thread out. Asking again
		// while the extra time runs would be in vain.
		if (!ctrl[0] && !ctrl[1])
			ctrl[0] = 1;
	}
	ctrl[0] = 0;
}

void run_sections(Stage &stage, const volatile unsigned char *ctrl, std::uint64_t hold)
{
	// Not a divisor of anything, so that sections move through the period.
	constexpr std::int64_t kPause = 3137;
	while (!stage.over()) {
		std::int64_t end = now_ns() + static_cast<std::int64_t>(hold);
		slice_ext_enter();
		do
			stage.say(state_inside(ctrl));
		while (now_ns() < end);
		slice_ext_leave();
		end = now_ns() + kPause;
		do
			stage.say(PhaseState::outside);
		while (now_ns() < end);
	}
}

void run_asker(Stage &stage, const PhaseOptions &options)
{
	static const volatile unsigned char nothing[2] = {};
	const volatile unsigned char *watched = nothing;
	if (options.mode != PhaseMode::plain) {
		stage.reason = slice_ext_enable();
		if (stage.reason != SLICE_EXT_AVAILABLE) {
			stage.ready = true;
			return;
		}
		watched = slice_ext_self.ctrl;
	}
	stage.ready = true;
	if (options.mode == PhaseMode::abuser)
		run_abuser(stage, slice_ext_self.ctrl);
	else
		run_sections(stage, watched, options.hold);
}

// Where in the period the tick is: it interrupts a loop that does nothing but read the clock, at
// the same phase again and again.
std::uint64_t find_tick(std::uint64_t period)
{
	constexpr unsigned kTicks = 15;
	// Longer than a turn of the loop, shorter than any timer interrupt.
	constexpr std::int64_t kGap = 700;
	const std::int64_t deadline = now_ns() + static_cast<std::int64_t>(kTicks * period);
	std::vector<std::uint64_t> phases;
	std::int64_t last = now_ns();
	while (last < deadline) {
		const std::int64_t now = now_ns();
		if (now - last > kGap)
			phases.push_back(static_cast<std::uint64_t>(last) % period);
		last = now;
	}
	// The phase that most others are near to.
	std::uint64_t best = 0;
	std::size_t best_near = 0;
	for (const std::uint64_t candidate : phases) {
		const auto near = static_cast<std::size_t>(
			std::count_if(phases.begin(), phases.end(), [&](std::uint64_t other) {
				const std::uint64_t ahead = (other + period - candidate) % period;
				return ahead < 2000;
			}));
		if (near > best_near) {
			best = candidate;
			best_near = near;
		}
	}
	if (best_near < kTicks / 2)
		throw std::runtime_error("no tick was found on the CPU: in " +
		                         std::to_string(kTicks) + " periods of " +
		                         std::to_string(period) +
		                         " ns it was interrupted at no phase again and again (is "
		                         "the CPU in full dynticks mode?)");
	return best;
}

class Prober
{
      public:
	Prober(PhasePlan &plan, Stage &stage, const std::atomic<bool> &stop, std::uint64_t period,
	       std::uint64_t tick)
		: plan_(plan), stage_(stage), stop_(stop), period_(period),
		  // A wake-up needs the time before it to itself.
		  distance_(static_cast<std::int64_t>(period / plan.slots() / 2))
	{
		base_ = now_ns();
		base_ += static_cast<std::int64_t>((period - static_cast<std::uint64_t>(base_) % period +
		                                    tick) %
		                                   period) +
		         static_cast<std::int64_t>(period);
	}

	void run()
	{
		std::int64_t last = now_ns();
		while (!plan_.done() && !stop_.load(std::memory_order_relaxed)) {
			for (unsigned slot = 0; slot < plan_.slots(); ++slot) {
				const int index = plan_.next(slot);
				if (index < 0)
					continue;
				const std::int64_t wanted =
					base_ + static_cast<std::int64_t>(plan_.phase(index));
				if (wanted - last < distance_)
					continue;
				sleep_until(wanted);
				const std::int64_t now = now_ns();
				const unsigned state =
					stage_.state.load(std::memory_order_relaxed);
				plan_.found(index, static_cast<std::uint64_t>(now - wanted),
				            static_cast<PhaseState>(state));
				// Nobody has said anything if nobody runs until the next.
				stage_.say(PhaseState::other);
				last = now_ns();
			}
			base_ += static_cast<std::int64_t>(period_);
			// After a stall: go on in step.
			while (base_ + static_cast<std::int64_t>(period_) < last)
				base_ += static_cast<std::int64_t>(period_);
		}
	}

      private:
	PhasePlan &plan_;
	Stage &stage_;
	const std::atomic<bool> &stop_;
	std::uint64_t period_;
	std::int64_t distance_;
	std::int64_t base_;
};

template <typename T>
T number_in(const nlohmann::json &measure, const char *key, T low, T high, T otherwise)
{
	if (!measure.contains(key))
		return otherwise;
	const nlohmann::json &value = measure.at(key);
	if (!value.is_number() || value.get<double>() < static_cast<double>(low) ||
	    value.get<double>() > static_cast<double>(high))
		throw std::invalid_argument(std::string(key) + ": " + value.dump() +
		                            " is not a number from " + std::to_string(low) +
		                            " to " + std::to_string(high));
	return value.get<T>();
}

std::int64_t ns_in(const nlohmann::json &object, const char *key, double low_us, double high_us)
{
	if (!object.contains(key))
		throw std::invalid_argument(std::string("a window needs ") + key);
	return static_cast<std::int64_t>(number_in(object, key, low_us, high_us, 0.0) * 1000);
}

PhaseMode mode_in(const nlohmann::json &measure)
{
	const std::string name = measure.value("mode", "plain");
	if (name == "plain")
		return PhaseMode::plain;
	if (name == "user")
		return PhaseMode::user;
	if (name == "abuser")
		return PhaseMode::abuser;
	throw std::invalid_argument("mode: \"" + name + "\" is none of plain, user, abuser");
}

} // namespace

PhaseOptions phase_options_from_json(const nlohmann::json &measure)
{
	static const std::set<std::string> known = {
		"mode",     "hold_us", "period_us",           "priority", "step_ns",
		"windows",  "samples", "wake_ups_per_period", "attempts", "cpu"};
	if (!measure.is_object())
		throw std::invalid_argument("measure is not an object");
	for (const auto &item : measure.items())
		if (!known.count(item.key()))
			throw std::invalid_argument("measure: unknown key \"" + item.key() + "\"");

	PhaseOptions options;
	options.mode = mode_in(measure);
	options.cpu = number_in(measure, "cpu", 0, 8191, options.cpu);
	options.priority = number_in(measure, "priority", 1, 99, options.priority);
	options.hold = static_cast<std::uint64_t>(
		number_in(measure, "hold_us", 0.1, 1000.0, 20.0) * 1000);
	options.period = static_cast<std::uint64_t>(
		number_in(measure, "period_us", 100.0, 100000.0, 0.0) * 1000);
	options.wake_ups_per_period =
		number_in(measure, "wake_ups_per_period", 1u, 16u, options.wake_ups_per_period);
	options.samples = number_in(measure, "samples", 1u, 1000u, options.samples);
	options.attempts = number_in(measure, "attempts", 1u, 10000u, options.attempts);
	if (measure.contains("windows")) {
		if (measure.contains("step_ns"))
			throw std::invalid_argument("measure: windows and step_ns exclude each other");
		if (!measure.at("windows").is_array() || measure.at("windows").empty())
			throw std::invalid_argument("windows: not a list with something in it");
		for (const nlohmann::json &window : measure.at("windows")) {
			PhaseWindow made;
			made.first = ns_in(window, "from_us", -100000, 100000);
			made.end = ns_in(window, "to_us", -100000, 100000);
			made.step = number_in<std::int64_t>(window, "step_ns", 10, 1000000, 100);
			if (made.end <= made.first)
				throw std::invalid_argument("windows: to_us is not after from_us");
			options.windows.push_back(made);
		}
	} else {
		options.windows.push_back(
			{0, 0, number_in<std::int64_t>(measure, "step_ns", 10, 1000000, 100)});
	}
	return options;
}

std::vector<std::uint64_t> phases_of(const std::vector<PhaseWindow> &windows, std::uint64_t period)
{
	const auto length = static_cast<std::int64_t>(period);
	std::set<std::uint64_t> phases;
	for (const PhaseWindow &window : windows) {
		const std::int64_t end = window.end == window.first ? window.first + length : window.end;
		for (std::int64_t phase = window.first; phase < end; phase += window.step)
			phases.insert(static_cast<std::uint64_t>((phase % length + length) % length));
	}
	return {phases.begin(), phases.end()};
}

PhasePlan::PhasePlan(std::vector<std::uint64_t> phases, std::uint64_t period, unsigned slots,
                     unsigned samples, unsigned attempts)
	: queues_(slots), slot_length_((period + slots - 1) / slots), samples_(samples),
	  attempts_(attempts)
{
	for (const std::uint64_t phase : phases) {
		Entry entry;
		entry.phase = phase;
		queues_[phase / slot_length_].indexes.push_back(static_cast<int>(entries_.size()));
		entries_.push_back(entry);
	}
}

bool PhasePlan::finished(const Entry &entry) const
{
	return entry.hits >= samples_ || entry.tries >= attempts_;
}

int PhasePlan::next(unsigned slot) const
{
	const Queue &queue = queues_[slot];
	return queue.position < queue.indexes.size() ? queue.indexes[queue.position] : -1;
}

void PhasePlan::found(int index, std::uint64_t latency, PhaseState state)
{
	Entry &entry = entries_[static_cast<std::size_t>(index)];
	const auto number = static_cast<unsigned>(state);
	++wake_ups_;
	++entry.tries;
	if (state == PhaseState::granted || (!want_granted_ && state == PhaseState::section))
		++entry.hits;
	entry.worst[number] = std::max(entry.worst[number], latency);
	entry.seen[number] = true;

	Queue &queue = queues_[entry.phase / slot_length_];
	if (finished(entry) && queue.position < queue.indexes.size() &&
	    queue.indexes[queue.position] == index)
		++queue.position;
}

bool PhasePlan::done() const
{
	return std::all_of(queues_.begin(), queues_.end(), [](const Queue &queue) {
		return queue.position == queue.indexes.size();
	});
}

bool PhasePlan::revisit_grants()
{
	constexpr auto kGranted = static_cast<unsigned>(PhaseState::granted);
	const auto met = [](const Entry &entry) { return entry.seen[kGranted]; };
	// The run of phases with extra time begins at the tick, so it does not wrap around.
	const auto first = std::find_if(entries_.begin(), entries_.end(), met);
	const auto last = std::find_if(entries_.rbegin(), entries_.rend(), met).base();

	want_granted_ = true;
	for (Queue &queue : queues_)
		queue = Queue();
	for (auto entry = first; entry < last; ++entry) {
		if (met(*entry))
			continue;
		entry->tries = 0;
		entry->hits = 0;
		queues_[entry->phase / slot_length_].indexes.push_back(
			static_cast<int>(entry - entries_.begin()));
	}
	return !done();
}

std::size_t PhasePlan::uncovered() const
{
	return static_cast<std::size_t>(
		std::count_if(entries_.begin(), entries_.end(), [](const Entry &entry) {
			return !entry.seen[static_cast<unsigned>(PhaseState::section)] &&
			       !entry.seen[static_cast<unsigned>(PhaseState::granted)];
		}));
}

std::vector<PhaseSample> PhasePlan::samples() const
{
	std::vector<PhaseSample> found;
	for (const Entry &entry : entries_)
		for (unsigned state = 0; state < kStates; ++state)
			if (entry.seen[state])
				found.push_back({entry.phase, entry.worst[state],
				                 static_cast<PhaseState>(state)});
	return found;
}

PhaseScan measure_phase(const PhaseOptions &options, const std::atomic<bool> &stop)
{
	const std::uint64_t period = options.period ? options.period : kernel_tick();
	std::vector<std::uint64_t> phases = phases_of(options.windows, period);
	if (phases.empty())
		throw std::invalid_argument("no phase to look at");
	PhasePlan plan(std::move(phases), period, options.wake_ups_per_period, options.samples,
	               options.attempts);
	Stage stage;
	std::string trouble;
	if (!lock_memory())
		throw std::system_error(errno, std::generic_category(), "cannot lock the memory");
	{
		PinnedThread asker(options.cpu, 0, [&] { run_asker(stage, options); });
		PinnedThread hog(options.cpu, 0, [&] {
			while (!stage.ready && !stage.over())
				sched_yield();
			run_hog(stage);
		});
		// Both have run before the first wake-up is looked at.
		while (!stage.ready)
			sched_yield();
		struct Stopper {
			Stage &stage;
			~Stopper()
			{
				stage.stop = true;
			}
		} stopper{stage};
		if (stage.reason != SLICE_EXT_AVAILABLE) {
			const auto reason = static_cast<slice_ext_reason>(stage.reason.load());
			throw std::runtime_error(std::string("no section can be extended here: ") +
			                         slice_ext_reason_text(reason) + "; " +
			                         slice_ext_reason_hint(reason));
		}
		PinnedThread prober(options.cpu, options.priority, [&] {
			try {
				const std::uint64_t tick = find_tick(period);
				Prober(plan, stage, stop, period, tick).run();
				if (options.mode != PhaseMode::plain && plan.revisit_grants())
					Prober(plan, stage, stop, period, tick).run();
			} catch (const std::exception &error) {
				trouble = error.what();
			}
		});
	}
	if (!trouble.empty())
		throw std::runtime_error(trouble);

	PhaseScan scan;
	scan.period = period;
	scan.samples = plan.samples();
	scan.step = period;
	for (const PhaseWindow &window : options.windows)
		scan.step = std::min(scan.step, static_cast<std::uint64_t>(window.step));
	scan.first = scan.samples.empty() ? 0 : scan.samples.front().phase;
	scan.end = scan.samples.empty() ? 0 : scan.samples.back().phase + scan.step;
	scan.wake_ups = plan.wake_ups();
	scan.uncovered = plan.uncovered();
	return scan;
}

} // namespace slice_ext::tool::latency
