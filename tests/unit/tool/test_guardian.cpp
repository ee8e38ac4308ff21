// SPDX-License-Identifier: MIT
// Whatever is killed and whenever: files hold what they held, and no process is left.
#include <gtest/gtest.h>

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "latency/child.hpp"
#include "latency/guardian.hpp"
#include "scratch_dir.hpp"
#include "text_file.hpp"

using namespace slice_ext::tool;
using namespace slice_ext::tool::latency;

namespace
{

using std::chrono::milliseconds;

// A sleep nobody else has.
std::string marked_sleep()
{
	return "2718" + std::to_string(getpid() % 100000);
}

int count_processes(const std::string &word)
{
	int count = 0;
	DIR *proc = opendir("/proc");
	while (const dirent *entry = readdir(proc)) {
		const auto text = read_text(std::string("/proc/") + entry->d_name + "/cmdline");
		// "sleep", NUL, the seconds
		if (text && text->find(std::string("sleep") + '\0' + word) != std::string::npos)
			++count;
	}
	closedir(proc);
	return count;
}

template <typename Condition> bool eventually(Condition condition)
{
	for (int i = 0; i < 300; ++i) {
		if (condition())
			return true;
		std::this_thread::sleep_for(milliseconds(10));
	}
	return false;
}

class GuardianTest : public testing::Test
{
      protected:
	void SetUp() override
	{
		first_ = scratch_.path() + "/first";
		second_ = scratch_.path() + "/second";
		std::ofstream(first_) << "1\n";
		std::ofstream(second_) << "2\n";
	}

	bool restored() const
	{
		return read_text(first_) == "1\n" && read_text(second_) == "2\n" &&
		       count_processes(marked_) == 0;
	}

	// What a run does, over and over: settings, load, settings back.
	[[noreturn]] void work()
	{
		setpgid(0, 0);
		Guardian guardian;
		while (true) {
			guardian.set(first_, "10");
			guardian.set(second_, "20");
			guardian.set(first_, "11");
			Child load({"sh", "-c", "sleep " + marked_ + " & sleep " + marked_},
			           {guardian.make_cgroup(), ""},
			           [&](pid_t group) { guardian.watch(group); });
			std::this_thread::sleep_for(milliseconds(5));
			guardian.restore();
		}
	}

	ScratchDir scratch_;
	std::string first_, second_;
	const std::string marked_ = marked_sleep();
};

} // namespace

TEST_F(GuardianTest, RestoresInOrder)
{
	Guardian guardian;
	guardian.set(first_, "10");
	guardian.set(first_, "11");
	guardian.set(second_, "20");
	EXPECT_EQ(read_text(first_), "11");
	EXPECT_EQ(guardian.restore(), "");
	EXPECT_TRUE(restored());
	EXPECT_TRUE(guardian.alive());
}

TEST_F(GuardianTest, RefusesAFileThatCannotBeChangedAndChangesNothing)
{
	Guardian guardian;
	EXPECT_THROW(guardian.set(scratch_.path() + "/missing", "1"), std::system_error);
	EXPECT_NE(access((scratch_.path() + "/missing").c_str(), F_OK), 0);
}

TEST_F(GuardianTest, RestoresWhenTheRunIsKilledAtAnyMoment)
{
	unsigned changed = 0;
	for (int i = 0; i < 40; ++i) {
		const pid_t run = fork();
		if (run == 0)
			work();
		std::this_thread::sleep_for(milliseconds(1 + i));
		changed += read_text(first_) != "1\n";
		// The process, and the whole of its group.
		kill(i % 2 ? -run : run, SIGKILL);
		kill(run, SIGKILL);
		waitpid(run, nullptr, 0);
		ASSERT_TRUE(eventually([&] { return restored(); }))
			<< "killed after " << 1 + i << " ms: " << *read_text(first_)
			<< *read_text(second_) << count_processes(marked_) << " processes";
	}
	EXPECT_GT(changed, 10u) << "hardly any kill met a change";
}

TEST_F(GuardianTest, WhenItIsKilledItselfTheRunRestores)
{
	Guardian guardian;
	guardian.set(first_, "10");
	Child load({"sleep", marked_}, {}, [&](pid_t group) { guardian.watch(group); });
	kill(guardian.pid(), SIGKILL);
	ASSERT_TRUE(eventually([&] { return !guardian.alive(); }));
	// Still of use.
	guardian.set(second_, "20");
	EXPECT_EQ(guardian.restore(), "");
	EXPECT_TRUE(eventually([&] {
		load.ended();
		return restored();
	}));
}

TEST(Child, SaysWhyItCouldNotRun)
{
	try {
		Child child({"/no/such/program"}, {}, [](pid_t) {});
		FAIL() << "it ran";
	} catch (const std::system_error &error) {
		EXPECT_EQ(error.code().value(), ENOENT);
		EXPECT_NE(std::string(error.what()).find("/no/such/program"), std::string::npos);
	}
}

TEST(Child, TellsItsStatus)
{
	Child child({"sh", "-c", "exit 3"}, {}, [](pid_t) {});
	ASSERT_TRUE(eventually([&] { return child.ended(); }));
	EXPECT_EQ(describe_status(child.status()), "exit status 3");
}
