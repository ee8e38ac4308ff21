// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "command_line.hpp"
#include "exit_status.hpp"
#include "refusal.hpp"
#include "scratch_dir.hpp"
#include "stats/extensions.hpp"
#include "stats/histogram_report.hpp"
#include "stats/live_report.hpp"
#include "stats/output.hpp"
#include "stats/sample.hpp"
#include "stats/trace_instance.hpp"
#include "text_file.hpp"

using namespace slice_ext::tool;
using nlohmann::json;

namespace
{

constexpr std::int64_t second = 1'000'000'000;

std::string fixture(const std::string &name)
{
	const std::string path = std::string(SLICE_EXT_TOOL_FIXTURES) + "/" + name;
	const std::optional<std::string> text = read_text(path);
	EXPECT_TRUE(text) << path;
	return text.value_or("");
}

Sample sample_at(double seconds, std::map<int, Counters> columns)
{
	Sample sample;
	sample.monotonic_ns = static_cast<std::int64_t>(seconds * second);
	sample.realtime_ns = 1'764'547'200 * second + sample.monotonic_ns + 5'000'000;
	sample.columns = std::move(columns);
	return sample;
}

Refusal refusal_of(const std::function<void()> &call)
{
	try {
		call();
	} catch (const Refusal &refusal) {
		return refusal;
	}
	return {-1, "not refused"};
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos;
}

// Tables without their padding.
std::string squeezed(const std::string &text)
{
	std::string result;
	for (const char letter : text)
		if (letter != ' ' || result.empty() || result.back() != ' ')
			result += letter;
	return result;
}

// In pieces of STEP bytes, as a pipe may cut it.
Extensions read_trace(const std::string &text, std::size_t step = std::string::npos)
{
	Extensions extensions;
	TraceReader reader(extensions);
	for (std::size_t at = 0; at < text.size(); at += std::min(step, text.size()))
		reader.read(std::string_view(text).substr(at, step));
	reader.finish();
	return extensions;
}

std::string trace_error(const std::string &text)
{
	try {
		read_trace(text);
	} catch (const std::runtime_error &error) {
		return error.what();
	}
	return "";
}

// One thread in a directory made to look like procfs.
void put_thread(const ScratchDir &proc, int process, int thread, char state, int granted)
{
	const std::string directory =
		std::to_string(process) + "/task/" + std::to_string(thread) + "/";
	proc.put(directory + "comm", "worker\n");
	proc.put(directory + "stat",
	         std::to_string(thread) + " (a) name) " + state + " 1 1 1 0 -1");
	proc.put(directory + "sched",
	         "worker (1, #threads: 1)\npreempt_delay.requests : 10\npreempt_delay.granted : " +
	                 std::to_string(granted) + "\n");
}

} // namespace

TEST(Rates, AreTheDifferenceOverTheTimeBetween)
{
	const Change change = change_between(
		sample_at(10, {{0, {{"granted", 100}}}, {1, {{"granted", 7}}}}),
		sample_at(10.5, {{0, {{"granted", 150}}}, {1, {{"granted", 7}}}}));
	EXPECT_DOUBLE_EQ(change.seconds, 0.5);
	EXPECT_EQ(change.sum.at("granted"), 50u);
	EXPECT_EQ(change.columns.at(0).at("granted"), 50u);
	EXPECT_EQ(change.columns.at(1).at("granted"), 0u);
	EXPECT_TRUE(change.backwards.empty());
}

TEST(Rates, OfACounterSetToZeroAreUnknown)
{
	const Change change = change_between(
		sample_at(1, {{0, {{"granted", 100}, {"kept", 1}}}, {1, {{"granted", 7}}}}),
		sample_at(2, {{0, {{"granted", 3}, {"kept", 2}}}, {1, {{"granted", 9}}}}));
	EXPECT_EQ(change.backwards, (std::set<std::string>{"granted"}));
	EXPECT_EQ(change.sum, (Counters{{"kept", 1}}));
	EXPECT_EQ(change.columns.at(0), (Counters{{"kept", 1}}));
	EXPECT_EQ(change.columns.at(1), (Counters{{"granted", 2}}));
}

TEST(Rates, ThreadsComeAndGo)
{
	const Change change =
		change_between(sample_at(1, {{11, {{"granted", 100}}}, {12, {{"granted", 7}}}}),
	                       sample_at(2, {{11, {{"granted", 110}}}, {13, {{"granted", 5}}}}));
	EXPECT_EQ(change.sum.at("granted"), 15u);
	EXPECT_TRUE(change.backwards.empty());
}

TEST(Shares, AreOfRequestsAndOfEnds)
{
	const Shares shares = shares_of({{"requests", 200},
	                                 {"granted", 150},
	                                 {"ended_yield", 90},
	                                 {"ended_expired", 30},
	                                 {"ended_of_a_newer_kernel", 30}});
	EXPECT_DOUBLE_EQ(*shares.granted, 0.75);
	EXPECT_DOUBLE_EQ(*shares.yielded, 0.6);
	EXPECT_DOUBLE_EQ(*shares.expired, 0.2);
}

TEST(Shares, OfNothingAreUnknown)
{
	for (const Counters &counters :
	     {Counters{}, Counters{{"requests", 0}, {"granted", 0}, {"ended_yield", 0}},
	      Counters{{"granted", 5}}}) {
		EXPECT_FALSE(shares_of(counters).granted);
		EXPECT_FALSE(shares_of(counters).yielded);
	}
}

TEST(Order, IsThatOfTheStory)
{
	EXPECT_EQ(shown_order({{"another", 0},
	                       {"denied_work", 0},
	                       {"denied_new", 0},
	                       {"ended_yield", 0},
	                       {"granted", 0},
	                       {"kept", 0},
	                       {"requests", 0}}),
	          (std::vector<std::string>{"requests", "granted", "kept", "denied_new",
	                                    "denied_work", "ended_yield", "another"}));
}

TEST(SampleMachine, HasAColumnPerCpu)
{
	ScratchDir proc;
	proc.put("preempt_delay", fixture("preempt_delay.txt"));
	const Sample sample = sample_machine(proc.path());
	EXPECT_EQ(sample.columns.size(), 2u);
	EXPECT_EQ(sample.columns.at(1).at("requests"), 30u);
	EXPECT_EQ(sample.total().at("requests"), 150u);
	EXPECT_GT(sample.monotonic_ns, 0);
	EXPECT_GT(sample.realtime_ns, 0);
}

TEST(SampleMachine, NamesWhatIsWrong)
{
	ScratchDir proc;
	Refusal refusal = refusal_of([&] { sample_machine(proc.path()); });
	EXPECT_EQ(refusal.exit_status, kExitUnavailable);
	EXPECT_TRUE(contains(refusal.text, "next step: ")) << refusal.text;

	proc.put("preempt_delay", " CPU0\nrequests: many\n");
	refusal = refusal_of([&] { sample_machine(proc.path()); });
	EXPECT_EQ(refusal.exit_status, kExitFailed);
	EXPECT_TRUE(contains(refusal.text, "preempt_delay: line 2: 'many'")) << refusal.text;
}

TEST(ThreadSampler, SumsTheThreadsOfAProcess)
{
	ScratchDir proc;
	proc.put("11/comm", "worker\n");
	put_thread(proc, 11, 11, 'S', 3);
	put_thread(proc, 11, 12, 'R', 4);
	const ThreadSampler process(11, true, proc.path());
	const Sample sample = process.sample();
	EXPECT_EQ(process.name(), "worker");
	EXPECT_EQ(sample.columns.size(), 2u);
	EXPECT_EQ(sample.total().at("granted"), 7u);
	EXPECT_FALSE(sample.ended);

	put_thread(proc, 11, 11, 'Z', 3);
	EXPECT_FALSE(process.sample().ended) << "one of its threads still runs";
	put_thread(proc, 11, 12, 'X', 5);
	EXPECT_TRUE(process.sample().ended);
	EXPECT_EQ(process.sample().total().at("granted"), 8u) << "what it left can be read";

	std::filesystem::remove_all(proc.path() + "/11/task");
	EXPECT_TRUE(process.sample().ended);
	EXPECT_TRUE(process.sample().columns.empty());
}

TEST(ThreadSampler, TakesOneThreadAlone)
{
	ScratchDir proc;
	put_thread(proc, 12, 12, 'R', 4);
	put_thread(proc, 12, 13, 'R', 5);
	EXPECT_EQ(ThreadSampler(12, false, proc.path()).sample().total().at("granted"), 4u);
}

TEST(ThreadSampler, NamesWhatIsWrong)
{
	ScratchDir proc;
	Refusal refusal = refusal_of([&] { ThreadSampler(11, true, proc.path()); });
	EXPECT_EQ(refusal.exit_status, kExitFailed);
	EXPECT_TRUE(contains(refusal.text, "no process 11")) << refusal.text;

	put_thread(proc, 11, 11, 'S', 3);
	proc.put("11/task/11/sched", "nr_switches : 3\n");
	refusal = refusal_of([&] { ThreadSampler(11, true, proc.path()).sample(); });
	EXPECT_EQ(refusal.exit_status, kExitUnavailable);
	EXPECT_TRUE(contains(refusal.text, "next step: ")) << refusal.text;

	proc.put("11/task/11/sched", "preempt_delay.granted : x\n");
	refusal = refusal_of([&] { ThreadSampler(11, true, proc.path()).sample(); });
	EXPECT_EQ(refusal.exit_status, kExitFailed);
	EXPECT_TRUE(contains(refusal.text, "/proc/11/sched: line 1")) << refusal.text;

	std::filesystem::remove(proc.path() + "/11/task/11/sched");
	refusal = refusal_of([&] { ThreadSampler(11, true, proc.path()).sample(); });
	EXPECT_EQ(refusal.exit_status, kExitUnavailable);
}

TEST(LiveText, FirstHasTotalsLaterOnesRates)
{
	View view;
	view.sample = sample_at(1, {{0, {{"requests", 8}, {"granted", 6}}}});
	std::string text = squeezed(to_text(view));
	EXPECT_TRUE(contains(text, "whole machine, 2025-12-01T00:00:01.005Z\n")) << text;
	EXPECT_TRUE(contains(text, "granted 6\n")) << text;
	EXPECT_TRUE(contains(text, "granted of requests 75.0 %\n")) << text;
	EXPECT_FALSE(contains(text, "per second")) << text;

	view.change = change_between(
		view.sample, sample_at(3, {{0, {{"requests", 28}, {"granted", 11}}}}));
	view.sample = sample_at(3, {{0, {{"requests", 28}, {"granted", 11}}}});
	view.per_cpu = true;
	text = squeezed(to_text(view));
	EXPECT_TRUE(contains(text, "last 2.00 s")) << text;
	EXPECT_TRUE(contains(text, "total per second CPU0/s\n")) << text;
	EXPECT_TRUE(contains(text, "requests 28 10.0 10.0\n")) << text;
	EXPECT_TRUE(contains(text, "granted of requests 39.3 % 25.0 % 25.0 %\n")) << text;
}

TEST(LiveText, SaysWhatIsOdd)
{
	View view;
	view.sample = sample_at(3, {{11, {{"granted", 2}}}});
	view.change = change_between(sample_at(2, {{11, {{"granted", 9}}}}), view.sample);
	view.scope = {Scope::process, 11, "a\033[2Jb"};
	view.sample.ended = true;
	view.note = "a note";
	const std::string text = squeezed(to_text(view));
	EXPECT_TRUE(contains(text, "process 11 (a?[2Jb), ")) << text;
	EXPECT_TRUE(contains(text, "does not count: requests ended")) << text;
	EXPECT_TRUE(contains(text, "without a rate: granted\n")) << text;
	EXPECT_TRUE(contains(text, "granted 2 -\n")) << text;
	EXPECT_TRUE(contains(text, "\na note\n")) << text;
	EXPECT_TRUE(contains(text, "has ended; these are its last numbers")) << text;
}

TEST(LiveText, ShowsTheRowsOfANewerKernel)
{
	ScratchDir proc;
	proc.put("preempt_delay", fixture("preempt_delay_newer.txt"));
	View view;
	view.per_cpu = true;
	view.sample = sample_machine(proc.path());
	const std::string text = squeezed(to_text(view));
	for (const char *line : {"inquiries 150 120 30 0 0\n",
	                         "denied_thermal 3 1 0 2 0\n",
	                         "stolen 9 5 4 0 0\n",
	                         "granted of requests - - - - -\n",
	                         "does not count: requests ended"})
		EXPECT_TRUE(contains(text, line)) << line << "in\n" << text;
}

TEST(LiveJson, HasOneObjectPerRefresh)
{
	View view;
	view.sample = sample_at(1, {{0, {{"granted", 5}}}, {1, {{"granted", 1}}}});
	json report = to_json(view);
	EXPECT_EQ(report["schema"], "slice-ext/stats");
	EXPECT_EQ(report["schema_version"], 1);
	EXPECT_EQ(report["scope"], "machine");
	EXPECT_EQ(report["time"], "2025-12-01T00:00:01.005Z");
	EXPECT_EQ(report["monotonic_ns"], second);
	EXPECT_EQ(report["totals"], (json{{"granted", 6}}));
	for (const char *key : {"rates", "interval_seconds", "note"})
		EXPECT_TRUE(report.at(key).is_null()) << key;
	EXPECT_TRUE(report["shares"]["interval"].is_null());
	EXPECT_EQ(report["set_to_zero"], json::array());
	EXPECT_EQ(report["per_cpu"]["1"]["totals"], (json{{"granted", 1}}));
	EXPECT_FALSE(contains(report.dump(), "\n"));

	const Sample later = sample_at(3, {{0, {{"granted", 15}}}, {1, {{"granted", 0}}}});
	view.change = change_between(view.sample, later);
	view.sample = later;
	report = to_json(view);
	EXPECT_EQ(report["interval_seconds"], 2.0);
	EXPECT_TRUE(report["rates"]["granted"].is_null()) << "one of its columns is unknown";
	EXPECT_EQ(report["per_cpu"]["0"]["rates"]["granted"], 5.0);
	EXPECT_TRUE(report["per_cpu"]["1"]["rates"]["granted"].is_null());
	EXPECT_EQ(report["set_to_zero"], (json{"granted"}));

	view.scope = {Scope::thread, 12, "worker"};
	report = to_json(view);
	EXPECT_EQ(report["scope"], "thread");
	EXPECT_EQ(report["id"], 12);
	EXPECT_EQ(report["ended"], false);
	EXPECT_TRUE(report["per_thread"].is_object());
	EXPECT_FALSE(report.contains("per_cpu"));
}

TEST(Trace, CountsEventsAndLosses)
{
	const std::string text = fixture("trace_pipe.txt");
	for (const std::size_t step : {std::string::npos, std::size_t(1), std::size_t(7)}) {
		const Extensions read = read_trace(text, step);
		EXPECT_EQ(read.granted,
		          (std::map<std::uint64_t, std::uint64_t>{{30000, 2}, {50000, 1}}));
		EXPECT_EQ(read.denied, (std::map<std::string, std::uint64_t>{
					       {"nonfair", 1}, {"work", 2}, {"0x63", 1}}));
		ASSERT_EQ(read.ended.size(), 2u);
		EXPECT_EQ(read.ended.at("yield").by_us,
		          (std::map<std::uint64_t, std::uint64_t>{{4, 2}}));
		EXPECT_EQ(read.ended.at("expired").used_ns.max(), 31007u);
		EXPECT_EQ(read.lost, 18u);
		EXPECT_EQ(read.grants(), 3u);
		EXPECT_EQ(read.denials(), 4u);
		EXPECT_EQ(read.ends().used_ns.count(), 3u);
	}
}

TEST(Trace, NothingIsNothing)
{
	EXPECT_EQ(read_trace("").grants(), 0u);
	EXPECT_EQ(read_trace("\n").lost, 0u);
}

TEST(Trace, RefusesMalformedLinesByName)
{
	const std::string good = "sched_preempt_delay_deny: comm=a pid=1 reason=work\n";
	for (const char *line : {
		     "sched_switch: prev_comm=a",
		     "sched_preempt_delay_other: comm=a pid=1 reason=work",
		     "sched_preempt_delay_grant: comm=a pid=1 length=30000",
		     "sched_preempt_delay_grant: comm=a pid=1 length=-3 [ns]",
		     "sched_preempt_delay_grant: comm=a pid=x length=30000 [ns]",
		     "sched_preempt_delay_grant: comm=a length=30000 [ns]",
		     "sched_preempt_delay_grant: comm=sixteen_letters_ pid=1 length=30000 [ns]",
		     "sched_preempt_delay_end: comm=a pid=1 used=3 [ns]",
		     "sched_preempt_delay_end: comm=a pid=1 reason=yield used= [ns]",
		     "sched_preempt_delay_end: comm=a pid=1 reason=yield used=1e3 [ns]",
		     "sched_preempt_delay_end: comm=a pid=1 reason= used=3 [ns]",
		     "sched_preempt_delay_deny: comm=a pid=1",
		     "CPU:0 [LOST many EVENTS]",
		     "CPU:x [LOST 3 EVENTS]",
		     "CPU:0 buffer started",
	     }) {
		const std::string error = trace_error(good + line + "\n" + good);
		EXPECT_TRUE(contains(error, "line 2 of the trace")) << line << ": " << error;
		EXPECT_TRUE(contains(error, line)) << error;
	}
	EXPECT_TRUE(contains(trace_error("sched_preempt_delay_deny: comm=a"), "the middle of line 1"));
	EXPECT_TRUE(contains(trace_error(good + "sched_preempt_delay_deny: comm=a\n"), "line 2"));
	std::string endless = "sched_preempt_delay_deny: comm=";
	for (int i = 0; i < 20; ++i)
		endless += "\n";
	EXPECT_TRUE(contains(trace_error(endless), "line 1"));
}

TEST(HistogramText, HasBucketsUpToTheLongestGrant)
{
	HistogramReport report;
	report.extensions = read_trace(fixture("trace_pipe.txt"));
	report.seconds = 1.5;
	const std::string text = squeezed(to_text(report));
	for (const char *line :
	     {"recorded 1.50 s\n", "grants: 3 (2 of 30 us, 1 of 50 us)\n",
	      "denials: 4 (0x63 1, nonfair 1, work 2)\n", "lost events: 18\n",
	      "used, us expired yield all\n",
	      "3 to 6 0 2 2 ########################################\n",
	      "30 to 33 1 0 1 ####################\n",
	      "51 and more 0 0 0\n", "yield 2", "all 3",
	      "WARNING: events were lost"})
		EXPECT_TRUE(contains(text, line)) << line << " in\n" << text;
}

TEST(HistogramText, OfNothingSaysSo)
{
	const std::string text = to_text(HistogramReport{});
	EXPECT_TRUE(contains(text, "grants: 0\n")) << text;
	EXPECT_TRUE(contains(text, "No extension ended")) << text;
	EXPECT_FALSE(contains(text, "WARNING")) << text;
}

TEST(HistogramJson, HasEverythingByReason)
{
	HistogramReport report;
	report.extensions = read_trace(fixture("trace_pipe.txt"));
	report.scope = {Scope::process, 812, "postgres"};
	const json parsed = json::parse(to_json(report).dump());
	EXPECT_EQ(parsed["schema"], "slice-ext/stats-histogram");
	EXPECT_EQ(parsed["schema_version"], 1);
	EXPECT_EQ(parsed["id"], 812);
	EXPECT_EQ(parsed["grants"], 3);
	EXPECT_EQ(parsed["grants_by_length_ns"], (json{{"30000", 2}, {"50000", 1}}));
	EXPECT_EQ(parsed["denials"], 4);
	EXPECT_EQ(parsed["denials_by_reason"]["work"], 2);
	EXPECT_EQ(parsed["ends"]["count"], 3);
	EXPECT_EQ(parsed["ends"]["max_ns"], 31007);
	EXPECT_EQ(parsed["ends_by_reason"]["yield"]["histogram_us"], (json{{"4", 2}}));
	EXPECT_EQ(parsed["ends_by_reason"]["expired"]["p50_ns"], 31007);
	EXPECT_EQ(parsed["lost_events"], 18);
	EXPECT_TRUE(parsed["environment"].is_object());
}

TEST(Tracefs, TellsAbsentFromNotMounted)
{
	ScratchDir root;
	Refusal refusal = refusal_of([&] { find_tracefs(root.path()); });
	EXPECT_EQ(refusal.exit_status, kExitUnavailable);
	EXPECT_TRUE(contains(refusal.text, "CONFIG_")) << refusal.text;

	std::filesystem::create_directories(root.path() + "/sys/kernel/tracing");
	refusal = refusal_of([&] { find_tracefs(root.path()); });
	EXPECT_EQ(refusal.exit_status, kExitUnavailable);
	EXPECT_TRUE(contains(refusal.text, "mount -t tracefs")) << refusal.text;

	const std::string debug = root.path() + "/sys/kernel/debug/tracing";
	std::filesystem::create_directories(debug + "/instances");
	EXPECT_EQ(find_tracefs(root.path()), debug);
	const std::string usual = root.path() + "/sys/kernel/tracing";
	std::filesystem::create_directories(usual + "/instances");
	EXPECT_EQ(find_tracefs(root.path()), usual);
}

TEST(Tracefs, KernelWithoutTheEventsIsNamed)
{
	ScratchDir tracefs;
	std::filesystem::create_directories(tracefs.path() + "/instances");
	const Refusal refusal = refusal_of([&] { TraceInstance{tracefs.path()}; });
	EXPECT_EQ(refusal.exit_status, kExitUnavailable);
	EXPECT_TRUE(contains(refusal.text, "sched_preempt_delay_grant")) << refusal.text;
	EXPECT_TRUE(std::filesystem::is_empty(tracefs.path() + "/instances"));
}

// A directory where the kernel would have put files: it fails there, and cleans up.
TEST(Tracefs, InstancesOfTheDeadGoAndAFailedOneToo)
{
	ScratchDir tracefs;
	for (const char *event : {"grant", "deny", "end"})
		std::filesystem::create_directories(
			tracefs.path() + "/events/sched/sched_preempt_delay_" + event);
	const std::string instances = tracefs.path() + "/instances/";
	// Beyond the highest thread ID there can be.
	for (const char *name : {"slice-ext-1", "slice-ext-99999999", "slice-ext-", "slice-ext-mine",
	                         "slice-ext-0", "slice-ext--5", "other-99999999"})
		std::filesystem::create_directories(instances + name);
	EXPECT_THROW(TraceInstance{tracefs.path()}, std::system_error);
	EXPECT_FALSE(std::filesystem::exists(instances + "slice-ext-99999999"));
	for (const char *name : {"slice-ext-1", "slice-ext-", "slice-ext-mine", "slice-ext-0",
	                         "slice-ext--5", "other-99999999"})
		EXPECT_TRUE(std::filesystem::exists(instances + name)) << name;
	EXPECT_FALSE(std::filesystem::exists(instances + "slice-ext-" + std::to_string(getpid())));
}

namespace
{

// What write_output() does with this as standard output, in a process of its own.
int write_into(int descriptor)
{
	const pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		dup2(descriptor, STDOUT_FILENO);
		try {
			_exit(write_output("text\n") ? 1 : 2);
		} catch (const std::system_error &error) {
			_exit(error.code().value() == ENOSPC ? 3 : 4);
		}
	}
	int status = 0;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST(Output, TellsAReaderThatWentAwayFromAFailure)
{
	int ends[2];
	ASSERT_EQ(pipe(ends), 0);
	EXPECT_EQ(write_into(ends[1]), 1);
	char text[16];
	EXPECT_EQ(read(ends[0], text, sizeof text), 5);
	close(ends[0]);
	EXPECT_EQ(write_into(ends[1]), 2);
	close(ends[1]);
	const int full = open("/dev/full", O_WRONLY);
	EXPECT_EQ(write_into(full), 3);
	close(full);
}

TEST(Refusable, TurnsWhatIsThrownIntoAStatus)
{
	EXPECT_EQ(run_refusable("test", [] { return 5; }), 5);
	EXPECT_EQ(run_refusable("test", []() -> int { throw Refusal{kExitUnavailable, "no"}; }),
	          kExitUnavailable);
	EXPECT_EQ(run_refusable("test", []() -> int { throw std::runtime_error("no"); }), kExitFailed);
}

TEST(StatsCommand, BadCommandLinesSayWhatIsWrong)
{
	const std::vector<std::vector<std::string>> lines = {
		{"--interval", "0"},
		{"--interval", "0.04"},
		{"--interval", "-1"},
		{"--interval", "nan"},
		{"--interval", "inf"},
		{"--interval", "often"},
		{"--interval"},
		{"--count", "0"},
		{"--count", "-1"},
		{"--count", "1.5"},
		{"--pid", "0"},
		{"--pid", "-1"},
		{"--pid", "init"},
		{"--pid", "4194305"},
		{"--tid", "0"},
		{"--pid", "1", "--tid", "1"},
		{"--pid", "1", "--per-cpu"},
		{"--once", "--count", "2"},
		{"--once", "--interval", "2"},
		{"--duration", "1"},
		{"--histogram", "--duration", "0"},
		{"--histogram", "--duration", "nan"},
		{"--histogram", "--interval", "1"},
		{"--histogram", "--count", "1"},
		{"--histogram", "--once"},
		{"--histogram", "--per-cpu"},
		{"extra"},
		{"--nonsense"},
	};
	for (const auto &line : lines) {
		std::vector<std::string> arguments = {"stats"};
		arguments.insert(arguments.end(), line.begin(), line.end());
		ToolRun run(arguments);
		std::string shown;
		for (const std::string &word : line)
			shown += word + " ";
		EXPECT_EQ(run.wait(), kExitUsage) << shown;
		EXPECT_EQ(run.output(), "") << shown;
		EXPECT_FALSE(run.errors().empty()) << shown;
	}
}

TEST(StatsCommand, IsInTheHelp)
{
	ToolRun all({"--help"});
	EXPECT_EQ(all.wait(), kExitOk);
	EXPECT_TRUE(contains(all.output(), "stats"));
	ToolRun own({"stats", "--help"});
	EXPECT_EQ(own.wait(), kExitOk);
	EXPECT_TRUE(contains(own.output(), "--histogram"));
}

TEST(StatsCommand, WithoutCountersSaysWhyAndWhatToDo)
{
	if (access("/proc/preempt_delay", F_OK) == 0)
		GTEST_SKIP() << "this kernel counts";
	for (const std::vector<std::string> &arguments :
	     {std::vector<std::string>{"stats", "--once"},
	      std::vector<std::string>{"stats", "--once", "--pid", std::to_string(getpid())},
	      std::vector<std::string>{"stats", "--histogram", "--duration", "0.05"}}) {
		ToolRun run(arguments);
		EXPECT_EQ(run.wait(), kExitUnavailable) << run.errors();
		EXPECT_TRUE(contains(run.errors(), "next step: ")) << run.errors();
		EXPECT_EQ(run.output(), "");
	}
}
