// SPDX-License-Identifier: MIT
#include "demo/contender.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "demo/locker.hpp"
#include "demo/pinned_thread.hpp"
#include "demo/rt_probe.hpp"
#include "demo/sleeper.hpp"

namespace slice_ext::tool
{

namespace
{

using Clock = std::chrono::steady_clock;

class Phase
{
      public:
	Phase(const DemoOptions &options, const Calibration &calibration, bool extended)
		: options_(options), calibration_(calibration), extended_(extended)
	{
	}

	void start();
	void let_run(SignalWatcher &signals, Progress &progress);
	ArmResult finish();

      private:
	void add_thread(int cpu, int fifo_priority, std::function<void()> body);
	void start_rt_probe(int cpu);
	void note_rt_wake(int cpu, std::uint64_t late_ns);
	std::uint64_t sections_so_far() const;

	const DemoOptions &options_;
	const Calibration &calibration_;
	const bool extended_;

	ContendedLock lock_;
	StartGate gate_;
	std::atomic<bool> stop_{false};
	std::vector<std::unique_ptr<Locker>> lockers_;
	std::vector<std::unique_ptr<Histogram>> rt_latencies_;
	std::vector<std::unique_ptr<PinnedThread>> threads_;
	std::optional<Counters> machine_before_;
	Clock::time_point began_;
	double seconds_ = 0;
};

void Phase::add_thread(int cpu, int fifo_priority, std::function<void()> body)
{
	threads_.push_back(std::make_unique<PinnedThread>(cpu, fifo_priority, std::move(body)));
}

// Was the thread that holds the lock running on CPU until this wake-up? Its heartbeat then reaches
// up to the moment the timer was set for; one switched out earlier fell silent before that.
void Phase::note_rt_wake(int cpu, std::uint64_t late_ns)
{
	constexpr double kHeartbeatNs = 2000;
	const std::uint64_t now = CycleClock::now();
	const std::uint32_t holder = lock_.holder();
	if (holder == 0 || lockers_[holder - 1]->cpu() != cpu)
		return;
	Locker::Visible &seen = lockers_[holder - 1]->visible();
	const double silent_ns = static_cast<double>(static_cast<std::int64_t>(
					 now - seen.alive.load(std::memory_order_relaxed))) *
	                         calibration_.clock.ns_per_tick();
	if (silent_ns <= static_cast<double>(late_ns) + kHeartbeatNs)
		seen.rt_hits.fetch_add(1, std::memory_order_relaxed);
}

void Phase::start_rt_probe(int cpu)
{
	rt_latencies_.push_back(std::make_unique<Histogram>());
	Histogram &latency = *rt_latencies_.back();
	add_thread(cpu, options_.rt_priority, [this, cpu, &latency] {
		if (gate_.wait())
			probe_wakeups(
				options_.rt_interval_us, stop_, latency,
				[this, cpu](std::uint64_t late_ns) { note_rt_wake(cpu, late_ns); });
	});
}

void Phase::start()
{
	std::uint32_t locker_index = 0;
	std::uint32_t sleeper_index = 0;
	try {
		for (unsigned i = 0; i < options_.lockers; ++i)
			for (const int cpu : options_.cpus) {
				lockers_.push_back(
					std::make_unique<Locker>(options_, calibration_, extended_,
				                                 locker_index++, cpu, lock_));
				Locker &locker = *lockers_.back();
				add_thread(cpu, 0, [this, &locker] { locker.run(gate_, stop_); });
			}
		for (unsigned i = 0; i < options_.sleepers; ++i)
			for (const int cpu : options_.cpus) {
				const std::uint32_t index = sleeper_index++;
				add_thread(cpu, 0, [this, index] {
					if (gate_.wait())
						sleep_and_wake(calibration_.work, index, stop_);
				});
			}
		if (options_.rt)
			for (const int cpu : options_.cpus)
				start_rt_probe(cpu);
		gate_.await(static_cast<unsigned>(threads_.size()));
		machine_before_ = read_machine_counters().value;
		began_ = Clock::now();
		gate_.open();
	} catch (...) {
		stop_.store(true, std::memory_order_relaxed);
		gate_.give_up();
		threads_.clear();
		throw;
	}
}

std::uint64_t Phase::sections_so_far() const
{
	std::uint64_t sum = 0;
	for (const auto &locker : lockers_)
		sum += locker->visible().sections.load(std::memory_order_relaxed);
	return sum;
}

void Phase::let_run(SignalWatcher &signals, Progress &progress)
{
	const auto end = began_ + std::chrono::duration_cast<Clock::duration>(
					  std::chrono::duration<double>(options_.seconds));
	for (;;) {
		const auto now = Clock::now();
		if (now >= end ||
		    signals.wait(std::min<Clock::duration>(end - now, progress.interval())))
			break;
		if (Clock::now() < end)
			progress.update(
				std::chrono::duration<double>(Clock::now() - began_).count(),
				sections_so_far());
	}
	stop_.store(true, std::memory_order_relaxed);
	seconds_ = std::chrono::duration<double>(Clock::now() - began_).count();
}

ArmResult Phase::finish()
{
	threads_.clear();
	ArmResult sum;
	sum.own_counters = Counters{};
	sum.machine_counters = Counters{};
	for (const auto &locker : lockers_) {
		if (!locker->error().empty())
			throw std::runtime_error("a thread could not be enabled: " +
			                         locker->error());
		sum += locker->result();
	}
	sum.seconds = seconds_;
	sum.exclusive = lock_.sections() == sum.sections;
	const std::optional<Counters> machine_after = read_machine_counters().value;
	if (machine_before_ && machine_after)
		sum.machine_counters = *machine_after - *machine_before_;
	else
		sum.machine_counters.reset();
	for (const auto &latency : rt_latencies_)
		sum.rt_latency.merge(*latency);
	return sum;
}

} // namespace

ArmResult run_phase(const DemoOptions &options, const Calibration &calibration, bool extended,
                    SignalWatcher &signals, Progress &progress)
{
	Phase phase(options, calibration, extended);
	phase.start();
	phase.let_run(signals, progress);
	return phase.finish();
}

} // namespace slice_ext::tool
