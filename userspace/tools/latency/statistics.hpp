// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_STATISTICS_HPP
#define SLICE_EXT_TOOL_LATENCY_STATISTICS_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "latency/record.hpp"

namespace slice_ext::tool::latency
{

// The latencies of all threads and repetitions of one arm.
struct Distribution {
	std::map<std::uint64_t, std::uint64_t> buckets; // lower edge: count
	std::uint64_t samples = 0;
	std::uint64_t overflow = 0;        // samples at or above histogram_end
	std::uint64_t histogram_end = 0;   // the lowest of those that were merged
	std::uint64_t min = 0;
	std::uint64_t max = 0;
	double sum = 0;

	void add(const ThreadLatencies &thread);
	double average() const
	{
		return samples ? sum / static_cast<double>(samples) : 0;
	}
	// Samples in buckets above LATENCY, the overflow included.
	std::uint64_t above(std::uint64_t latency) const;
};

// A percentile, or only that it is above something when it falls in the overflow.
struct Quantile {
	std::uint64_t value = 0;
	bool lower_bound = false;
};
// The smallest bucket that at least FRACTION (0..1) of the samples do not exceed.
Quantile quantile(const Distribution &distribution, double fraction);

// "5.3 us", "> 400.0 us"
std::string in_us(double ns);
std::string in_us(const Quantile &quantile);

// Probability that a rate is no higher in A than in B and chance alone gives AT_LEAST or more of
// the EVENTS seen in both together to A, which has SAMPLES_A of the SAMPLES_A + SAMPLES_B samples
// (Fisher's exact test, one-sided).
double chance_of_excess(std::uint64_t events_a, std::uint64_t samples_a, std::uint64_t events_b,
                        std::uint64_t samples_b);

// Interval that holds the quantile in 95 % of resamples (percentile bootstrap, 1000 resamples, the
// seed is fixed so that the answer is). Values in the overflow count as its lower edge.
struct Interval {
	std::uint64_t low = 0, high = 0;
};
Interval bootstrap(const Distribution &distribution, double fraction);

// What zero events in SAMPLES say: the rate is below this with 95 % confidence (the rule of three).
double rate_bound(std::uint64_t samples);

} // namespace slice_ext::tool::latency

#endif
