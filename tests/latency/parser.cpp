// SPDX-License-Identifier: MIT
/* Histogram files that must not be believed. */
#include "cyclictest.hpp"

#include <gtest/gtest.h>

#include <string>

namespace slice_test {
namespace {

const std::string buckets = "# Histogram\n"
			    "000003 000010\n"
			    "000004 000005\n"
			    "000005 000000\n";
const std::string summary = "# Total: 000000015\n"
			    "# Min Latencies: 00003\n"
			    "# Avg Latencies: 00003\n"
			    "# Max Latencies: 00450\n"
			    "# Histogram Overflows: 00001\n"
			    "# Histogram Overflow at cycle number:\n"
			    "# Thread 0: 00007\n";

TEST(HistogramFile, CountsWhatLiesAboveTheHistogram)
{
	WakeUpLatencies found = parse_histogram_file(buckets + summary, "file");

	EXPECT_EQ(found.histogram, (std::map<int, long>{{3, 10}, {4, 5}}));
	EXPECT_EQ(found.samples, 16);
	EXPECT_EQ(found.overflow, 1);
	EXPECT_EQ(found.best, 3);
	EXPECT_EQ(found.average, 3);
	EXPECT_EQ(found.worst, 450);
}

std::string refusal(const std::string &text)
{
	try {
		parse_histogram_file(text, "file");
	} catch (const CyclictestError &error) {
		return error.what();
	}
	return "believed";
}

TEST(HistogramFile, RefusesAnEmptyFile)
{
	EXPECT_NE(refusal("").find("file: empty or truncated"), std::string::npos);
}

TEST(HistogramFile, RefusesATruncatedFile)
{
	EXPECT_NE(refusal(buckets).find("truncated"), std::string::npos);
	EXPECT_NE(refusal("000003 000010\n" + summary).find("buckets hold 10"), std::string::npos);
}

TEST(HistogramFile, RefusesTwoThreads)
{
	EXPECT_NE(refusal("000003 000010 000011\n" + summary).find("more than one thread"),
		  std::string::npos);
}

TEST(HistogramFile, RefusesARunWithoutSamples)
{
	EXPECT_NE(refusal("000003 000000\n# Total: 000000000\n# Min Latencies: 00000\n"
			  "# Avg Latencies: 00000\n# Max Latencies: 00000\n"
			  "# Histogram Overflows: 00000\n")
			  .find("no samples"),
		  std::string::npos);
}

} // namespace
} // namespace slice_test
