// SPDX-License-Identifier: MIT
// Verdicts, comparisons and the statistics behind them.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "latency/checks.hpp"
#include "latency/compare.hpp"
#include "latency/report.hpp"
#include "latency/statistics.hpp"
#include "scratch_dir.hpp"

using namespace slice_ext::tool::latency;
using nlohmann::json;

namespace
{

constexpr const char *kExperiment = R"({
	"name": "x", "title": "t <b>", "kind": "cyclictest",
	"arms": [{"name": "base", "kernel": "base"}, {"name": "on-user", "kernel": "on"},
	         {"name": "dropped-30", "kernel": "on"}],
	"checks": [
		{"title": "guarded", "metric": "max", "arm": "on-user", "against": "base",
		 "at_most_above": 1000},
		{"title": "rare", "metric": "p99", "arm": "on-user", "at_most": 50000},
		{"title": "granted", "metric": "counters.granted", "arm": "on-user", "at_least": 1},
		{"title": "harm", "control": true, "metric": "max", "arm": "dropped-30",
		 "against": "base", "at_least_above": 25000},
		{"title": "real", "metric": "max", "arm": "on-user", "at_most": 1, "places": ["real"]}
	]})";

// N samples from LOW upwards, one nanosecond apart, and the worst.
ArmResult arm(const std::string &name, std::uint64_t low, std::uint64_t worst, unsigned n = 1000)
{
	ThreadLatencies thread;
	thread.cycles = n;
	thread.min = low;
	thread.max = worst;
	thread.average = static_cast<double>(low) + 500;
	thread.histogram_end = 100000;
	for (unsigned i = 0; i + 1 < n; ++i)
		thread.histogram.emplace_back(low + i, 1);
	thread.histogram.emplace_back(worst, 1);
	ArmResult result;
	result.arm = name;
	result.threads = {thread};
	if (name != "base")
		result.counters = {{"requests", 10}, {"granted", 7}};
	return result;
}

RunRecord record(const std::string &name, const std::string &kind, std::vector<ArmResult> arms,
                 bool virtual_time = true)
{
	RunRecord made;
	made.name = name;
	made.experiment = json::parse(kExperiment);
	made.complete = true;
	made.started = "2026-01-01T00:00:00Z";
	made.environment = {{"kernel_kind", kind},
	                    {"preemption", "PREEMPT"},
	                    {"virtual_time", virtual_time},
	                    {"release", kind == "base" ? "6.12.1-vm" : "6.12.1-slice"}};
	made.arms = std::move(arms);
	return made;
}

RunRecord base()
{
	return record("b", "base", {arm("base", 3000, 5000)});
}

RunRecord on(std::uint64_t guarded = 5500, std::uint64_t dropped = 35000)
{
	return record("o", "on",
	              {arm("on-user", 3100, guarded), arm("dropped-30", 3100, dropped)});
}

Verdict verdict_of(const std::vector<RunRecord> &records, bool partial = false)
{
	const auto tables = make_tables(records);
	EXPECT_EQ(tables.size(), 1u);
	return judge(tables.at(0), partial);
}

Outcome outcome(const Verdict &verdict, const std::string &title)
{
	for (const CheckResult &result : verdict.checks)
		if (result.check.title == title)
			return result.outcome;
	ADD_FAILURE() << "no check " << title;
	return Outcome::failed;
}

std::string refusal(const std::vector<RunRecord> &records)
{
	try {
		make_tables(records);
	} catch (const RecordError &error) {
		return error.what();
	}
	return "accepted";
}

bool is_worse(const RunRecord &before, const RunRecord &after)
{
	for (const Difference &difference : compare(before, after, {}))
		if (difference.change == Change::worse)
			return true;
	return false;
}

} // namespace

TEST(Verdict, PassesWithFiguresAsTheyShouldBe)
{
	const Verdict verdict = verdict_of({base(), on()});
	EXPECT_TRUE(verdict.passed) << verdict.line;
	EXPECT_NE(verdict.line.find("4 of 4 checks, 1 skipped"), std::string::npos) << verdict.line;
	EXPECT_EQ(outcome(verdict, "real"), Outcome::skipped);
}

TEST(Verdict, FailsOnAPlantedRegressionAndNotOnAnImprovement)
{
	EXPECT_FALSE(verdict_of({base(), on(35000)}).passed);
	EXPECT_TRUE(verdict_of({base(), on(4200)}).passed);
	EXPECT_FALSE(verdict_of({base(), on(6001)}).passed);
	EXPECT_TRUE(verdict_of({base(), on(6000)}).passed);
}

TEST(Verdict, FailsWhenTheControlShowsNothing)
{
	const Verdict verdict = verdict_of({base(), on(5500, 6000)});
	EXPECT_FALSE(verdict.passed);
	EXPECT_NE(verdict.line.find("control showed nothing"), std::string::npos);
}

TEST(Verdict, FailsWithoutGrantsWhereSomebodyAsked)
{
	RunRecord silent = on();
	silent.experiment["checks"].erase(2);
	RunRecord other = base();
	other.experiment = silent.experiment;
	silent.arms[0].counters["granted"] = 0;
	const Verdict verdict = verdict_of({other, silent});
	EXPECT_FALSE(verdict.passed);
	EXPECT_EQ(outcome(verdict, "extra time was granted"), Outcome::failed);
}

TEST(Verdict, NamesTheArmThatIsMissingAndItsKernel)
{
	const Verdict verdict = verdict_of({on()});
	EXPECT_FALSE(verdict.passed);
	EXPECT_NE(verdict.checks[0].figures.find("arm base was not measured"), std::string::npos);
	EXPECT_NE(verdict.checks[0].figures.find("\"base\""), std::string::npos);
	const Verdict partial = verdict_of({on()}, true);
	EXPECT_TRUE(partial.passed);
	EXPECT_EQ(outcome(partial, "guarded"), Outcome::skipped);
}

TEST(Verdict, APercentileInTheOverflowIsNoUpperBound)
{
	RunRecord run = on();
	ThreadLatencies &thread = run.arms[0].threads[0];
	thread.histogram.resize(900);
	thread.histogram_end = 10000;
	thread.overflow = 100;
	const Verdict verdict = verdict_of({base(), run});
	EXPECT_EQ(outcome(verdict, "rare"), Outcome::failed);
	EXPECT_NE(verdict.checks[1].figures.find("p99 > 10.0 us"), std::string::npos);
}

TEST(Tables, RefuseRunsThatDoNotBelongTogether)
{
	RunRecord broken = on();
	broken.complete = false;
	broken.why_incomplete = "interrupted by signal 2";
	EXPECT_NE(refusal({base(), broken}).find("interrupted by signal 2"), std::string::npos);
	EXPECT_NE(refusal({on(), on()}).find("both have arm on-user"), std::string::npos);
	RunRecord other = on();
	other.experiment["checks"].erase(0);
	EXPECT_NE(refusal({base(), other}).find("different forms"), std::string::npos);
	other = on();
	other.environment["release"] = "6.18.2-slice";
	EXPECT_NE(refusal({base(), other}).find("6.12.1 and 6.18.2"), std::string::npos);
	other = on();
	other.environment["virtual_time"] = false;
	EXPECT_NE(refusal({base(), other}).find("virtual time"), std::string::npos);
	// Another preemption model is another table.
	other = on();
	other.environment["preemption"] = "PREEMPT_RT";
	EXPECT_EQ(make_tables({base(), other}).size(), 2u);
}

TEST(Compare, InVirtualTimeIsExact)
{
	EXPECT_FALSE(is_worse(on(), on()));
	EXPECT_TRUE(is_worse(on(), on(35000)));
	EXPECT_FALSE(is_worse(on(35000), on()));
	EXPECT_FALSE(is_worse(on(), on(6500)));
	EXPECT_TRUE(is_worse(on(), on(6501)));
}

TEST(Compare, MoreHarmInAControlIsNoRegression)
{
	EXPECT_FALSE(is_worse(on(5500, 35000), on(5500, 80000)));
}

TEST(Compare, AnArmThatIsGoneIsWorse)
{
	RunRecord less = on();
	less.arms.pop_back();
	EXPECT_TRUE(is_worse(on(), less));
}

TEST(Compare, OnHardwareOneMaximumDecidesNothing)
{
	const auto real = [](std::uint64_t low, std::uint64_t worst) {
		return record("r", "on", {arm("on-user", low, worst, 5000)}, false);
	};
	EXPECT_FALSE(is_worse(real(3000, 9000), real(3000, 60000)));
	EXPECT_FALSE(is_worse(real(3000, 9000), real(3000, 9000)));
	// All of it moved up: that is not chance.
	EXPECT_TRUE(is_worse(real(3000, 9000), real(9000, 20000)));
	EXPECT_FALSE(is_worse(real(9000, 20000), real(3000, 9000)));
}

TEST(Compare, RefusesWhatCannotBeCompared)
{
	RunRecord other = on();
	other.environment["preemption"] = "PREEMPT_RT";
	EXPECT_THROW(compare(on(), other, {}), RecordError);
	other = on();
	other.short_form = true;
	EXPECT_THROW(compare(on(), other, {}), RecordError);
	other = on();
	other.experiment["measure"] = {{"loops", 5}};
	EXPECT_THROW(compare(on(), other, {}), RecordError);
}

TEST(Statistics, QuantilesAreTheSmallestValuesThatSuffice)
{
	Distribution distribution;
	ThreadLatencies thread;
	thread.cycles = 10;
	thread.min = 1;
	thread.max = 900;
	thread.histogram = {{1, 5}, {2, 4}};
	thread.overflow = 1;
	thread.histogram_end = 100;
	distribution.add(thread);
	EXPECT_EQ(quantile(distribution, 0.5).value, 1u);
	EXPECT_EQ(quantile(distribution, 0.51).value, 2u);
	EXPECT_EQ(quantile(distribution, 0.9).value, 2u);
	EXPECT_TRUE(quantile(distribution, 0.91).lower_bound);
	EXPECT_EQ(in_us(quantile(distribution, 0.99)), "> 0.1 us");
	EXPECT_EQ(distribution.above(1), 5u);
	EXPECT_EQ(distribution.above(2), 1u);
}

TEST(Statistics, FishersTestGivesTheKnownProbabilities)
{
	// The lady tasting tea: 3 of 4 right by chance with 17/70, 4 of 4 with 1/70.
	EXPECT_NEAR(chance_of_excess(3, 4, 1, 4), 17.0 / 70, 1e-9);
	EXPECT_NEAR(chance_of_excess(4, 4, 0, 4), 1.0 / 70, 1e-9);
	EXPECT_NEAR(chance_of_excess(0, 100, 3, 100), 1, 1e-9);
	EXPECT_LT(chance_of_excess(30, 10000, 5, 10000), 0.001);
}

TEST(Statistics, TheBootstrapIsTheSameEachTimeAndHoldsTheQuantile)
{
	Distribution distribution;
	distribution.add(arm("x", 1000, 9000, 2000).threads[0]);
	const Interval once = bootstrap(distribution, 0.5), again = bootstrap(distribution, 0.5);
	EXPECT_EQ(once.low, again.low);
	EXPECT_EQ(once.high, again.high);
	const std::uint64_t median = quantile(distribution, 0.5).value;
	EXPECT_LE(once.low, median);
	EXPECT_GE(once.high, median);
	// Two standard deviations of a binomial rank: 2 * sqrt(2000) / 2.
	EXPECT_NEAR(static_cast<double>(once.high - once.low), 88, 25);
}

TEST(Statistics, ZeroOfManyBoundsTheRate)
{
	EXPECT_DOUBLE_EQ(rate_bound(3000), 0.001);
}

TEST(Record, ComesBackAsItWas)
{
	const json once = to_json(on());
	EXPECT_EQ(to_json(record_from_json(once, "x")), once);
}

TEST(Record, IsRefusedWithTheFileAndTheCause)
{
	const auto cause = [](const char *pointer, const json &value) {
		json file = to_json(on());
		file[json::json_pointer(pointer)] = value;
		try {
			record_from_json(file, "run.json");
		} catch (const RecordError &error) {
			return std::string(error.what());
		}
		return std::string("accepted");
	};
	EXPECT_NE(cause("/schema", "other/2").find("run.json: schema \"other/2\""), std::string::npos);
	EXPECT_NE(cause("/arms/0/threads/0/overflow", 5u).find("1005 of 1000"), std::string::npos);
	EXPECT_NE(cause("/arms/0/threads/0/overflow", -5).find("not a count"), std::string::npos);
	EXPECT_NE(cause("/arms/0/threads/0/average", -1).find("out of order"), std::string::npos);
	EXPECT_NE(cause("/arms/0/arm", "nobody").find("not one of its experiment"), std::string::npos);
	EXPECT_NE(cause("/arms/1/arm", "on-user").find("one repetition twice"), std::string::npos);
	EXPECT_NE(cause("/arms/0/repetition", 4294967297u).find("\"repetition\""), std::string::npos);
	EXPECT_NE(cause("/arms/0/counters/granted", -1).find("negative"), std::string::npos);
	EXPECT_NE(cause("/environment/kernel_kind", "new").find("kernel_kind"), std::string::npos);
	EXPECT_NE(cause("/arms", json::array()).find("no arms"), std::string::npos);
}

TEST(Record, FilesThatAreNoneAreRefused)
{
	const ScratchDir scratch;
	const auto cause = [&](const std::string &text) {
		try {
			read_record(scratch.put("run.json", text));
		} catch (const RecordError &error) {
			return std::string(error.what());
		}
		return std::string("accepted");
	};
	EXPECT_NE(cause("").find("run.json: is empty"), std::string::npos);
	const std::string whole = to_json(on()).dump();
	EXPECT_NE(cause(whole.substr(0, 200)).find("truncated"), std::string::npos);
	EXPECT_THROW(read_record(scratch.path() + "/missing"), RecordError);
	write_record(on(), scratch.path() + "/good.json");
	EXPECT_EQ(to_json(read_record(scratch.path() + "/good.json")), to_json(on()));
}

TEST(Html, IsOneDocumentThatNeedsNothingElse)
{
	ReportOptions options;
	options.plots = false;
	options.title = "a <script> & \"more\"";
	const std::string html = to_html({base(), on()}, options);
	EXPECT_EQ(html, to_html({base(), on()}, options));
	EXPECT_NE(html.find("a &lt;script&gt; &amp; &quot;more&quot;"), std::string::npos);
	EXPECT_NE(html.find("t &lt;b&gt;"), std::string::npos);
	for (const char *outside : {"<script", "http:", "https:", "src=", "<link"})
		EXPECT_EQ(html.find(outside), std::string::npos) << outside;
	// The verdict comes before everything else.
	EXPECT_LT(html.find("class=\"pass\">pass"), html.find("<h2>"));
}

TEST(Html, PutsRunsBesideABaseline)
{
	ReportOptions options;
	options.plots = false;
	EXPECT_THROW(to_html({on(), on(35000)}, options), RecordError);
	options.compare = true;
	EXPECT_NE(to_html({on(), on(35000)}, options).find("figures are worse"), std::string::npos);
	EXPECT_NE(to_html({on(35000), on()}, options).find("nothing is worse"), std::string::npos);
}

TEST(Html, PlotsHaveTextAsItIs)
{
	const ScratchDir scratch;
	RunRecord odd = on();
	odd.environment["preemption"] = "PREEMPT `touch " + scratch.path() + "/ran` 'x' \"y\"";
	RunRecord other = base();
	other.environment["preemption"] = odd.environment["preemption"];
	std::string html;
	try {
		html = to_html({other, odd}, {});
	} catch (const std::runtime_error &error) {
		GTEST_SKIP() << error.what();
	}
	EXPECT_NE(html.find("<svg"), std::string::npos);
	EXPECT_FALSE(std::ifstream(scratch.path() + "/ran").good()) << "gnuplot ran a command";
}
