// SPDX-License-Identifier: MIT
// The program as a user runs it, on whatever kernel this is.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <slice_ext/abi.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "exit_status.hpp"
#include "text_file.hpp"

using namespace slice_ext::tool;
using namespace std::chrono_literals;
using nlohmann::json;

namespace
{

// Whether this machine can do it: then status and demo have to say so, and otherwise why not.
bool extension_here()
{
	ToolRun run({"status", "--json"});
	run.wait();
	return json::parse(run.output())["available"];
}

std::vector<std::string> short_demo(std::vector<std::string> more)
{
	std::vector<std::string> arguments = {"demo", "--seconds", "0.5"};
	arguments.insert(arguments.end(), more.begin(), more.end());
	return arguments;
}

void without_realtime_rights()
{
	const rlimit none = {0, 0};
	setrlimit(RLIMIT_RTPRIO, &none);
	prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0);
}

// A sandbox that answers EPERM to rseq(2), to the prctl and to the yield.
void in_sandbox()
{
	const auto equal = [](std::uint32_t value, unsigned char otherwise) {
		return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, otherwise, value};
	};
	const auto load = [](std::size_t offset) {
		return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0,
		                   static_cast<std::uint32_t>(offset)};
	};
	const sock_filter refuse = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM};
	sock_filter program[] = {
		load(offsetof(seccomp_data, nr)),
		equal(SYS_rseq, 1),
		refuse,
		equal(SLICE_EXT_ABI_NR_YIELD, 1),
		refuse,
		equal(SYS_prctl, 3),
		load(offsetof(seccomp_data, args)),
		equal(SLICE_EXT_ABI_PR, 1),
		refuse,
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
	};
	const sock_fprog filter = {sizeof program / sizeof program[0], program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		_exit(126);
}

void without_libc_rseq()
{
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
}

void into_full_device()
{
	const int full = open("/dev/full", O_WRONLY);
	if (full < 0 || dup2(full, STDOUT_FILENO) < 0)
		_exit(126);
}

} // namespace

TEST(Cli, HelpAndVersionAreNoErrors)
{
	for (const std::vector<std::string> &arguments : std::vector<std::vector<std::string>>{
		     {"--help"}, {"--version"}, {"status", "--help"}, {"demo", "--help"}}) {
		ToolRun run(arguments);
		EXPECT_EQ(run.wait(), kExitOk);
		EXPECT_FALSE(run.output().empty());
		EXPECT_EQ(run.errors(), "");
	}
}

TEST(Cli, BadCommandLinesSayWhatIsWrong)
{
	const std::vector<std::vector<std::string>> lines = {
		{},
		{"nonsense"},
		{"status", "extra"},
		{"status", "--nonsense"},
		{"demo", "--seconds", "0"},
		{"demo", "--seconds", "-1"},
		{"demo", "--seconds", "nan"},
		{"demo", "--seconds", "soon"},
		{"demo", "--seconds"},
		{"demo", "--rounds", "0"},
		{"demo", "--mode", "maybe"},
		{"demo", "--cpus", "1-"},
		{"demo", "--cpus", "8191"},
		{"demo", "--cpus", "a"},
		{"demo", "--lockers", "0"},
		{"demo", "--lockers", "65"},
		{"demo", "--sleepers", "-1"},
		{"demo", "--hold-us", "0"},
		{"demo", "--hold-us", "1001"},
		{"demo", "--hold-us", "50-15"},
		{"demo", "--pause-us", "-3"},
		{"demo", "--delay-us", "101"},
		{"demo", "--delay-us", "-1"},
		{"demo", "--rt-prio", "50"},
		{"demo", "--rt", "--rt-prio", "100"},
		{"demo", "--rt", "--rt-interval-us", "1"},
		{"demo", "--abuse", "--extend-while-waiting"},
	};
	for (const auto &line : lines) {
		ToolRun run(line);
		std::string shown;
		for (const std::string &word : line)
			shown += word + " ";
		EXPECT_EQ(run.wait(), kExitUsage) << shown;
		EXPECT_EQ(run.output(), "") << shown;
		EXPECT_FALSE(run.errors().empty()) << shown;
	}
}

TEST(Cli, OutputThatCannotBeWrittenIsAFailure)
{
	ToolRun run({"status", "--json"}, into_full_device);
	EXPECT_EQ(run.wait(), kExitFailed);
	EXPECT_NE(run.errors(), "");
}

TEST(Status, AnswersInTextAndJson)
{
	ToolRun text({"status"});
	ToolRun structured({"status", "--json"});
	const int status = text.wait();
	EXPECT_EQ(structured.wait(), status);
	EXPECT_TRUE(status == kExitOk || status == kExitUnavailable) << status;
	for (const char *word :
	     {"kernel ", "feature ", "at boot ", "longest extension ", "rseq area ",
	      "real-time guard ", "counters ", "timers ", "verdict: ", "next step: "})
		EXPECT_NE(text.output().find(word), std::string::npos) << word;

	const json report = json::parse(structured.output());
	EXPECT_EQ(report["schema"], "slice-ext/status");
	EXPECT_EQ(report["schema_version"], 1);
	EXPECT_EQ(report["available"], status == kExitOk);
	EXPECT_FALSE(report["reason"].get<std::string>().empty());
	EXPECT_FALSE(report["next_step"].get<std::string>().empty());
	EXPECT_TRUE(report["rseq"]["area_size"].is_number_unsigned());
	EXPECT_TRUE(report["environment"]["kernel_release"].is_string());
}

TEST(Status, SurvivesASandbox)
{
	ToolRun run({"status", "--json"}, in_sandbox);
	EXPECT_EQ(run.wait(), kExitUnavailable) << run.errors();
	const json report = json::parse(run.output());
	EXPECT_EQ(report["available"], false);
	EXPECT_EQ(report["reason"].get<std::string>().find("blocked"), 0u) << report["reason"];
}

TEST(Status, SurvivesALibcWithoutRseq)
{
	ToolRun run({"status", "--json"}, without_libc_rseq);
	const int status = run.wait();
	EXPECT_TRUE(status == kExitOk || status == kExitUnavailable) << status;
	EXPECT_EQ(json::parse(run.output())["rseq"]["owner"], "none");
}

TEST(Demo, RunsOnThisKernelAndSaysSo)
{
	ToolRun run(short_demo({"--json"}));
	EXPECT_EQ(run.wait(), kExitOk) << run.errors();
	EXPECT_NE(run.errors().find("without extension"), std::string::npos) << "no progress shown";
	const json report = json::parse(run.output());
	EXPECT_EQ(report["schema"], "slice-ext/demo");
	EXPECT_EQ(report["exit_status"], kExitOk);
	EXPECT_GT(report["without"]["sections"], 0);
	EXPECT_EQ(report["without"]["lock_wait"]["count"], report["without"]["sections"]);
	EXPECT_GE(report["without"]["seconds"], 0.5);
	EXPECT_EQ(report["with"].is_null(), !extension_here());
	EXPECT_EQ(report["unavailable"].is_null(), extension_here());
}

TEST(Demo, PrintsOneTable)
{
	ToolRun run(short_demo({"--quiet", "--rounds", "2"}));
	EXPECT_EQ(run.wait(), kExitOk) << run.errors();
	EXPECT_EQ(run.errors(), "");
	const std::string text = run.output();
	for (const char *word :
	     {"without", "with", "change", "sections per second", "lock wait, average",
	      "lock wait, 99.9 %", "lock wait, worst", "holder preempted", "grants",
	      "ended by yield", "ended by expiry", "denials"})
		EXPECT_NE(text.find(word), std::string::npos) << word;
	if (!extension_here()) {
		EXPECT_NE(text.find("next step: "), std::string::npos);
	}
}

TEST(Demo, ModeOnIsRefusedWhereThereIsNone)
{
	if (extension_here())
		GTEST_SKIP() << "this kernel has it";
	ToolRun run(short_demo({"--mode", "on"}));
	EXPECT_EQ(run.wait(), kExitUnavailable);
	EXPECT_NE(run.errors().find("next step: "), std::string::npos);
}

TEST(Demo, HoldsWhatItIsToldTo)
{
	ToolRun run(short_demo({"--json", "--mode", "off", "--cpus", "0", "--lockers", "1",
	                        "--sleepers", "0", "--hold-us", "100", "--pause-us", "0"}));
	ASSERT_EQ(run.wait(), kExitOk) << run.errors();
	const json hold = json::parse(run.output())["without"]["lock_hold"];
	EXPECT_GE(hold["p50_ns"], 80000);
}

TEST(Demo, RefusesRealTimeWithoutTheRight)
{
	ToolRun run(short_demo({"--rt"}), without_realtime_rights);
	EXPECT_EQ(run.wait(), kExitNoPermission);
	EXPECT_NE(run.errors().find("SCHED_FIFO"), std::string::npos) << run.errors();
	EXPECT_EQ(run.output(), "");
}

TEST(Demo, MeasuresARealTimeThread)
{
	ToolRun run(short_demo({"--json", "--rt", "--mode", "off"}));
	const int status = run.wait();
	if (status == kExitNoPermission)
		GTEST_SKIP() << run.errors();
	ASSERT_EQ(status, kExitOk) << run.errors();
	const json latency = json::parse(run.output())["without"]["rt_latency"];
	EXPECT_GT(latency["count"], 10);
	EXPECT_GE(latency["max_ns"], latency["p50_ns"]);
}

TEST(Demo, RunsWithoutAnRseqArea)
{
	ToolRun run(short_demo({"--json", "--mode", "off"}), without_libc_rseq);
	ASSERT_EQ(run.wait(), kExitOk) << run.errors();
	EXPECT_TRUE(json::parse(run.output())["without"]["holder_preempted"].is_null());
}

TEST(Demo, RunsInASandbox)
{
	ToolRun run(short_demo({"--json"}), in_sandbox);
	ASSERT_EQ(run.wait(), kExitOk) << run.errors();
	const json report = json::parse(run.output());
	EXPECT_FALSE(report["unavailable"].is_null());
	EXPECT_GT(report["without"]["sections"], 0);
}

TEST(Demo, SignalsEndItInOrder)
{
	const std::string before = read_text(SLICE_EXT_ABI_SYSCTL).value_or("none");
	const bool can_set = access(SLICE_EXT_ABI_SYSCTL, W_OK) == 0;
	for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
		std::vector<std::string> arguments = {"demo", "--seconds", "600", "--mode", "off"};
		if (can_set)
			arguments.insert(arguments.end(), {"--delay-us", "7"});
		ToolRun run(arguments, [number] { signal(number, SIG_DFL); });
		ASSERT_TRUE(run.wait_for_error_text("sections/s", 60s)) << run.errors();
		if (can_set) {
			EXPECT_EQ(parse_integer(*read_text(SLICE_EXT_ABI_SYSCTL)), 7);
		}
		run.send(number);
		EXPECT_EQ(run.wait(), kExitOk);
		EXPECT_NE(run.output().find("sections per second"), std::string::npos);
		EXPECT_NE(run.output().find("Ended early"), std::string::npos);
		EXPECT_EQ(read_text(SLICE_EXT_ABI_SYSCTL).value_or("none"), before);
	}
}

TEST(Demo, AReaderThatGoesAwayDoesNotEndItHalfway)
{
	ToolRun run(short_demo({"--mode", "off"}), [] {
		int ends[2];
		if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(126);
		close(ends[0]);
		close(ends[1]);
	});
	EXPECT_EQ(run.wait(), kExitFailed);
	EXPECT_NE(run.errors().find("could not be written"), std::string::npos) << run.errors();
}
