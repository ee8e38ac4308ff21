// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <system_error>

#include "latency/phase.hpp"

using namespace slice_ext::tool::latency;
using nlohmann::json;

namespace
{

std::string refusal(const char *measure)
{
	try {
		phase_options_from_json(json::parse(measure));
	} catch (const std::invalid_argument &error) {
		return error.what();
	}
	return "accepted";
}

} // namespace

TEST(PhaseOptions, DefaultsLookAtTheWholePeriod)
{
	const PhaseOptions options = phase_options_from_json(json::parse("{}"));
	EXPECT_EQ(options.mode, PhaseMode::plain);
	const std::vector<std::uint64_t> phases = phases_of(options.windows, 1000000);
	ASSERT_EQ(phases.size(), 10000u);
	EXPECT_EQ(phases.front(), 0u);
	EXPECT_EQ(phases.back(), 999900u);
}

TEST(PhaseOptions, AreRefusedWithTheirName)
{
	EXPECT_NE(refusal(R"({"mode": "rude"})").find("\"rude\""), std::string::npos);
	EXPECT_NE(refusal(R"({"step": 5})").find("unknown key \"step\""), std::string::npos);
	EXPECT_NE(refusal(R"({"samples": 0})").find("samples: 0"), std::string::npos);
	EXPECT_NE(refusal(R"({"hold_us": "long"})").find("hold_us"), std::string::npos);
	EXPECT_NE(refusal(R"({"windows": []})").find("windows"), std::string::npos);
	EXPECT_NE(refusal(R"({"windows": [{"from_us": 3, "to_us": 3}]})").find("to_us"),
	          std::string::npos);
	EXPECT_NE(refusal(R"({"windows": [{"from_us": 3}]})").find("to_us"), std::string::npos);
	EXPECT_NE(refusal(R"({"windows": [{"from_us": 1, "to_us": 2}], "step_ns": 100})")
	                  .find("exclude"),
	          std::string::npos);
	EXPECT_NE(refusal("[]").find("object"), std::string::npos);
}

TEST(Phases, OfOverlappingWindowsComeOnceAndInOrder)
{
	const std::vector<PhaseWindow> windows = {{-200, 200, 100}, {0, 300, 100}};
	EXPECT_EQ(phases_of(windows, 1000),
	          (std::vector<std::uint64_t>{0, 100, 200, 800, 900}));
}

TEST(PhasePlan, TriesAPhaseUntilItMetTheAskingThread)
{
	PhasePlan plan({0, 10}, 20, 1, 1, 5);
	ASSERT_EQ(plan.next(0), 0);
	plan.found(0, 7, PhaseState::hog);
	ASSERT_EQ(plan.next(0), 0);
	plan.found(0, 9, PhaseState::section);
	ASSERT_EQ(plan.next(0), 1);
	plan.found(1, 5, PhaseState::granted);
	EXPECT_TRUE(plan.done());
	EXPECT_EQ(plan.uncovered(), 0u);
	EXPECT_EQ(plan.wake_ups(), 3u);
	const std::vector<PhaseSample> samples = plan.samples();
	ASSERT_EQ(samples.size(), 3u);
	EXPECT_EQ(samples[0].state, PhaseState::hog);
	EXPECT_EQ(samples[1].latency, 9u);
	EXPECT_EQ(samples[2].phase, 10u);
}

TEST(PhasePlan, GivesUpAfterTheAttemptsAndTellsThatThePhaseIsNotCovered)
{
	PhasePlan plan({0}, 20, 1, 1, 3);
	for (int i = 0; i < 3; ++i) {
		ASSERT_EQ(plan.next(0), 0);
		plan.found(0, 1, PhaseState::hog);
	}
	EXPECT_TRUE(plan.done());
	EXPECT_EQ(plan.uncovered(), 1u);
}

TEST(PhasePlan, KeepsTheWorstOfAPhaseAndState)
{
	PhasePlan plan({0}, 20, 1, 3, 9);
	for (const std::uint64_t latency : {3, 8, 5})
		plan.found(0, latency, PhaseState::section);
	ASSERT_EQ(plan.samples().size(), 1u);
	EXPECT_EQ(plan.samples()[0].latency, 8u);
}

TEST(PhasePlan, GoesBackToThePhasesAmongTheGrantsThatMetNone)
{
	PhasePlan plan({0, 10, 20, 30, 40}, 50, 1, 1, 3);
	plan.found(0, 1, PhaseState::section);
	plan.found(1, 1, PhaseState::granted);
	plan.found(2, 1, PhaseState::section);
	plan.found(3, 1, PhaseState::granted);
	plan.found(4, 1, PhaseState::section);
	ASSERT_TRUE(plan.done());
	ASSERT_TRUE(plan.revisit_grants());
	EXPECT_EQ(plan.next(0), 2);
	// Only extra time will do now.
	plan.found(2, 1, PhaseState::section);
	EXPECT_EQ(plan.next(0), 2);
	plan.found(2, 1, PhaseState::granted);
	EXPECT_TRUE(plan.done());
}

TEST(PhasePlan, HasNothingToGoBackToWithoutGrants)
{
	PhasePlan plan({0, 10}, 20, 2, 1, 1);
	plan.found(0, 1, PhaseState::section);
	plan.found(1, 1, PhaseState::section);
	EXPECT_FALSE(plan.revisit_grants());
}

// On whatever machine this is: every phase asked for is tried, and a latency is the time since the
// programmed instant.
TEST(PhaseScan, CoversWhatItWasAskedFor)
{
	PhaseOptions options = phase_options_from_json(json::parse(
		R"({"mode": "plain", "samples": 1, "attempts": 2,
		    "windows": [{"from_us": 100, "to_us": 300, "step_ns": 50000}]})"));
	options.cpu = sched_getcpu();
	const std::atomic<bool> stop{false};
	PhaseScan scan;
	try {
		scan = measure_phase(options, stop);
	} catch (const std::system_error &error) {
		GTEST_SKIP() << error.what();
	}
	EXPECT_GE(scan.wake_ups, 4u);
	ASSERT_FALSE(scan.samples.empty());
	EXPECT_EQ(scan.samples.front().phase, 100000u);
	EXPECT_EQ(scan.samples.back().phase, 250000u);
	for (const PhaseSample &sample : scan.samples)
		EXPECT_GT(sample.latency, 0u);
}
