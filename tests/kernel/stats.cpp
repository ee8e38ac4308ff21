// SPDX-License-Identifier: MIT
// slice-ext stats beside a load: it shows what the kernel counts and traces, and leaves nothing behind.
#include "child.hpp"
#include "fixture.hpp"
#include "process.hpp"
#include "timing.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t length_us = 30;
constexpr int exit_unavailable = 3;
constexpr int exit_no_permission = 4;
const std::string tracing = "/sys/kernel/tracing";
const std::string instances = tracing + "/instances";

/** Exec of the program as users start it: test programs have the C library's own
 * rseq registration switched off. */
std::vector<std::string> slice_ext(std::vector<std::string> arguments)
{
	const std::vector<std::string> start{"env", "-u", "GLIBC_TUNABLES", "slice-ext"};
	arguments.insert(arguments.begin(), start.begin(), start.end());
	return arguments;
}

/** A run of slice-ext stats --json. */
class Stats
{
      public:
	explicit Stats(std::vector<std::string> arguments)
		: process_(slice_ext(with_json(std::move(arguments))), file_.path)
	{
	}

	/** What it has printed so far, whole lines only. */
	std::vector<json> lines() const
	{
		std::vector<json> result;
		std::ifstream file(file_.path);
		for (std::string line; std::getline(file, line) && !file.eof();)
			result.push_back(json::parse(line));
		return result;
	}

	Process &process()
	{
		return process_;
	}

	/** Ends it, if it does not end by itself, and returns its last line. */
	json last(int signal_number = 0)
	{
		if (signal_number)
			process_.send(signal_number);
		EXPECT_EQ(process_.wait(), 0);
		const std::vector<json> all = lines();
		return all.empty() ? json() : all.back();
	}

	std::string instance() const
	{
		return instances + "/slice-ext-" + std::to_string(process_.pid());
	}
	bool recording() const
	{
		return read_line(instance() + "/tracing_on") == "1";
	}

      private:
	static std::vector<std::string> with_json(std::vector<std::string> arguments)
	{
		arguments.insert(arguments.begin(), {"stats", "--json"});
		return arguments;
	}

	struct TemporaryFile {
		TemporaryFile()
		{
			char name[] = "/tmp/stats.XXXXXX";
			const int fd = mkstemp(name);
			EXPECT_GE(fd, 0);
			close(fd);
			path = name;
		}
		~TemporaryFile()
		{
			unlink(path.c_str());
		}
		std::string path;
	} file_;
	Process process_;
};

bool until(const std::function<bool()> &condition)
{
	for (int i = 0; i < 2000; ++i) {
		if (condition())
			return true;
		sleep_ns(5 * ms);
	}
	return false;
}

/** Lockers whose sections are extended, and sleepers that preempt them. */
std::vector<std::string> load(const std::string &seconds)
{
	return slice_ext({"load", "user", "--quiet", "--sleepers", "1", "--hold-us", "20", "--cpu",
	                  std::to_string(test_cpu()), "--seconds", seconds});
}

/** Threads that ask always and never yield, so that all they get expires. */
std::vector<std::string> abuse(const std::string &threads, const std::string &seconds)
{
	return slice_ext({"load", "abuser", "--quiet", "--threads", threads, "--cpu",
	                  std::to_string(test_cpu()), "--seconds", seconds});
}

/** Stopped, it counts nothing more. */
void freeze(const Process &process)
{
	process.send(SIGSTOP);
	sleep_ns(30 * ms);
}

void expect_equal(const json &shown, const Counters &counted)
{
	for (const char *name : counter_names) {
		ASSERT_TRUE(shown.contains(name)) << name;
		EXPECT_EQ(shown[name], counted[name]) << name;
	}
}

json sum(const json &columns)
{
	std::map<std::string, std::int64_t> totals;
	for (const json &column : columns)
		for (const auto &[name, value] : column["totals"].items())
			totals[name] += value.get<std::int64_t>();
	return totals;
}

class StatsTest : public OneCpu
{
      protected:
	void SetUp() override
	{
		prepare(std::to_string(length_us));
	}
	void needs_tracing()
	{
		SLICE_EXT_NEEDS(access((tracing + "/events/sched/sched_preempt_delay_end").c_str(),
		                       F_OK) == 0
		                        ? ""
		                        : "the tracepoints of the scheduler on " + tracing);
	}
};

TEST_F(StatsTest, TotalsAndRatesAreTheKernels)
{
	Stats stats({"--interval", "0.1"});
	ASSERT_TRUE(until([&] { return !stats.lines().empty(); }));
	const Counters before = Counters::of_machine();
	EXPECT_EQ(Process(load("0.3")).wait(), 0);
	const Counters after = Counters::of_machine();
	const json last = stats.last(SIGINT);
	const std::vector<json> lines = stats.lines();
	const Counters happened = after - before;
	std::printf("%zu refreshes; granted %ld\n", lines.size(), happened["granted"]);

	ASSERT_GE(lines.size(), 3U);
	ASSERT_GT(happened["granted"], 10);
	EXPECT_TRUE(lines.front()["rates"].is_null());
	expect_equal(lines.front()["totals"], before);
	expect_equal(last["totals"], after);
	std::map<std::string, double> counted;
	double seconds = 0;
	for (const json &line : lines) {
		EXPECT_EQ(sum(line["per_cpu"]), line["totals"]);
		if (line["rates"].is_null())
			continue;
		const double interval = line["interval_seconds"];
		seconds += interval;
		for (const auto &[name, rate] : line["rates"].items())
			counted[name] += rate.get<double>() * interval;
	}
	for (const char *name : counter_names)
		EXPECT_NEAR(counted[name], static_cast<double>(happened[name]), 0.01) << name;
	EXPECT_NEAR(seconds,
	            static_cast<double>(last["monotonic_ns"].get<std::int64_t>() -
	                                lines.front()["monotonic_ns"].get<std::int64_t>()) /
	                    1e9,
	            1e-6);
}

TEST_F(StatsTest, AProcessIsTheSumOfItsThreads)
{
	Process user(load("60"));
	const std::vector<std::string> once{"--once", "--pid", std::to_string(user.pid())};
	Stats running({"--interval", "0.1", "--pid", std::to_string(user.pid())});
	ASSERT_TRUE(until([&] {
		const std::vector<json> lines = running.lines();
		return !lines.empty() && lines.back()["rates"].is_object() &&
		       lines.back()["rates"].value("granted", 0.0) > 0;
	}));
	// From here on only: the machine counts what threads did that have ended, too.
	freeze(user);
	const Counters before = Counters::of_machine();
	const json first = Stats(once).last();
	user.send(SIGCONT);
	sleep_ns(200 * ms);
	freeze(user);
	const Counters happened = Counters::of_machine() - before;
	ASSERT_GT(happened["granted"], 5);
	const json whole = Stats(once).last();
	for (const char *name : counter_names)
		EXPECT_EQ(whole["totals"][name].get<std::int64_t>() -
		                  first["totals"][name].get<std::int64_t>(),
		          happened[name])
			<< name;
	EXPECT_EQ(sum(whole["per_thread"]), whole["totals"]);
	EXPECT_GE(whole["per_thread"].size(), 4U);
	EXPECT_EQ(whole["name"], "slice-ext");
	EXPECT_EQ(whole["ended"], false);

	int askers = 0;
	for (const auto &[id, thread] : whole["per_thread"].items()) {
		const json alone = Stats({"--once", "--tid", id}).last();
		EXPECT_EQ(alone["totals"], thread["totals"]);
		askers += thread["totals"]["granted"] > 0;
	}
	EXPECT_GE(askers, 2);

	user.send(SIGKILL);
	user.wait();
	const json last = running.last();
	EXPECT_EQ(last["ended"], true);
	EXPECT_GT(last["totals"]["granted"], 0);
}

TEST_F(StatsTest, TheHistogramIsWhatTheCountersCount)
{
	needs_tracing();
	const std::string global = read_line(tracing + "/events/sched/enable").value_or("?");
	Stats stats({"--histogram"});
	ASSERT_TRUE(until([&] { return stats.recording(); }));
	EXPECT_EQ(read_line(tracing + "/events/sched/enable"), global) << "not its own to change";
	const Counters before = Counters::of_machine();
	EXPECT_EQ(Process(load("0.2")).wait(), 0);
	EXPECT_EQ(Process(abuse("2", "0.1")).wait(), 0);
	const Counters happened = Counters::of_machine() - before;
	const json report = stats.last(SIGINT);
	EXPECT_FALSE(fs::exists(stats.instance()));
	ASSERT_TRUE(report.is_object());
	std::printf("granted %ld, used at most %.1f us\n", happened["granted"],
	            report["ends"]["max_ns"].get<double>() / us);

	ASSERT_GT(happened["granted"], 10);
	EXPECT_EQ(report["lost_events"], 0);
	EXPECT_EQ(report["grants"], happened["granted"]);
	EXPECT_EQ(report["grants_by_length_ns"],
	          json({{std::to_string(length_us * us), happened["granted"]}}));
	EXPECT_EQ(report["denials"], happened.denied());
	for (const auto &[reason, count] : report["denials_by_reason"].items())
		EXPECT_EQ(count, happened["denied_" + reason]) << reason;
	EXPECT_EQ(report["ends"]["count"], happened.ended());
	std::int64_t in_buckets = 0;
	for (const auto &[reason, ends] : report["ends_by_reason"].items()) {
		EXPECT_EQ(ends["count"], happened["ended_" + reason]) << reason;
		for (const json &count : ends["histogram_us"])
			in_buckets += count.get<std::int64_t>();
	}
	EXPECT_EQ(in_buckets, happened.ended());
	ASSERT_TRUE(report["ends_by_reason"].contains("yield"));
	ASSERT_TRUE(report["ends_by_reason"].contains("expired"));
	EXPECT_GT(report["ends_by_reason"]["yield"]["p50_ns"], 0);
	EXPECT_GE(report["ends_by_reason"]["expired"]["p50_ns"], length_us * us);
	EXPECT_LE(report["ends"]["max_ns"], length_us * us + (deterministic() ? 10 * us : second));
}

TEST_F(StatsTest, TheHistogramOfAProcessIsItsOwn)
{
	needs_tracing();
	Process user(load("60"));
	Process abuser(abuse("1", "60"));
	const std::string id = std::to_string(user.pid());
	ASSERT_TRUE(until([&] {
		return Stats({"--once", "--pid", id}).last()["totals"].value("granted", 0) > 0;
	}));
	freeze(user);
	Stats stats({"--histogram", "--pid", id});
	ASSERT_TRUE(until([&] { return stats.recording(); }));
	const json before = Stats({"--once", "--pid", id}).last();
	const Counters machine_before = Counters::of_machine();
	user.send(SIGCONT);
	sleep_ns(200 * ms);
	freeze(user);
	abuser.terminate();
	abuser.wait();
	const Counters machine = Counters::of_machine() - machine_before;
	const json after = Stats({"--once", "--pid", id}).last();
	const json report = stats.last(SIGINT);
	const std::int64_t granted = after["totals"]["granted"].get<std::int64_t>() -
	                             before["totals"]["granted"].get<std::int64_t>();
	std::printf("granted %ld, of %ld in the machine\n", granted, machine["granted"]);
	ASSERT_GT(granted, 0);
	ASSERT_GT(machine["granted"], granted) << "nobody else was there to be left out";
	EXPECT_EQ(report["grants"], granted);
	EXPECT_EQ(report["ended"], false);
	user.send(SIGKILL);
}

TEST_F(StatsTest, TheHistogramFollowsWhatTheProcessStarts)
{
	needs_tracing();
	std::string command = "sleep 0.3; ";
	for (const std::string &word : load("0.2"))
		command += word + " ";
	const Counters before = Counters::of_machine();
	Process shell({"sh", "-c", command + "; true"});
	Stats stats({"--histogram", "--pid", std::to_string(shell.pid())});
	EXPECT_EQ(shell.wait(), 0);
	const json report = stats.last();
	const Counters happened = Counters::of_machine() - before;
	ASSERT_GT(happened["granted"], 5);
	EXPECT_EQ(report["grants"], happened["granted"]);
	EXPECT_EQ(report["ends"]["count"], happened.ended());
	EXPECT_EQ(report["ended"], true);
}

TEST_F(StatsTest, NothingIsLeftBehind)
{
	needs_tracing();
	for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
		Stats stats({"--histogram"});
		ASSERT_TRUE(until([&] { return stats.recording(); }));
		EXPECT_TRUE(stats.last(number).is_object());
		EXPECT_FALSE(fs::exists(stats.instance()));
	}

	// Two that are none of its business: of a process that lives, and of somebody else.
	const std::string of_init = instances + "/slice-ext-1";
	const std::string of_others = instances + "/slice-ext-test";
	ASSERT_EQ(mkdir(of_init.c_str(), 0700), 0);
	ASSERT_EQ(mkdir(of_others.c_str(), 0700), 0);
	Stats killed({"--histogram"});
	ASSERT_TRUE(until([&] { return killed.recording(); }));
	killed.process().send(SIGKILL);
	EXPECT_EQ(killed.process().wait(), 128 + SIGKILL);
	EXPECT_TRUE(fs::exists(killed.instance())) << "nothing to clean up";
	EXPECT_TRUE(Stats({"--histogram", "--duration", "0.05"}).last().is_object());
	EXPECT_FALSE(fs::exists(killed.instance()));
	EXPECT_EQ(rmdir(of_init.c_str()), 0);
	EXPECT_EQ(rmdir(of_others.c_str()), 0);
}

TEST_F(StatsTest, TwoAtATimeDoNotDisturbEachOther)
{
	needs_tracing();
	Stats one({"--histogram"});
	ASSERT_TRUE(until([&] { return one.recording(); }));
	EXPECT_TRUE(Stats({"--histogram", "--duration", "0.05"}).last().is_object());
	EXPECT_TRUE(one.recording());
	EXPECT_TRUE(one.last(SIGINT).is_object());
}

int run(const char *option)
{
	execlp("slice-ext", "slice-ext", "stats", option, "--json", "--duration", "0.05", nullptr);
	return 127;
}

TEST_F(StatsTest, EveryoneMaySeeTheCountersButTracingNeedsRoot)
{
	needs_tracing();
	const auto as_nobody = [](const char *option) {
		return in_child([option] {
			if (setuid(65534) != 0)
				return 126;
			return std::string(option) == "--histogram"
			               ? run(option)
			               : execlp("slice-ext", "slice-ext", "stats", option, nullptr);
		});
	};
	EXPECT_EQ(as_nobody("--once"), 0);
	EXPECT_EQ(as_nobody("--histogram"), exit_no_permission);
}

TEST_F(StatsTest, TellsThatTracefsIsNotMounted)
{
	needs_tracing();
	const Outcome outcome = in_child([] {
		if (unshare(CLONE_NEWNS) != 0 ||
		    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
		    umount2("/sys/kernel/debug", MNT_DETACH) != 0 ||
		    umount2("/sys/kernel/tracing", MNT_DETACH) != 0)
			return 126;
		return run("--histogram");
	});
	EXPECT_EQ(outcome, exit_unavailable);
}

TEST_F(StatsTest, AReaderThatGoesAwayIsNoError)
{
	const std::string file = "/tmp/stats-reader";
	Process pipe({"sh", "-c",
	              "{ slice-ext stats --interval 0.05 2>&1 >&3; echo \"status $?\"; } 3>&1 >" +
	                      file + " | head -n 1 >/dev/null"});
	EXPECT_EQ(pipe.wait(), 0);
	EXPECT_EQ(read_line(file), "status 0");
	unlink(file.c_str());
}

} // namespace
} // namespace slice_test
