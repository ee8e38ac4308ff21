// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "command_line.hpp"
#include "cpu_list.hpp"
#include "exit_status.hpp"
#include "load/options.hpp"
#include "parent_death.hpp"
#include "scratch_dir.hpp"

using namespace slice_ext::tool;
using namespace std::chrono_literals;

namespace
{

bool extension_here()
{
	ToolRun run({"status", "--json"});
	run.wait();
	const nlohmann::json report = nlohmann::json::parse(run.output());
	return report["enabling"] == "available";
}

std::string a_cpu()
{
	return std::to_string(allowed_cpus().front());
}

bool empty(const std::string &directory)
{
	return std::filesystem::is_empty(directory);
}

} // namespace

TEST(LoadOptions, KindsHaveNames)
{
	for (const char *name : {"abuser", "user", "contender", "hog", "build"})
		EXPECT_STREQ(load_kind_name(load_kind(name)), name);
	EXPECT_THROW(load_kind("hogs"), std::invalid_argument);
}

TEST(Load, RunsForItsTime)
{
	for (const char *kind : {"contender", "hog", "build"}) {
		ToolRun run({"load", kind, "--cpu", a_cpu(), "--seconds", "0.3", "--quiet"});
		EXPECT_EQ(run.wait(), kExitOk) << kind << run.errors();
		EXPECT_EQ(run.output() + run.errors(), "") << kind;
	}
}

TEST(Load, LockersAndProgramsAreCounted)
{
	for (const char *kind : {"contender", "build"}) {
		ToolRun run({"load", kind, "--cpu", a_cpu(), "--seconds", "0.5"});
		EXPECT_EQ(run.wait(), kExitOk) << run.errors();
		const std::string last = run.errors().substr(run.errors().rfind(": ") + 2);
		EXPECT_GT(std::stoll(last), 0) << run.errors();
	}
}

TEST(Load, AskersNeedAKernelThatCan)
{
	for (const char *kind : {"abuser", "user"}) {
		ToolRun run({"load", kind, "--cpu", a_cpu(), "--seconds", "0.1"});
		if (extension_here()) {
			EXPECT_EQ(run.wait(), kExitOk) << run.errors();
			continue;
		}
		EXPECT_EQ(run.wait(), kExitUnavailable);
		EXPECT_NE(run.errors().find("next step: "), std::string::npos) << run.errors();
	}
}

TEST(Load, RefusesWhatItDoesNotKnow)
{
	const std::vector<std::vector<std::string>> wrong = {{"load"},
	                                                     {"load", "hogs"},
	                                                     {"load", "hog", "--cpu", "8191"},
	                                                     {"load", "hog", "--threads", "0"},
	                                                     {"load", "hog", "--seconds", "nan"},
	                                                     {"load", "user", "--hold-us", "0"}};
	for (const auto &arguments : wrong) {
		ToolRun run(arguments);
		EXPECT_EQ(run.wait(), kExitUsage) << arguments.back();
		EXPECT_NE(run.errors() + run.output(), "") << arguments.back();
	}
}

TEST(Load, TermEndsItInOrder)
{
	const ScratchDir directory;
	for (const char *kind : {"contender", "hog", "build"}) {
		ToolRun run({"load", kind, "--cpu", a_cpu()}, [&] {
			setenv("TMPDIR", directory.path().c_str(), 1);
			signal(SIGTERM, SIG_IGN);
		});
		ASSERT_TRUE(run.wait_for_error_text("until a signal", 30s)) << run.errors();
		std::this_thread::sleep_for(300ms);
		EXPECT_EQ(empty(directory.path()), std::string(kind) != "build");
		run.send(SIGTERM);
		EXPECT_EQ(run.wait(), kExitOk) << run.errors();
		EXPECT_TRUE(empty(directory.path()));
	}
}

// A process in between starts the load and is killed; the load, which this process then inherits,
// ends too and leaves nothing behind.
TEST(Load, EndsWithItsParent)
{
	const ScratchDir directory;
	const ScratchDir of_the_run;
	ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	const pid_t between = fork();
	ASSERT_GE(between, 0);
	if (between == 0) {
		setenv("TMPDIR", of_the_run.path().c_str(), 1);
		ToolRun run({"load", "build", "--cpu", a_cpu()},
		            [&] { setenv("TMPDIR", directory.path().c_str(), 1); });
		const bool started = run.wait_for_error_text("until a signal", 30s);
		std::this_thread::sleep_for(300ms);
		if (started && !empty(directory.path()))
			raise(SIGKILL);
		_exit(1);
	}
	int status = 0;
	ASSERT_EQ(waitpid(between, &status, 0), between);
	ASSERT_TRUE(WIFSIGNALED(status)) << "the load did not start";
	const auto deadline = std::chrono::steady_clock::now() + 30s;
	pid_t orphan = 0;
	while ((orphan = waitpid(-1, &status, WNOHANG)) == 0 &&
	       std::chrono::steady_clock::now() < deadline)
		std::this_thread::sleep_for(10ms);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	ASSERT_GT(orphan, 0) << "the load outlives its parent";
	EXPECT_TRUE(empty(directory.path()));
}

TEST(ParentDeath, AnOrphanIsTold)
{
	const pid_t child = fork();
	ASSERT_GE(child, 0);
	if (child == 0)
		_exit(die_with_parent(SIGTERM, getppid() + 1) ? 1 : 0);
	int status = 0;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(WEXITSTATUS(status), 0);
}
