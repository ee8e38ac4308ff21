// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <stdexcept>

#include "cpu_list.hpp"
#include "demo/options.hpp"
#include "text_file.hpp"

using namespace slice_ext::tool;

TEST(CpuList, Parses)
{
	EXPECT_EQ(parse_cpu_list("0"), (std::vector<int>{0}));
	EXPECT_EQ(parse_cpu_list("3,1,1"), (std::vector<int>{1, 3}));
	EXPECT_EQ(parse_cpu_list("0-2,8,10-10"), (std::vector<int>{0, 1, 2, 8, 10}));
}

TEST(CpuList, Refuses)
{
	for (const char *text : {"", " ", ",", "1,", ",1", "a", "1-", "-1", "1--2", "1-2-3", "3-1",
	                         "0x1", "1 ,2", "8192", "99999999999999999999", "0-99999999999"})
		EXPECT_THROW(parse_cpu_list(text), std::invalid_argument) << "'" << text << "'";
}

TEST(CpuList, FormatIsTheInverse)
{
	for (const char *text : {"0", "0-1", "0-3,8", "1,3,5", "0-2,4-6,9"})
		EXPECT_EQ(format_cpu_list(parse_cpu_list(text)), text);
	EXPECT_EQ(format_cpu_list({}), "");
}

TEST(CpuList, ThisProcessMayRunSomewhere)
{
	EXPECT_FALSE(allowed_cpus().empty());
}

TEST(DemoOptions, ChoosesCpusOutOfTheAllowed)
{
	const std::vector<int> allowed = {0, 1, 4};
	EXPECT_EQ(choose_cpus("", allowed), allowed);
	EXPECT_EQ(choose_cpus("0,4", allowed), (std::vector<int>{0, 4}));
	EXPECT_THROW(choose_cpus("0-4", allowed), std::invalid_argument);
}

TEST(DemoOptions, HoldIsATimeOrARange)
{
	EXPECT_EQ(parse_hold("20"), std::make_pair(20u, 20u));
	EXPECT_EQ(parse_hold("15-50"), std::make_pair(15u, 50u));
	EXPECT_EQ(parse_hold("1000"), std::make_pair(1000u, 1000u));
	for (const char *text : {"", "0", "1001", "-5", "50-15", "15-", "-", "x", "15-50-60",
	                         "20us", "1-1001", "99999999999999999999"})
		EXPECT_THROW(parse_hold(text), std::invalid_argument) << "'" << text << "'";
}

TEST(TextFile, IntegersAreWholeOrNothing)
{
	EXPECT_EQ(parse_integer(" 30\n"), 30);
	EXPECT_EQ(parse_integer("-1"), -1);
	for (const char *text : {"", " ", "1 2", "3x", "0x10", "9223372036854775808"})
		EXPECT_FALSE(parse_integer(text)) << "'" << text << "'";
}

TEST(TextFile, MissingFileIsNothing)
{
	EXPECT_FALSE(read_text("/nonexistent/file"));
	EXPECT_EQ(write_text("/nonexistent/file", "1"), ENOENT);
}
