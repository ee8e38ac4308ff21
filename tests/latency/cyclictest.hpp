// SPDX-License-Identifier: MIT
/**
 * @file cyclictest.hpp
 * Runs cyclictest (rt-tests 2.4 or later) with one thread and reads its histogram.
 */
#ifndef SLICE_EXT_TESTS_LATENCY_CYCLICTEST_HPP
#define SLICE_EXT_TESTS_LATENCY_CYCLICTEST_HPP

#include <map>
#include <stdexcept>
#include <string>

namespace slice_test {

/** What one cyclictest thread measured; latencies in microseconds. */
struct WakeUpLatencies {
	/** Samples per latency; a latency without samples is not listed. */
	std::map<int, long> histogram;
	long samples = 0;  /**< all cycles, those above the histogram included */
	long overflow = 0; /**< cycles above the histogram */
	int best = 0;
	int average = 0;
	int worst = 0; /**< exact even when it lies above the histogram */
};

/** A histogram file that cannot be trusted, or a cyclictest that failed. */
class CyclictestError : public std::runtime_error {
	using std::runtime_error::runtime_error;
};

/**
 * Reads the file that cyclictest --histfile wrote for one thread.
 *
 * @param text   the content
 * @param origin what to call it in a message
 * @throws CyclictestError when it is empty, truncated, of more than one thread,
 *         or its numbers do not add up
 */
WakeUpLatencies parse_histogram_file(const std::string &text, const std::string &origin);

/** Where and how long cyclictest measures. */
struct CyclictestRun {
	int cpu = 0;
	int priority = 95;
	/** Not a multiple of the tick, or every sample falls on one phase of it. */
	int interval_us = 997;
	long cycles = 1000;
	int histogram_us = 400;
};

/**
 * Runs cyclictest and waits for it.
 * @throws CyclictestError when it cannot be started, fails, or its histogram does
 */
WakeUpLatencies run_cyclictest(const CyclictestRun &run);

} // namespace slice_test

#endif
