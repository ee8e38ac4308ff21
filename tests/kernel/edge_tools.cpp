// SPDX-License-Identifier: MIT
// A program with grants under strace and under gdb.
#include "edge.hpp"
#include "process.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 5;
constexpr int nobodys_fault = 127;

} // namespace

extern "C" {
// What gdb looks at, and where it stops: both by name.
void *edge_area;
__attribute__((noinline)) void edge_in_grant()
{
	asm volatile("" ::: "memory");
}
}

namespace
{

/** Sections that are granted, in this thread. @return those that it yielded, or -1 */
int sections()
{
	RseqArea area;
	if (opt_in(area) != 0)
		return -1;
	edge_area = area.base();
	int yielded = 0;
	for (int i = 0; i < rounds; ++i) {
		if (!get_grant(area))
			return -1;
		edge_in_grant();
		yielded += leave(area) == 1;
		if (area.ctrl() != ctrl_idle || sys_yield() != 0)
			return -1;
	}
	const Counters counters = Counters::of_this_thread();
	if (counters["ended_yield"] != yielded || counters["granted"] != counters.ended())
		return -1;
	return yielded;
}

/** The program under the tool: prints its yields, first of one thread, then of another. */
int program()
{
	int of_thread = -1;
	pin(test_cpu());
	const int of_main = sections();
	in_thread([&of_thread] { of_thread = sections(); });
	std::printf("yields %d %d\n", of_main, of_thread);
	return of_main >= 0 && of_thread >= 0 ? 0 : 1;
}

const ChildMode program_mode("program", program);

std::string text_of(const std::string &path)
{
	std::ifstream file(path);
	return {std::istreambuf_iterator<char>(file), {}};
}

int occurrences(const std::string &text, const std::string &what)
{
	int count = 0;
	for (std::size_t at = text.find(what); at != std::string::npos;
	     at = text.find(what, at + what.size()))
		++count;
	return count;
}

class EdgeTools : public Edge
{
      protected:
	void SetUp() override
	{
		char name[] = "/tmp/edge-tools-XXXXXX";
		ASSERT_NE(mkdtemp(name), nullptr);
		directory_ = name;
		Edge::SetUp();
	}
	void TearDown() override
	{
		Edge::TearDown();
		for (const char *name : {"output", "trace", "script"})
			unlink(file(name).c_str());
		rmdir(directory_.c_str());
	}
	std::string file(const char *name) const
	{
		return directory_ + "/" + name;
	}
	/** Runs the program by @p tool. */
	int run_by(std::vector<std::string> tool)
	{
		for (const std::string &word : command_of("program"))
			tool.push_back(word);
		Process process(tool, file("output"));
		const int status = process.wait();
		output_ = text_of(file("output"));
		return status;
	}
	/** The yields that the program printed. */
	void yields(int &of_main, int &of_thread) const
	{
		const std::size_t at = output_.find("yields ");
		ASSERT_NE(at, std::string::npos) << output_;
		ASSERT_EQ(std::sscanf(output_.c_str() + at, "yields %d %d", &of_main, &of_thread),
		          2);
	}

	std::string directory_;
	std::string output_;
};

TEST_F(EdgeTools, StraceSeesEachYieldAndSpoilsNone)
{
	const int status = run_by({"strace", "-f", "-o", file("trace")});
	if (status == nobodys_fault)
		GTEST_SKIP() << "no strace";
	ASSERT_EQ(status, 0) << output_;
	int of_main = 0;
	int of_thread = 0;
	yields(of_main, of_thread);
	EXPECT_GE(of_main, at_least(rounds));
	EXPECT_GE(of_thread, at_least(rounds));

	// Older ones do not know its name.
	const std::string trace = text_of(file("trace"));
	int ones = 0;
	int zeros = 0;
	std::size_t start = 0;
	for (std::size_t end; (end = trace.find('\n', start)) != std::string::npos;
	     start = end + 1) {
		const std::string line = trace.substr(start, end - start);
		if (line.find("syscall_0x1d7(") == std::string::npos &&
		    line.find("rseq_slice_yield(") == std::string::npos)
			continue;
		ones += line.find("= 0x1") != std::string::npos ||
		        line.find("= 1") != std::string::npos;
		zeros += line.find("= 0") != std::string::npos &&
		         line.find("= 0x1") == std::string::npos;
	}
	EXPECT_EQ(ones, of_main + of_thread);
	EXPECT_GE(zeros, 2 * rounds);
	EXPECT_EQ(machine()["ended_yield"], ones);
}

TEST_F(EdgeTools, GdbStopsInsideAGrantAndTheProgramGoesOn)
{
	{
		std::ofstream script(file("script"));
		script << "set startup-with-shell off\nset confirm off\nbreak edge_in_grant\nrun\n";
		for (int i = 0; i < 2 * rounds; ++i)
			script << "printf \"word %x\\n\", *(unsigned int *)(*(long *)&edge_area + "
			       << off_slice_ctrl << ")\n"
			       << "stepi\ncontinue\n";
	}
	// It copes without the rest of its Python, but would say so at each step.
	const int status = run_by({"gdb", "-iex", "set python print-stack none", "-nx", "-batch",
	                           "-x", file("script"), "--args"});
	if (status == nobodys_fault)
		GTEST_SKIP() << "no gdb";
	ASSERT_EQ(status, 0) << output_;
	int of_main = -1;
	int of_thread = -1;
	yields(of_main, of_thread);
	// Each grant was over when the thread went on.
	EXPECT_EQ(of_main, 0) << output_;
	EXPECT_EQ(of_thread, 0) << output_;
	EXPECT_EQ(occurrences(output_, "exited normally"), 1) << output_;
	EXPECT_EQ(occurrences(output_, "Breakpoint 1, "), 2 * rounds) << output_;
	EXPECT_GE(occurrences(output_, "word 100\n"), at_least(2 * rounds)) << output_;
	const Counters counters = machine();
	EXPECT_GE(counters["ended_switch"], at_least(2 * rounds));
	EXPECT_EQ(counters["ended_yield"], 0);
}

} // namespace
} // namespace slice_test
