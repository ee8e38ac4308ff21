// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "demo/report.hpp"
#include "exit_status.hpp"

using namespace slice_ext::tool;

namespace
{

ArmResult arm(std::uint64_t sections)
{
	ArmResult result;
	result.seconds = 2;
	result.sections = sections;
	for (std::uint64_t i = 0; i < sections; ++i) {
		result.wait.record(1000 * (i + 1));
		result.hold.record(20000);
	}
	return result;
}

DemoReport good_report()
{
	DemoReport report;
	report.options.cpus = {0, 1};
	report.facts.release = "6.12.0-test";
	report.facts.delay_us = 30;
	report.without = arm(1000);
	report.without->switches = HolderSwitches{400, 0};
	report.with = arm(1600);
	report.with->switches = HolderSwitches{2, 0};
	report.with->own_counters =
		Counters{{"requests", 700},     {"granted", 500},   {"ended_yield", 490},
	                 {"ended_expired", 10}, {"denied_work", 3}, {"denied_nonfair", 4}};
	return report;
}

DemoReport stock_report()
{
	DemoReport report = good_report();
	report.with.reset();
	report.unavailable_reason = "kernel-without";
	report.unavailable_text = "No such feature.";
	report.unavailable_hint = "Boot another kernel.";
	return report;
}

std::vector<std::string> row(const DemoReport &report, const std::string &name)
{
	for (const auto &row : table_rows(report))
		if (row.front() == name)
			return row;
	return {};
}

} // namespace

TEST(Judge, AcceptsAGain)
{
	const Verdict verdict = judge(good_report());
	EXPECT_EQ(verdict.exit_status, kExitOk);
	EXPECT_NE(verdict.text.find("1.60 times"), std::string::npos) << verdict.text;
	EXPECT_NE(verdict.text.find("400 -> 2"), std::string::npos) << verdict.text;
}

TEST(Judge, ZeroGrantsIsAFailure)
{
	DemoReport report = good_report();
	report.with->own_counters = Counters{{"granted", 0}};
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
	report.options.mode = Mode::on;
	report.without.reset();
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
}

TEST(Judge, NamesTheReasonsOfDenials)
{
	DemoReport report = good_report();
	report.facts.high_res_timers = true;
	report.with->own_counters = Counters{
		{"granted", 0}, {"denied_work", 3}, {"denied_class", 0}, {"denied_core", 9}};
	EXPECT_NE(judge(report).text.find("It refused: core 9, work 3."), std::string::npos)
		<< judge(report).text;
	report.with->own_counters = Counters{{"granted", 0}, {"denied_work", 0}};
	EXPECT_NE(judge(report).text.find("never asked"), std::string::npos);
	report.facts.high_res_timers = false;
	EXPECT_NE(judge(report).text.find("high-resolution"), std::string::npos);
}

TEST(Judge, WithoutCountersAYieldIsAGrant)
{
	DemoReport report = good_report();
	report.with->own_counters.reset();
	report.with->machine_counters.reset();
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
	report.with->outcomes.yielded = 1;
	EXPECT_EQ(judge(report).exit_status, kExitOk);
}

TEST(Judge, ThreadCountersGoBeforeTheMachines)
{
	DemoReport report = good_report();
	report.with->own_counters = Counters{{"granted", 0}};
	report.with->machine_counters = Counters{{"granted", 50}};
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
}

TEST(Judge, BrokenExclusionIsAFailure)
{
	DemoReport report = good_report();
	report.without->exclusive = false;
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
}

TEST(Judge, NoSectionsIsAFailure)
{
	DemoReport report = stock_report();
	report.without = arm(0);
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
}

TEST(Judge, StockKernelIsNoFailureAndSaysWhatToDo)
{
	const Verdict verdict = judge(stock_report());
	EXPECT_EQ(verdict.exit_status, kExitOk);
	EXPECT_NE(verdict.text.find("No such feature."), std::string::npos);
	EXPECT_NE(verdict.text.find("Boot another kernel."), std::string::npos);
}

TEST(Judge, EarlyEndIsFineOnlyWithBothArms)
{
	DemoReport report = good_report();
	report.ended_by_signal = 15;
	EXPECT_EQ(judge(report).exit_status, kExitOk);
	report.with.reset();
	EXPECT_EQ(judge(report).exit_status, kExitSignalBase + 15);
}

TEST(Table, HasFourColumnsEverywhere)
{
	for (const DemoReport &report : {good_report(), stock_report()})
		for (const auto &row : table_rows(report))
			EXPECT_EQ(row.size(), 4u) << row.front();
}

TEST(Table, ShowsTheFigures)
{
	const DemoReport report = good_report();
	using Row = std::vector<std::string>;
	EXPECT_EQ(table_rows(report).front(), (Row{"", "without", "with", "change"}));
	EXPECT_EQ(row(report, "sections per second"),
	          (Row{"sections per second", "500", "800", "x1.60"}));
	EXPECT_EQ(row(report, "holder preempted"), (Row{"holder preempted", "400", "2", "-398"}));
	EXPECT_EQ(row(report, "grants"), (Row{"grants", "-", "500", ""}));
	EXPECT_EQ(row(report, "  ended by yield"), (Row{"  ended by yield", "-", "490", ""}));
	EXPECT_EQ(row(report, "  ended by expiry"), (Row{"  ended by expiry", "-", "10", ""}));
	EXPECT_EQ(row(report, "denials"), (Row{"denials", "-", "7", ""}));
	EXPECT_EQ(row(report, "lock wait, worst, us")[1], "1000.0");
	EXPECT_TRUE(row(report, "real-time wake-up latency, worst, us").empty());
}

TEST(Table, HasRealTimeRowsOnlyWithARealTimeThread)
{
	DemoReport report = good_report();
	report.options.rt = true;
	report.without->switches = HolderSwitches{450, 50};
	report.with->switches = HolderSwitches{61, 60};
	report.without->rt_latency.record(6000);
	report.with->rt_latency.record(5500);
	EXPECT_EQ(row(report, "holder preempted, by ordinary threads")[2], "1");
	EXPECT_EQ(row(report, "holder preempted, by the real-time thread")[1], "50");
	EXPECT_EQ(row(report, "real-time wake-up latency, worst, us"),
	          (std::vector<std::string>{"real-time wake-up latency, worst, us", "6.0", "5.5",
	                                    "-0.5"}));
}

TEST(Table, MissingArmAndUnknownFiguresAreDashes)
{
	DemoReport report = stock_report();
	report.without->switches.reset();
	for (const auto &row : table_rows(report))
		if (!row.front().empty()) {
			EXPECT_EQ(row[2], "-") << row.front();
			EXPECT_TRUE(row[3] == "-" || row[3].empty()) << row.front();
		}
	EXPECT_EQ(row(report, "holder preempted")[1], "-");
}

TEST(Text, ColumnsAreAligned)
{
	std::istringstream lines(to_text(good_report()));
	std::string line;
	std::size_t end_of_with = 0;
	unsigned rows = 0;
	while (std::getline(lines, line)) {
		if (line.find("without") != std::string::npos &&
		    line.find("change") != std::string::npos)
			end_of_with = line.find("with ", line.find("without") + 7) + 4;
		else if (end_of_with != 0 && line.empty())
			break;
		else if (end_of_with != 0) {
			++rows;
			ASSERT_GE(line.size(), end_of_with) << line;
			EXPECT_NE(line[end_of_with - 1], ' ') << line;
		}
	}
	EXPECT_EQ(rows, table_rows(good_report()).size() - 1);
}

TEST(Text, WarnsOfADroppedGuard)
{
	DemoReport report = good_report();
	EXPECT_EQ(to_text(report).find("WARNING"), std::string::npos);
	report.facts.guard_dropped = true;
	EXPECT_NE(to_text(report).find("WARNING"), std::string::npos);
}

TEST(Json, HasTheKeysItPromises)
{
	const nlohmann::json json = nlohmann::json::parse(to_json(good_report()).dump());
	EXPECT_EQ(json["schema"], "slice-ext/demo");
	EXPECT_EQ(json["schema_version"], 1);
	EXPECT_EQ(json["exit_status"], 0);
	EXPECT_EQ(json["options"]["hold_us"], nlohmann::json({20, 20}));
	EXPECT_EQ(json["environment"]["kernel_release"], "6.12.0-test");
	EXPECT_TRUE(json["unavailable"].is_null());
	for (const char *name : {"without", "with"})
		for (const char *key :
		     {"seconds", "sections", "sections_per_second", "lock_wait", "lock_hold",
		      "holder_preempted", "grants", "yields", "expiries", "denials", "outcomes",
		      "counters", "machine_counters", "rt_latency"})
			EXPECT_TRUE(json[name].contains(key)) << name << " " << key;
	EXPECT_EQ(json["with"]["grants"], 500);
	EXPECT_EQ(json["with"]["denials"], 7);
	EXPECT_EQ(json["with"]["counters"]["ended_yield"], 490);
	EXPECT_TRUE(json["without"]["grants"].is_null());
	EXPECT_EQ(json["without"]["holder_preempted"]["by_ordinary"], 400);
	EXPECT_EQ(json["without"]["lock_wait"]["max_ns"], 1000000);
}

TEST(Json, SaysWhyThereIsNoArm)
{
	const nlohmann::json json = to_json(stock_report());
	EXPECT_TRUE(json["with"].is_null());
	EXPECT_EQ(json["unavailable"]["reason"], "kernel-without");
}

TEST(ArmResult, PhasesAddUp)
{
	ArmResult sum = arm(10);
	sum.switches = HolderSwitches{3, 1};
	sum.own_counters = Counters{{"granted", 1}};
	ArmResult more = arm(20);
	more.switches = HolderSwitches{4, 0};
	more.own_counters = Counters{{"granted", 2}};
	sum += more;
	EXPECT_EQ(sum.sections, 30u);
	EXPECT_EQ(sum.seconds, 4);
	EXPECT_EQ(sum.wait.count(), 30u);
	EXPECT_EQ(sum.switches->by_ordinary(), 6u);
	EXPECT_EQ(sum.own_counters->at("granted"), 3u);

	more.switches.reset();
	sum += more;
	EXPECT_FALSE(sum.switches) << "a sum with an unknown part is unknown";
}
