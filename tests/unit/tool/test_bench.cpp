// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <signal.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/options.hpp"
#include "bench/report.hpp"
#include "bench/rows.hpp"
#include "bench/section_cost.hpp"
#include "command_line.hpp"
#include "cpu_list.hpp"
#include "exit_status.hpp"
#include "text_table.hpp"

using namespace slice_ext::tool;
using namespace std::chrono_literals;
using nlohmann::json;

namespace
{

bool extension_here()
{
	ToolRun run({"status", "--json"});
	run.wait();
	return json::parse(run.output())["available"];
}

// COUNT sections in a second, waits of WAIT ns but for one that is ten times as long.
BenchRow row(BenchMode mode, unsigned threads, std::uint64_t count, std::uint64_t wait,
             std::uint64_t grants)
{
	BenchRow row;
	row.mode = mode;
	row.threads = threads;
	row.section = 20000;
	row.result.seconds = 1;
	row.result.sections = count;
	for (int i = 0; i < 9; ++i)
		row.result.wait.record(wait);
	row.result.wait.record(10 * wait);
	row.result.switches = HolderSwitches{7, 0};
	row.result.own_counters = Counters{{"granted", grants}, {"ended_yield", grants}};
	row.result.machine_counters = row.result.own_counters;
	return row;
}

BenchReport report_of(std::vector<BenchRow> rows)
{
	BenchReport report;
	report.options.cpus = {0};
	report.cost.enabled = 21;
	report.cost.disabled = 4;
	report.rows = std::move(rows);
	return report;
}

BenchReport good_report()
{
	return report_of({row(BenchMode::off, 1, 1000, 100, 0), row(BenchMode::on, 1, 900, 100, 0),
	                  row(BenchMode::off, 4, 1000, 4000, 0),
	                  row(BenchMode::on, 4, 2000, 1000, 50)});
}

// That the message names WHAT.
void expect_refused(const json &report, const std::string &what)
{
	try {
		lock_rows_from_json(report);
		FAIL() << "taken, although " << what;
	} catch (const latency::RecordError &error) {
		EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
	}
}

json with(json report, const char *key, const json &value)
{
	report["rows"][3][key] = value;
	return report;
}

} // namespace

TEST(BenchOptions, ThreadCounts)
{
	EXPECT_EQ(parse_thread_counts("1,2,4,8"), (std::vector<unsigned>{1, 2, 4, 8}));
	EXPECT_EQ(parse_thread_counts("1-3,8"), (std::vector<unsigned>{1, 2, 3, 8}));
	for (const char *text :
	     {"", "0", "65", "a", "1,", "1,1", "1-3,2", "3-1", "-1", "1-", "1.5"})
		EXPECT_THROW(parse_thread_counts(text), std::invalid_argument) << text;
}

TEST(BenchOptions, Sections)
{
	EXPECT_EQ(parse_sections("200ns,1.5us,0.1ms"),
	          (std::vector<std::uint64_t>{200, 1500, 100000}));
	for (const char *text : {"", "200", "us", "20 us", "49ns", "11ms", "1us,1000ns", "-1us",
	                         "nanus", "1s", "1us,"})
		EXPECT_THROW(parse_sections(text), std::invalid_argument) << text;
	EXPECT_EQ(section_text(200), "200 ns");
	EXPECT_EQ(section_text(1500), "1.5 us");
}

TEST(BenchOptions, Modes)
{
	EXPECT_EQ(parse_modes("on-while-waiting,off"),
	          (std::vector<BenchMode>{BenchMode::on_while_waiting, BenchMode::off}));
	for (const char *text : {"", "On", "on,on", "off,"})
		EXPECT_THROW(parse_modes(text), std::invalid_argument) << text;
}

TEST(TextTable, ColumnsAreUnderEachOther)
{
	EXPECT_EQ(text_table({{"a", "bb", "c"}, {"long", "1", "22"}}),
	          "a     bb   c\nlong   1  22\n");
	EXPECT_EQ(text_table({{"a", "b"}, {"x", ""}}), "a  b\nx\n");
}

TEST(BenchReport, ShowsTheGainAndTheLoss)
{
	const std::string text = to_text(good_report());
	EXPECT_NE(text.find("2000  2.00"), std::string::npos) << text;
	EXPECT_NE(text.find("900  0.90"), std::string::npos) << text;
	EXPECT_NE(text.find("Worse than off by more than 2 % in 1 of 2 rows"), std::string::npos)
		<< text;
	EXPECT_NE(text.find("20 us, 1 thread, on: throughput x0.90\n"), std::string::npos) << text;
	EXPECT_NE(text.find("21.0 ns"), std::string::npos) << text;
}

TEST(BenchReport, NoGrantAtContentionIsAFailure)
{
	BenchReport report = good_report();
	EXPECT_EQ(judge(report).exit_status, kExitOk);
	report.rows[3].result.own_counters = Counters{{"granted", 0}};
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
	// A kernel that does not count: what the threads saw.
	report.rows[3].result.own_counters.reset();
	report.rows[3].result.machine_counters.reset();
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
	report.rows[3].result.outcomes.yielded = 1;
	EXPECT_EQ(judge(report).exit_status, kExitOk);
	// One mode cannot stand in for the other.
	report.rows.push_back(row(BenchMode::on_while_waiting, 4, 1000, 100, 0));
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
	// With one thread per CPU there may be nothing to grant.
	EXPECT_EQ(judge(report_of({row(BenchMode::on, 1, 1000, 100, 0)})).exit_status, kExitOk);
}

TEST(BenchReport, ABrokenLockIsAFailure)
{
	BenchReport report = good_report();
	report.rows[0].result.exclusive = false;
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
	report = good_report();
	report.rows[2].result.sections = 0;
	EXPECT_EQ(judge(report).exit_status, kExitFailed);
}

TEST(BenchReport, ASignalBeforeTheFirstRow)
{
	BenchReport report = report_of({});
	report.ended_by_signal = SIGTERM;
	EXPECT_EQ(judge(report).exit_status, kExitSignalBase + SIGTERM);
}

TEST(LockRows, AreReadBack)
{
	const std::vector<latency::LockRow> rows = lock_rows_from_json(to_json(good_report()));
	ASSERT_EQ(rows.size(), 4u);
	EXPECT_EQ(rows[3].mode, "on");
	EXPECT_EQ(rows[3].threads, 4u);
	EXPECT_EQ(rows[3].cpus, 1u);
	EXPECT_EQ(rows[3].section, 20000u);
	EXPECT_EQ(rows[3].sections, 2000u);
	EXPECT_DOUBLE_EQ(rows[3].sections_per_second, 2000);
	EXPECT_GE(rows[3].wait_p50, 1000u);
	EXPECT_EQ(rows[3].wait_max, 10000u);
	EXPECT_EQ(rows[3].holder_preempted, 7u);
	EXPECT_EQ(rows[3].counters.at("granted"), 50);
	EXPECT_FALSE(rows[3].uncontended_cost);
	EXPECT_DOUBLE_EQ(rows[1].uncontended_cost.value(), 21);
	EXPECT_FALSE(rows[0].uncontended_cost);
}

TEST(LockRows, WhatCannotBeIsRefused)
{
	const json good = to_json(good_report());
	expect_refused(json::array(), "not a report");
	expect_refused({{"schema", "slice-ext/demo"}}, "not a report");
	json other = good;
	other["schema_version"] = 2;
	expect_refused(other, "schema_version");
	other = good;
	other["exit_status"] = 1;
	other["verdict"] = "FAILED: why";
	expect_refused(other, "FAILED: why");
	other = good;
	other["ended_by_signal"] = 15;
	expect_refused(other, "signal");
	other = good;
	other["rows"] = json::array();
	expect_refused(other, "no rows");
	other = good;
	other["rows"][3].erase("wait_max_ns");
	expect_refused(other, "row 4 has no wait_max_ns");
	expect_refused(with(good, "mode", "maybe"), "mode");
	expect_refused(with(good, "mode", "off,on"), "mode");
	expect_refused(with(good, "threads", 0), "no threads");
	expect_refused(with(good, "threads", "4"), "threads");
	expect_refused(with(good, "sections", -1), "sections");
	expect_refused(with(good, "sections_per_second", 4000), "throughput");
	expect_refused(with(good, "sections_per_second", nullptr), "sections_per_second");
	expect_refused(with(good, "wait_p50_ns", 20000), "out of order");
	expect_refused(with(good, "holder_preempted", nullptr), "preempted");
	expect_refused(with(good, "uncontended_cost_ns", "21"), "uncontended_cost_ns");
	expect_refused(with(good, "counters", {{"granted", -1}}), "granted");
	expect_refused(with(good, "threads", 1), "twice");
}

TEST(SectionCost, IsSmallAndNotNothing)
{
	const CycleClock clock = CycleClock::calibrate();
	const SectionCost cost = measure_section_cost(allowed_cpus().front(), clock);
	EXPECT_LT(cost.disabled, 100);
	if (cost.enabled) {
		EXPECT_GT(*cost.enabled, 0);
		EXPECT_LT(*cost.enabled, 200);
	}
}

TEST(Bench, RunsWithoutExtensionAnywhere)
{
	ToolRun run({"bench", "--modes", "off", "--seconds", "0.05", "--threads", "1,4",
	             "--sections", "200ns,20us", "--json", "--quiet"});
	ASSERT_EQ(run.wait(), kExitOk) << run.errors();
	EXPECT_EQ(run.errors(), "");
	const json report = json::parse(run.output());
	for (const json &found : report["rows"])
		if (found["holder_preempted"].is_null())
			GTEST_SKIP() << "this machine does not tell when a holder is preempted";
	const std::vector<latency::LockRow> rows = lock_rows_from_json(report);
	ASSERT_EQ(rows.size(), 4u);
	for (const latency::LockRow &found : rows) {
		EXPECT_EQ(found.mode, "off");
		EXPECT_GT(found.sections, 0u);
		EXPECT_EQ(found.cpus, allowed_cpus().size());
	}
	// One thread per CPU and section length: at most one holder at a time.
	EXPECT_LT(rows[2].sections_per_second, 50001);
	for (const json &found : report["rows"]) {
		EXPECT_GE(found["hold_p50_ns"].get<double>(),
		          0.8 * found["section_ns"].get<double>());
	}
}

TEST(Bench, PrintsOneTable)
{
	ToolRun run({"bench", "--seconds", "0.05", "--threads", "2", "--sections", "20us"});
	const int status = run.wait();
	const std::string text = run.output();
	EXPECT_NE(text.find("section  threads"), std::string::npos) << run.errors();
	EXPECT_NE(run.errors().find("sections of 20 us, 2 per CPU"), std::string::npos)
		<< run.errors();
	if (!extension_here()) {
		EXPECT_EQ(status, kExitOk) << run.errors();
		EXPECT_NE(text.find("next step: "), std::string::npos) << text;
		EXPECT_EQ(text.find("on-while-waiting"), std::string::npos) << text;
	}
}

TEST(Bench, ModeOnIsRefusedWhereThereIsNone)
{
	if (extension_here())
		GTEST_SKIP() << "this kernel has it";
	ToolRun run({"bench", "--modes", "off,on", "--seconds", "0.05"});
	EXPECT_EQ(run.wait(), kExitUnavailable);
	EXPECT_NE(run.errors().find("next step: "), std::string::npos) << run.errors();
	EXPECT_EQ(run.output(), "");
}

TEST(Bench, RefusesWhatItDoesNotKnow)
{
	const std::vector<std::vector<std::string>> wrong = {
		{"bench", "--threads", "0"},   {"bench", "--sections", "20"},
		{"bench", "--modes", "none"},  {"bench", "--cpus", "8191"},
		{"bench", "--seconds", "nan"}, {"bench", "--delay-us", "101"}};
	for (const auto &arguments : wrong) {
		ToolRun run(arguments);
		EXPECT_EQ(run.wait(), kExitUsage) << arguments[1];
		EXPECT_NE(run.errors() + run.output(), "") << arguments[1];
	}
}

TEST(Bench, ASignalEndsItInOrder)
{
	ToolRun run({"bench", "--modes", "off", "--seconds", "600"},
	            [] { signal(SIGTERM, SIG_DFL); });
	ASSERT_TRUE(run.wait_for_error_text("sections of", 30s)) << run.errors();
	std::this_thread::sleep_for(100ms);
	run.send(SIGTERM);
	EXPECT_EQ(run.wait(), kExitSignalBase + SIGTERM);
	EXPECT_NE(run.output().find("Ended before the first row"), std::string::npos)
		<< run.output();
}
