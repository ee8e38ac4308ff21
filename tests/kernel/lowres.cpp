// SPDX-License-Identifier: MIT
// Without high-resolution timers there is no bound, so there is no extension.
#include "contest.hpp"
#include "fixture.hpp"

#include <gtest/gtest.h>

namespace slice_test
{
namespace
{

std::string low_resolution()
{
	if (std::string reason = need::control(); !reason.empty())
		return reason;
	if (read_line("/proc/cmdline").value_or("").find("highres=off") == std::string::npos)
		return "not booted with highres=off";
	return {};
}

class LowResolution : public OneCpu
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(low_resolution());
		prepare("100");
	}
};

TEST_F(LowResolution, RefusesEveryRequest)
{
	const Contest result = contest(Demand::always, {}, 100 * ms);
	describe("highres=off", result);
	ASSERT_EQ(result.error, 0);
	EXPECT_EQ(result.counters["granted"], 0);
	EXPECT_GT(result.counters["denied_hres"], 10);
	EXPECT_EQ(result.counters["requests"],
	          result.counters["denied_hres"] + result.counters["denied_work"]);
}

} // namespace
} // namespace slice_test
