// SPDX-License-Identifier: MIT
// Results of cyclictest that must not be believed, and those that must.
#include <gtest/gtest.h>

#include <string>

#include "latency/cyclictest.hpp"

using namespace slice_ext::tool::latency;

namespace
{

CyclictestRun two_loops(std::uint64_t loops = 4)
{
	CyclictestRun run;
	run.cpus = {0};
	run.loops = loops;
	run.histogram_us = 100;
	return run;
}

// As rt-tests 2.4 writes it, with its stray colons.
std::string file(const std::string &histogram, const std::string &cycles, const std::string &max,
                 const std::string &threads = "1", const std::string &arguments = " --nsecs")
{
	return R"({"file_version": 1, "cmdline:": "cyclictest)" + arguments +
	       R"(", "rt_test_version:": "2.40", "return_code": 0, "num_threads": )" + threads +
	       R"(, "resolution_in_ns": 0, "thread": {"0": {"histogram": {)" + histogram +
	       R"(}, "cycles": )" + cycles + R"(, "min": 3000, "max": )" + max +
	       R"(, "avg": 4000.5, "cpu": 0, "node": 0}}})";
}

std::string refusal(const std::string &text)
{
	try {
		parse_cyclictest(text, "some.json", two_loops());
	} catch (const CyclictestError &error) {
		return error.what();
	}
	return "believed";
}

} // namespace

TEST(Cyclictest, IsReadAsItIs)
{
	const auto threads =
		parse_cyclictest(file(R"("3000": 3, "5000": 1)", "4", "5000"), "f", two_loops());
	ASSERT_EQ(threads.size(), 1u);
	EXPECT_EQ(threads[0].cycles, 4u);
	EXPECT_EQ(threads[0].overflow, 0u);
	EXPECT_EQ(threads[0].max, 5000u);
	EXPECT_EQ(threads[0].bucket_width, 1u);
	EXPECT_EQ(threads[0].histogram,
	          (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{3000, 3}, {5000, 1}}));
}

TEST(Cyclictest, OfLaterVersionsHasNoStrayColons)
{
	std::string text = file(R"("3000": 4)", "4", "3000");
	for (const char *key : {"cmdline:", "rt_test_version:"})
		text.replace(text.find(key), std::string(key).size(),
		             std::string(key, std::string(key).size() - 1));
	EXPECT_EQ(parse_cyclictest(text, "f", two_loops()).size(), 1u);
}

TEST(Cyclictest, InMicrosecondsIsScaled)
{
	const auto threads = parse_cyclictest(file(R"("3": 4)", "4", "3", "1", ""), "f", two_loops());
	EXPECT_EQ(threads[0].histogram[0].first, 3000u);
	EXPECT_EQ(threads[0].bucket_width, 1000u);
}

TEST(Cyclictest, TellsOfNoOverflowSoItIsWhatTheBucketsMiss)
{
	const auto threads =
		parse_cyclictest(file(R"("3000": 3)", "4", "450000"), "f", two_loops());
	EXPECT_EQ(threads[0].overflow, 1u);
	EXPECT_EQ(threads[0].max, 450000u);
	EXPECT_EQ(threads[0].histogram_end, 100000u);
	EXPECT_NE(refusal(file(R"("3000": 3)", "4", "3000")).find("none was above"),
	          std::string::npos);
}

TEST(Cyclictest, InterruptedEndsWithCodeZeroAndTooFewCycles)
{
	EXPECT_NE(refusal(file(R"("3000": 3)", "3", "3000"))
	                  .find("some.json: thread 0: was interrupted after 3 of 4 cycles"),
	          std::string::npos);
}

TEST(Cyclictest, IsRefusedWhenItsNumbersDoNotAddUp)
{
	EXPECT_NE(refusal(file(R"("3000": 9)", "4", "3000")).find("hold 9 samples of 4"),
	          std::string::npos);
	EXPECT_NE(refusal(file(R"("x": 4)", "4", "3000")).find("bucket \"x\""), std::string::npos);
}

TEST(Cyclictest, IsRefusedWhenEmptyTruncatedOrSomethingElse)
{
	EXPECT_EQ(refusal(""), "some.json: is empty");
	const std::string whole = file(R"("3000": 4)", "4", "3000");
	EXPECT_NE(refusal(whole.substr(0, whole.size() / 2)).find("truncated"), std::string::npos);
	EXPECT_NE(refusal("{}").find("not written by cyclictest"), std::string::npos);
	EXPECT_NE(refusal("[1]").find("not written by cyclictest"), std::string::npos);
}

TEST(Cyclictest, IsRefusedWithoutThreads)
{
	EXPECT_NE(refusal(file(R"("3000": 4)", "4", "3000", "0")).find("has no threads"),
	          std::string::npos);
	EXPECT_NE(refusal(file(R"("3000": 4)", "4", "3000", "2")).find("1 of 2 threads"),
	          std::string::npos);
}

TEST(Cyclictest, IsRefusedWhenItFailed)
{
	std::string text = file(R"("3000": 4)", "4", "3000");
	text.replace(text.find("\"return_code\": 0"), 16, "\"return_code\": 1");
	EXPECT_NE(refusal(text).find("return code 1"), std::string::npos);
}

TEST(Cyclictest, ThatLeftNothingIsNamed)
{
	try {
		read_cyclictest("/no/such/file.json", two_loops());
		FAIL() << "believed";
	} catch (const CyclictestError &error) {
		EXPECT_NE(std::string(error.what()).find("/no/such/file.json"), std::string::npos);
	}
}

TEST(Cyclictest, IsAskedForNanosecondsOnTheGivenCpus)
{
	CyclictestRun run = two_loops();
	run.cpus = {1, 2, 3};
	const auto command = cyclictest_command(run, "/tmp/x.json");
	const auto has = [&](const char *word) {
		return std::find(command.begin(), command.end(), word) != command.end();
	};
	EXPECT_TRUE(has("--nsecs"));
	EXPECT_TRUE(has("--threads=3"));
	EXPECT_TRUE(has("--affinity=1-3"));
	EXPECT_TRUE(has("--json=/tmp/x.json"));
}
