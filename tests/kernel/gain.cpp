// SPDX-License-Identifier: MIT
/* What the feature is for: the demo's sections per second, and who loses the CPU inside one. */
#include "needs.hpp"
#include "process.hpp"
#include "timing.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <unistd.h>

namespace slice_test {
namespace {

using nlohmann::json;

/** Sections per second with the extension, at least, as a multiple of those without. */
constexpr double gain = 1.4;

/** SLICE_EXT_DELAY_US: in emulation by several host threads the interrupt and the grant alone take
 * a good part of 30 us, so that the delay is over before the section is. */
const char *delay_us()
{
	const char *text = std::getenv("SLICE_EXT_DELAY_US");
	return text ? text : "30";
}

json demo()
{
	char path[] = "/tmp/demo.XXXXXX";
	int fd = mkstemp(path);
	if (fd < 0)
		throw std::runtime_error("cannot create a temporary file in /tmp");
	close(fd);
	/* Test programs run with libc's own registration off; users do not. */
	Process process({"env", "-u", "GLIBC_TUNABLES", "slice-ext", "demo", "--json", "--quiet",
			 "--seconds", "1", "--rounds", "2", "--delay-us", delay_us()},
			path);
	int status = process.wait();
	std::ifstream file(path);
	json report = json::parse(file, nullptr, false);
	unlink(path);
	EXPECT_EQ(status, 0) << report;
	return report;
}

TEST(Gain, TheDemoShowsIt)
{
	SLICE_EXT_NEEDS(need::control());
	const json report = demo();
	ASSERT_TRUE(report.is_object() && report["with"].is_object());
	const json &with = report["with"], &without = report["without"];
	const double on = with["sections_per_second"], off = without["sections_per_second"];
	const long preempted_on = with["holder_preempted"]["by_ordinary"],
		   preempted_off = without["holder_preempted"]["by_ordinary"];
	std::printf("sections per second %.0f -> %.0f (x%.2f), holder preempted %ld -> %ld, "
		    "grants %ld, yields %ld, expiries %ld\n",
		    off, on, on / off, preempted_off, preempted_on, with["grants"].get<long>(),
		    with["yields"].get<long>(), with["expiries"].get<long>());

	EXPECT_GT(with["grants"], 0);
	EXPECT_EQ(without["grants"], 0);
	ASSERT_GT(preempted_off, 50) << "nobody lost the CPU in a section, nothing is shown";
	EXPECT_GE(on, gain * off);
	/* A busy host takes the CPU from an emulated one for longer than any delay. */
	EXPECT_LE(preempted_on, preempted_off / (deterministic() ? 20 : 2));
}

} // namespace
} // namespace slice_test
