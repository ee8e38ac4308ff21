// SPDX-License-Identifier: MIT
#include "latency/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

namespace slice_ext::tool::latency
{

void Distribution::add(const ThreadLatencies &thread)
{
	for (const auto &[edge, count] : thread.histogram)
		buckets[edge] += count;
	min = samples ? std::min(min, thread.min) : thread.min;
	max = std::max(max, thread.max);
	histogram_end = samples ? std::min(histogram_end, thread.histogram_end)
	                        : thread.histogram_end;
	samples += thread.cycles;
	overflow += thread.overflow;
	sum += thread.average * static_cast<double>(thread.cycles);
}

std::uint64_t Distribution::above(std::uint64_t latency) const
{
	std::uint64_t count = overflow;
	for (auto bucket = buckets.upper_bound(latency); bucket != buckets.end(); ++bucket)
		count += bucket->second;
	return count;
}

Quantile quantile(const Distribution &distribution, double fraction)
{
	const double rank = std::max(
		1.0, std::ceil(fraction * static_cast<double>(distribution.samples) - 1e-9));
	double seen = 0;
	for (const auto &[edge, count] : distribution.buckets) {
		seen += static_cast<double>(count);
		if (seen >= rank)
			return {edge, false};
	}
	return {distribution.histogram_end, true};
}

std::string in_us(double ns)
{
	char text[64];
	std::snprintf(text, sizeof(text), "%.1f us", ns / 1000);
	return text;
}

std::string in_us(const Quantile &quantile)
{
	return (quantile.lower_bound ? "> " : "") + in_us(static_cast<double>(quantile.value));
}

double chance_of_excess(std::uint64_t events_a, std::uint64_t samples_a, std::uint64_t events_b,
                        std::uint64_t samples_b)
{
	// Hypergeometric: which of the events fall on A's samples.
	const std::uint64_t events = events_a + events_b;
	const std::uint64_t samples = samples_a + samples_b;
	const auto choose = [](std::uint64_t n, std::uint64_t k) {
		const auto number = static_cast<double>(n), part = static_cast<double>(k);
		return std::lgamma(number + 1) - std::lgamma(part + 1) -
		       std::lgamma(number - part + 1);
	};
	double sum = 0;
	for (std::uint64_t k = events_a; k <= std::min(events, samples_a); ++k) {
		if (events - k > samples_b)
			continue;
		sum += std::exp(choose(samples_a, k) + choose(samples_b, events - k) -
		                choose(samples, events));
	}
	return std::min(1.0, sum);
}

Interval bootstrap(const Distribution &distribution, double fraction)
{
	constexpr int kResamples = 1000;
	if (distribution.samples == 0)
		return {};
	// The rank of a quantile in a resample is a binomial count in the original: draw that
	// instead of the samples.
	std::mt19937_64 random(1);
	std::vector<std::uint64_t> found;
	const auto n = static_cast<std::int64_t>(distribution.samples);
	std::binomial_distribution<std::int64_t> draw(n, fraction);
	for (int i = 0; i < kResamples; ++i)
		found.push_back(quantile(distribution, static_cast<double>(draw(random)) /
		                                               static_cast<double>(n))
		                        .value);
	std::sort(found.begin(), found.end());
	return {found[kResamples * 25 / 1000], found[kResamples * 975 / 1000 - 1]};
}

double rate_bound(std::uint64_t samples)
{
	return samples ? 3.0 / static_cast<double>(samples) : 1;
}

} // namespace slice_ext::tool::latency
