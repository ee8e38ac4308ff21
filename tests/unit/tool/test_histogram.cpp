// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "demo/histogram.hpp"
#include "demo/random.hpp"

using slice_ext::tool::Histogram;
using slice_ext::tool::Random;

namespace
{

std::uint64_t exact_quantile(std::vector<std::uint64_t> values, double fraction)
{
	std::sort(values.begin(), values.end());
	const double rank = std::ceil(fraction * static_cast<double>(values.size()));
	return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

} // namespace

TEST(Histogram, EmptyHasNoFigures)
{
	const Histogram histogram;
	EXPECT_EQ(histogram.count(), 0u);
	EXPECT_EQ(histogram.min(), 0u);
	EXPECT_EQ(histogram.max(), 0u);
	EXPECT_EQ(histogram.mean(), 0);
	EXPECT_EQ(histogram.quantile(0.999), 0u);
}

TEST(Histogram, SmallValuesAreExact)
{
	Histogram histogram;
	for (std::uint64_t value = 0; value < Histogram::kSubBuckets; ++value)
		histogram.record(value);
	for (std::uint64_t value = 1; value < Histogram::kSubBuckets; ++value) {
		const double fraction = (static_cast<double>(value) + 0.5) / Histogram::kSubBuckets;
		EXPECT_EQ(histogram.quantile(fraction), value);
	}
}

TEST(Histogram, OneValueIsEveryQuantile)
{
	for (const std::uint64_t value :
	     {std::uint64_t(0), std::uint64_t(127), std::uint64_t(128), std::uint64_t(129),
	      std::uint64_t(123456789), std::uint64_t(1) << 63, UINT64_MAX}) {
		Histogram histogram;
		histogram.record(value);
		for (const double fraction : {-1.0, 0.0, 0.5, 0.999, 1.0, 2.0})
			EXPECT_EQ(histogram.quantile(fraction), value) << value;
	}
}

// Values over ten orders of magnitude: no quantile below the exact one, none off by the bound.
TEST(Histogram, QuantilesKeepTheErrorBound)
{
	Random random(1);
	std::vector<std::uint64_t> values;
	Histogram histogram;
	for (int i = 0; i < 20000; ++i) {
		const std::uint64_t value = random.next() >> random.between(20, 60);
		values.push_back(value);
		histogram.record(value);
	}
	for (const double fraction : {0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
		const std::uint64_t exact = exact_quantile(values, fraction);
		const std::uint64_t found = histogram.quantile(fraction);
		EXPECT_GE(found, exact) << fraction;
		EXPECT_LE(static_cast<double>(found - exact),
		          static_cast<double>(exact) / Histogram::kSubBuckets)
			<< fraction;
	}
	EXPECT_EQ(histogram.count(), values.size());
	EXPECT_EQ(histogram.min(), *std::min_element(values.begin(), values.end()));
	EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
}

TEST(Histogram, BucketEdgesStayInTheirBucket)
{
	for (unsigned bit = 7; bit < 64; ++bit)
		for (const int offset : {-1, 0, 1}) {
			const std::uint64_t value = (std::uint64_t(1) << bit) + offset;
			Histogram histogram;
			histogram.record(value);
			histogram.record(UINT64_MAX);
			const std::uint64_t found = histogram.quantile(0.5);
			EXPECT_GE(found, value);
			EXPECT_LE(found - value, value / Histogram::kSubBuckets);
		}
}

TEST(Histogram, MergeIsRecordingBoth)
{
	Random random(2);
	Histogram both;
	Histogram one;
	Histogram other;
	for (int i = 0; i < 1000; ++i) {
		const std::uint64_t value = random.between(0, 1000000);
		both.record(value);
		(i % 3 == 0 ? one : other).record(value);
	}
	one.merge(other);
	one.merge(Histogram());
	EXPECT_EQ(one.count(), both.count());
	EXPECT_EQ(one.min(), both.min());
	EXPECT_EQ(one.max(), both.max());
	EXPECT_EQ(one.mean(), both.mean());
	for (const double fraction : {0.1, 0.5, 0.999})
		EXPECT_EQ(one.quantile(fraction), both.quantile(fraction));
}
