// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <slice_ext/abi.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <system_error>
#include <thread>

#include "cpu_list.hpp"
#include "demo/busy_work.hpp"
#include "demo/calibration.hpp"
#include "demo/cycle_clock.hpp"
#include "demo/pinned_thread.hpp"
#include "demo/switch_detector.hpp"
#include "kernel_facts.hpp"
#include "scoped_sysctl.hpp"
#include "scratch_dir.hpp"
#include "signal_watcher.hpp"
#include "text_file.hpp"

using namespace slice_ext::tool;
using namespace std::chrono_literals;

TEST(ScopedSysctl, GivesTheOldValueBack)
{
	const ScratchDir dir;
	const std::string file = dir.put("delay", "30\n");
	{
		const ScopedSysctl changed(file, 5);
		EXPECT_EQ(parse_integer(*read_text(file)), 5);
	}
	EXPECT_EQ(parse_integer(*read_text(file)), 30);
}

TEST(ScopedSysctl, TellsAMissingFile)
{
	try {
		const ScopedSysctl changed("/nonexistent/sysctl", 5);
		FAIL();
	} catch (const std::system_error &error) {
		EXPECT_EQ(error.code().value(), ENOENT);
	}
}

TEST(ScopedSysctl, SurvivesTheSignalsThatEndARun)
{
	for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
		const ScratchDir dir;
		const std::string file = dir.put("delay", "30\n");
		const pid_t child = fork();
		ASSERT_GE(child, 0);
		if (child == 0) {
			bool ended = false;
			{
				SignalWatcher signals;
				const ScopedSysctl changed(file, 5);
				ended = signals.wait(30s) && signals.caught() == number;
			}
			_exit(ended ? 0 : 1);
		}
		for (int i = 0; i < 500 && parse_integer(read_text(file).value_or("")) != 5; ++i)
			std::this_thread::sleep_for(10ms);
		EXPECT_EQ(parse_integer(*read_text(file)), 5);
		kill(child, number);
		int status = -1;
		waitpid(child, &status, 0);
		EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << number;
		EXPECT_EQ(parse_integer(*read_text(file)), 30) << number;
	}
}

TEST(SignalWatcher, WaitsForTheTimeGiven)
{
	SignalWatcher signals;
	const auto start = std::chrono::steady_clock::now();
	EXPECT_FALSE(signals.wait(20ms));
	EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
	EXPECT_EQ(signals.caught(), 0);
}

TEST(SignalWatcher, RemembersASignal)
{
	SignalWatcher signals;
	kill(getpid(), SIGTERM);
	EXPECT_TRUE(signals.wait(10s));
	EXPECT_TRUE(signals.wait(10s));
	EXPECT_EQ(signals.caught(), SIGTERM);
}

TEST(KernelFacts, NothingReadableIsNothingKnown)
{
	const ScratchDir empty;
	const KernelFacts facts = read_kernel_facts(empty.path());
	EXPECT_FALSE(facts.delay_us);
	EXPECT_FALSE(facts.guard_dropped);
	EXPECT_FALSE(facts.test_taint);
	EXPECT_FALSE(facts.boot_switch);
	EXPECT_FALSE(facts.machine_counters);
	EXPECT_FALSE(facts.thread_counters);
	EXPECT_FALSE(facts.debugfs_readable);
	EXPECT_FALSE(facts.release.empty());
	EXPECT_EQ(guard_warning(facts), "");
	EXPECT_TRUE(environment_json(facts)["guard_dropped"].is_null());
}

TEST(KernelFacts, ReadsAKernelWithTheFeature)
{
	const ScratchDir root;
	root.put("proc/cmdline", "console=ttyS0 rseq_slice_ext=0 quiet rseq_slice_ext=1\n");
	root.put("proc/sys/kernel/sched_preempt_delay_us", "30\n");
	root.put("proc/sys/kernel/tainted", "262144\n");
	root.put("proc/preempt_delay", " CPU0\ngranted: 1\n");
	root.put("proc/thread-self/sched", "preempt_delay.granted : 1\n");
	root.put("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor sse\n");
	root.put("sys/kernel/debug/sched/preempt", "none voluntary (full)\n");
	root.put("sys/kernel/debug/sched/base_slice_ns", "750000\n");
	root.put("sys/kernel/debug/sched/preempt_delay_unguarded", "1\n");
	root.put("sys/kernel/realtime", "1\n");
	const KernelFacts facts = read_kernel_facts(root.path());
	EXPECT_EQ(facts.delay_us, 30);
	EXPECT_EQ(facts.boot_switch, true);
	EXPECT_EQ(facts.test_taint, true);
	EXPECT_EQ(facts.guard_dropped, true);
	EXPECT_EQ(facts.preempt_rt, true);
	EXPECT_EQ(facts.preempt_mode, "full");
	EXPECT_EQ(facts.base_slice_ns, 750000);
	EXPECT_TRUE(facts.hypervisor);
	EXPECT_TRUE(facts.machine_counters);
	EXPECT_TRUE(facts.thread_counters);
	EXPECT_NE(guard_warning(facts).find("GUARD IS DROPPED"), std::string::npos);
}

TEST(KernelFacts, GarbageIsNothingKnown)
{
	const ScratchDir root;
	root.put("proc/cmdline", "rseq_slice_ext= rseq_slice_ext=maybe xrseq_slice_ext=1");
	root.put("proc/sys/kernel/sched_preempt_delay_us", "thirty\n");
	root.put("proc/sys/kernel/tainted", "\n");
	root.put("proc/preempt_delay", "garbage\n");
	root.put("sys/kernel/debug/sched/preempt", ") none (\n");
	const KernelFacts facts = read_kernel_facts(root.path());
	EXPECT_FALSE(facts.delay_us);
	EXPECT_FALSE(facts.boot_switch);
	EXPECT_FALSE(facts.test_taint);
	EXPECT_FALSE(facts.machine_counters);
	EXPECT_EQ(facts.preempt_mode, "");
}

TEST(PinnedThread, RunsWhereItIsTold)
{
	const int cpu = allowed_cpus().back();
	int seen = -1;
	{
		PinnedThread thread(cpu, 0, [&seen] { seen = sched_getcpu(); });
	}
	EXPECT_EQ(seen, cpu);
	EXPECT_THROW(PinnedThread(kMaxCpus - 1, 0, [] {}), std::system_error);
}

TEST(CycleClock, KeepsStepWithTheSystemsClock)
{
	const CycleClock clock = CycleClock::calibrate();
	// The best of many: what comes between the readings of the two only makes them differ.
	double least_error = 1;
	for (int i = 0; i < 200 && least_error > 0.01; ++i) {
		const auto wall = std::chrono::steady_clock::now();
		const std::uint64_t start = CycleClock::now();
		while (std::chrono::steady_clock::now() - wall < 1ms) {
		}
		const std::uint64_t ticks = CycleClock::now() - start;
		const std::chrono::duration<double, std::nano> elapsed =
			std::chrono::steady_clock::now() - wall;
		const double ratio = static_cast<double>(clock.to_ns(ticks)) / elapsed.count();
		least_error = std::min(least_error, std::abs(ratio - 1));
	}
	EXPECT_LE(least_error, 0.01);
}

TEST(BusyWork, TakesAtLeastTheTimeAskedFor)
{
	const CycleClock clock = CycleClock::calibrate();
	const BusyWork work = BusyWork::calibrate(clock);
	std::uint64_t fastest = UINT64_MAX;
	std::atomic<std::uint64_t> alive{0};
	for (int i = 0; i < 50; ++i) {
		const std::uint64_t start = CycleClock::now();
		work.run_alive(work.steps_for_us(50), alive);
		fastest = std::min(fastest, clock.to_ns(CycleClock::now() - start));
		EXPECT_GE(alive.load(), start);
	}
	EXPECT_GE(fastest, 40000u);
	EXPECT_LE(fastest, 100000u);
}

TEST(Calibration, WorksOnEveryAllowedCpu)
{
	for (const int cpu : allowed_cpus()) {
		const Calibration calibration = calibrate_on(cpu);
		EXPECT_GT(calibration.work.steps_per_us(), 0);
		if (cpu > 3)
			break;
	}
}

namespace
{

std::uint64_t own_involuntary_switches()
{
	rusage usage = {};
	getrusage(RUSAGE_THREAD, &usage);
	return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

} // namespace

// Two threads that fight for one CPU: the detector must see each switch the kernel counts, although
// it asks the kernel only when the pointer was cleared.
TEST(SwitchDetector, SeesEverySwitchTheKernelCounts)
{
	const int cpu = allowed_cpus().front();
	std::atomic<bool> stop{false};
	bool available = false;
	std::uint64_t detected = 0;
	std::uint64_t counted = 0;
	unsigned asked = 0;
	{
		PinnedThread rival(cpu, 0, [&] {
			while (!stop)
				BusyWork::run(1000);
		});
		PinnedThread observer(cpu, 0, [&] {
			SwitchDetector detector;
			available = detector.available();
			// What is counted between two readings at which nothing had happened since
			// the detector was asked.
			std::uint64_t before = 0;
			do {
				detector.arm();
				before = own_involuntary_switches();
			} while (detector.available() && detector.touched());
			const auto end = std::chrono::steady_clock::now() + 20s;
			while (std::chrono::steady_clock::now() < end && asked < 20) {
				BusyWork::run(1000);
				if (detector.touched()) {
					++asked;
					detected += detector.count();
				}
			}
			do {
				detected += detector.count();
				counted = own_involuntary_switches() - before;
			} while (detector.touched());
			stop = true;
		});
	}
	if (!available)
		GTEST_SKIP() << "no rseq area here";
	EXPECT_GE(counted, 2u);
	EXPECT_EQ(detected, counted);
}

TEST(SwitchDetector, VoluntarySwitchesAreNotCounted)
{
	SwitchDetector detector;
	if (!detector.available())
		GTEST_SKIP() << "no rseq area here";
	std::uint64_t fewest = UINT64_MAX;
	for (int i = 0; i < 20; ++i) {
		detector.arm();
		std::this_thread::sleep_for(1ms);
		fewest = std::min(fewest, detector.count());
	}
	EXPECT_EQ(fewest, 0u);
}
