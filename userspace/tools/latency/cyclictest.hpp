// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_CYCLICTEST_HPP
#define SLICE_EXT_TOOL_LATENCY_CYCLICTEST_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "latency/record.hpp"

namespace slice_ext::tool::latency
{

// A result of cyclictest that cannot be believed: names the file and the cause.
class CyclictestError : public std::runtime_error
{
	using std::runtime_error::runtime_error;
};

// How cyclictest (rt-tests 2.4 and later) is run. One measuring thread per CPU.
struct CyclictestRun {
	std::vector<int> cpus;
	int priority = 95;
	// Not a multiple of the tick, or every sample falls on one phase of it.
	unsigned interval_us = 997;
	std::uint64_t loops = 1000; // of each thread
	unsigned histogram_us = 400;
	std::vector<std::string> more; // further arguments
};

// Latencies are asked for in nanoseconds.
std::vector<std::string> cyclictest_command(const CyclictestRun &run, const std::string &json_path);

// Reads what cyclictest --json wrote. Its traps: members are called "cmdline:" and
// "rt_test_version:" in some versions, 2.4 calls itself 2.40; nothing tells of the samples above
// the histogram, which are the cycles that no bucket holds; and the return code is 0 after an
// interrupt, so LOOPS, the cycles asked for, tells whether it came to its end.
// ORIGIN is what messages call the text. Throws CyclictestError.
std::vector<ThreadLatencies> parse_cyclictest(const std::string &text, const std::string &origin,
                                              const CyclictestRun &run);
std::vector<ThreadLatencies> read_cyclictest(const std::string &path, const CyclictestRun &run);

} // namespace slice_ext::tool::latency

#endif
