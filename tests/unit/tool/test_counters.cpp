// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "kernel_counters.hpp"
#include "text_file.hpp"

using namespace slice_ext::tool;

namespace
{

std::string fixture(const std::string &name)
{
	const std::string path = std::string(SLICE_EXT_TOOL_FIXTURES) + "/" + name;
	const std::optional<std::string> text = read_text(path);
	EXPECT_TRUE(text) << path;
	return text.value_or("");
}

} // namespace

TEST(PreemptDelay, ReadsEveryColumnOfEveryRow)
{
	const Parsed<MachineCounters> parsed = parse_preempt_delay(fixture("preempt_delay.txt"));
	ASSERT_TRUE(parsed.value) << parsed.error;
	EXPECT_EQ(parsed.value->cpus, (std::vector<int>{0, 1}));
	EXPECT_EQ(parsed.value->rows.size(), 17u);
	EXPECT_EQ(parsed.value->rows.at("granted"), (std::vector<std::uint64_t>{80, 20}));

	const CounterSummary summary = summarize(parsed.value->total());
	EXPECT_EQ(summary.requests, 150u);
	EXPECT_EQ(summary.granted, 100u);
	EXPECT_EQ(summary.kept, 3u);
	EXPECT_EQ(summary.yielded, 85u);
	EXPECT_EQ(summary.expired, 9u);
	EXPECT_EQ(summary.denied, 50u);
}

TEST(PreemptDelay, KeepsCountersItDoesNotKnow)
{
	const Parsed<MachineCounters> parsed = parse_preempt_delay(
		"  CPU0 CPU2\ndenied_newly: 1 2\n\nfancy: 0 18446744073709551615\n");
	ASSERT_TRUE(parsed.value) << parsed.error;
	EXPECT_EQ(parsed.value->cpus, (std::vector<int>{0, 2}));
	EXPECT_EQ(parsed.value->rows.at("fancy")[1], UINT64_MAX);
	EXPECT_EQ(summarize(parsed.value->total()).denied, 3u);
	EXPECT_FALSE(summarize(parsed.value->total()).granted);
}

TEST(PreemptDelay, RefusesMalformedText)
{
	const struct {
		const char *text;
		const char *complaint;
	} cases[] = {
		{"", "empty"},
		{"\n", "no CPU column"},
		{"granted: 1 2\n", "not a CPU column"},
		{" CPU0 CPUx\ngranted: 1 2\n", "not a CPU column"},
		{" CPU0 CPU-1\ngranted: 1 2\n", "not a CPU column"},
		{" CPU0 CPU99999999999\ngranted: 1 2\n", "not a CPU column"},
		{" CPU0 CPU1\n", "no counters"},
		{" CPU0 CPU1\ngranted: 1\n", "1 values for 2 CPUs"},
		{" CPU0 CPU1\ngranted: 1 2 3\n", "3 values for 2 CPUs"},
		{" CPU0 CPU1\ngranted: 1 -2\n", "not a count"},
		{" CPU0 CPU1\ngranted: 1 2x\n", "not a count"},
		{" CPU0 CPU1\ngranted: 1 18446744073709551616\n", "not a count"},
		{" CPU0 CPU1\ngranted 1 2\n", "not the name of a counter"},
		{" CPU0 CPU1\n: 1 2\n", "not the name of a counter"},
		{" CPU0 CPU1\ngranted: 1 2\ngranted: 1 2\n", "twice"},
	};
	for (const auto &one : cases) {
		const Parsed<MachineCounters> parsed = parse_preempt_delay(one.text);
		EXPECT_FALSE(parsed.value) << one.text;
		EXPECT_NE(parsed.error.find(one.complaint), std::string::npos)
			<< one.text << ": " << parsed.error;
	}
}

TEST(PreemptDelay, SaysWhichLineIsWrong)
{
	const std::string error = parse_preempt_delay(" CPU0\nrequests: 1\ngranted: x\n").error;
	EXPECT_EQ(error.find("line 3: "), 0u) << error;
}

TEST(PreemptDelay, MissingFileIsNamed)
{
	const Parsed<Counters> parsed = read_machine_counters("/nonexistent");
	EXPECT_FALSE(parsed.value);
	EXPECT_NE(parsed.error.find("/nonexistent/preempt_delay"), std::string::npos);
}

TEST(TaskSched, TakesOnlyItsOwnLines)
{
	const Parsed<Counters> parsed = parse_task_sched(fixture("task_sched.txt"));
	ASSERT_TRUE(parsed.value) << parsed.error;
	EXPECT_EQ(parsed.value->size(), 8u);
	const CounterSummary summary = summarize(*parsed.value);
	EXPECT_EQ(summary.granted, 60u);
	EXPECT_EQ(summary.yielded, 55u);
	EXPECT_EQ(summary.denied, 4u);
}

TEST(TaskSched, TellsAbsentFromMalformed)
{
	EXPECT_EQ(parse_task_sched("").error, "no preempt_delay counters");
	EXPECT_EQ(parse_task_sched("nr_switches : 3\n").error, "no preempt_delay counters");
	for (const char *text : {"preempt_delay.granted\n", "preempt_delay.granted :\n",
	                         "preempt_delay.granted : many\n", "preempt_delay.granted : -1\n",
	                         "preempt_delay.granted : 1.5\n", "preempt_delay. : 1\n",
	                         "preempt_delay.kept : 1\npreempt_delay.kept : 1\n"}) {
		const Parsed<Counters> parsed = parse_task_sched(text);
		EXPECT_FALSE(parsed.value) << text;
		EXPECT_EQ(parsed.error.find("line "), 0u) << text << ": " << parsed.error;
	}
}

TEST(TaskSched, LastLineNeedsNoEnd)
{
	const Parsed<Counters> parsed = parse_task_sched("preempt_delay.granted : 7");
	ASSERT_TRUE(parsed.value);
	EXPECT_EQ(parsed.value->at("granted"), 7u);
}

TEST(CounterArithmetic, DifferenceNeverWraps)
{
	const Counters before = {{"granted", 10}, {"kept", 5}};
	const Counters after = {{"granted", 14}, {"kept", 3}, {"ended_yield", 2}};
	EXPECT_EQ(after - before, (Counters{{"granted", 4}, {"kept", 0}, {"ended_yield", 2}}));
}

TEST(CounterArithmetic, SumTakesUnionOfNames)
{
	Counters sum = {{"granted", 1}};
	sum += {{"granted", 2}, {"kept", 3}};
	EXPECT_EQ(sum, (Counters{{"granted", 3}, {"kept", 3}}));
}
