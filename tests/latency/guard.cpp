// SPDX-License-Identifier: MIT
/*
 * What a real-time thread pays for the sections of ordinary threads: the wake-up latency that
 * cyclictest finds on a CPU on which the demo's lockers contend.
 *
 * The arms are those of the published table (see README): idle, contended, contended with extra
 * time, and the negative control with the guard dropped, without which the others prove nothing.
 */
#include "cyclictest.hpp"
#include "process.hpp"

#include "counters.hpp"
#include "needs.hpp"
#include "system.hpp"

#include "slice_ext/abi.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <unistd.h>

namespace slice_test {
namespace {

/** Microseconds by which the arm with extra time may exceed the arm without. */
constexpr int tolerance_us = 2;
/** What a delay of 30 us must at least show when nothing guards against it. */
constexpr int harm_us = 25;

enum class Load { none, without_extension, with_extension };

struct Arm {
	const char *name;
	Load load;
	int delay_us;
	bool guard_dropped;
};

constexpr Arm idle{"idle", Load::none, 0, false};
constexpr Arm contended{"contended", Load::without_extension, 30, false};
constexpr Arm extended{"extended_30us", Load::with_extension, 30, false};
constexpr Arm unguarded_30{"unguarded_30us", Load::with_extension, 30, true};
constexpr Arm unguarded_5{"unguarded_5us", Load::with_extension, 5, true};

struct Measured {
	WakeUpLatencies latencies;
	/** What the kernel counted while cyclictest ran. */
	Counters counts;
};

std::unique_ptr<Process> start(Load load, int cpu)
{
	if (load == Load::none)
		return nullptr;
	/* Sections longer than the delay, so that all of it is used. Long enough for any
	 * measurement; the end of the arm ends it. */
	auto process = std::make_unique<Process>(std::vector<std::string>{
		"slice-ext", "demo", "--mode", load == Load::with_extension ? "on" : "off",
		"--cpus", std::to_string(cpu), "--hold-us", "50", "--seconds", "3600",
		"--quiet"});
	/* Let the threads start and pass each other a few times. */
	usleep(100'000);
	return process;
}

/** Samples to take: SLICE_EXT_LATENCY_CYCLES. In virtual time nothing is random and the
 * default is plenty; a claim about real hardware needs far more. */
long cycles()
{
	const char *text = std::getenv("SLICE_EXT_LATENCY_CYCLES");
	return text ? std::atol(text) : 1000;
}

long long count(const Measured &measured, const char *name)
{
	return measured.counts[name];
}

void print(const Arm &arm, const Measured &measured)
{
	const WakeUpLatencies &found = measured.latencies;
	for (const auto &[latency, samples] : found.histogram)
		std::printf("histogram %s %d us %ld\n", arm.name, latency, samples);
	std::printf("latency %-15s worst %d average %d best %d us, %ld samples, %ld overflow; "
		    "granted %lld, refused for an RT thread %lld, ended by one %lld\n",
		    arm.name, found.worst, found.average, found.best, found.samples, found.overflow,
		    count(measured, "granted"), count(measured, "denied_nonfair"),
		    count(measured, "ended_nonfair"));
	std::fflush(stdout);
}

class Guard : public testing::Test {
protected:
	static void SetUpTestSuite()
	{
		for (const std::string &reason :
		     {need::control(), need::real_time(), need::unguarded_switch()})
			if (reason_.empty())
				reason_ = reason;
	}

	void SetUp() override { SLICE_EXT_NEEDS(reason_); }

	/** Each arm is measured once, by the first test that asks for it. */
	static const Measured &measure(const Arm &arm)
	{
		static std::map<std::string, Measured> results;
		auto known = results.find(arm.name);
		if (known != results.end())
			return known->second;

		FileGuard delay(SLICE_EXT_ABI_SYSCTL, std::to_string(arm.delay_us));
		FileGuard guard(SLICE_EXT_ABI_DEBUGFS_UNGUARDED, arm.guard_dropped ? "1" : "0");
		EXPECT_EQ(delay.error(), 0);
		EXPECT_EQ(guard.error(), 0);

		CyclictestRun run;
		run.cpu = test_cpu();
		run.cycles = cycles();
		auto load = start(arm.load, run.cpu);
		Counters before = Counters::of_machine();
		Measured measured{run_cyclictest(run), Counters::of_machine() - before};
		if (load)
			EXPECT_TRUE(load->running()) << "the load ended by itself, with status "
						     << load->wait();
		print(arm, measured);
		return results.emplace(arm.name, measured).first->second;
	}

	static std::string reason_;
};

std::string Guard::reason_;

TEST_F(Guard, ExtraTimeCostsARealTimeThreadNothing)
{
	const Measured &base = measure(contended);
	const Measured &found = measure(extended);

	EXPECT_EQ(base.counts["granted"], 0) << "the base had extra time";
	ASSERT_GT(found.counts["granted"], 0) << "nothing was granted, so nothing is shown";
	EXPECT_GT(found.counts["denied_nonfair"] + found.counts["ended_nonfair"], 0)
		<< "no wake-up met a section, so nothing is shown";
	EXPECT_LE(found.latencies.worst, base.latencies.worst + tolerance_us);
	EXPECT_LE(found.latencies.average, base.latencies.average + tolerance_us);
	EXPECT_EQ(found.latencies.overflow, 0);
}

TEST_F(Guard, WithoutTheGuardTheWholeDelayIsAdded)
{
	const Measured &base = measure(contended);
	const Measured &found = measure(unguarded_30);

	ASSERT_GT(found.counts["granted"], 0);
	EXPECT_GE(found.latencies.worst, base.latencies.worst + harm_us);
	EXPECT_GT(found.latencies.average, base.latencies.average);
}

TEST_F(Guard, WithoutTheGuardAShortDelayAddsLittle)
{
	const Measured &base = measure(contended);
	const Measured &found = measure(unguarded_5);

	ASSERT_GT(found.counts["granted"], 0);
	/* 5 means 5: what it adds is visible, and far from the 10 us that a clamped timer gives. */
	EXPECT_GE(found.latencies.worst, base.latencies.worst + 2);
	EXPECT_LE(found.latencies.worst, base.latencies.worst + 8);
}

TEST_F(Guard, ContentionAloneIsNotWhatTheControlShows)
{
	const Measured &quiet = measure(idle);
	const Measured &base = measure(contended);

	EXPECT_LE(base.latencies.worst, quiet.latencies.worst + harm_us / 2);
}

} // namespace
} // namespace slice_test
