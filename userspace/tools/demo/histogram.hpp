// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_HISTOGRAM_HPP
#define SLICE_EXT_TOOL_DEMO_HISTOGRAM_HPP

#include <cstdint>
#include <vector>

namespace slice_ext::tool
{

// Log-linear histogram of 64-bit values, in the manner of HDR histograms: each power of two is
// divided into kSubBuckets equal buckets, values below kSubBuckets have a bucket of their own.
//
// Error bound: a quantile is at least the exact one and exceeds it by less than exact / kSubBuckets
// (0.79 %). Count, sum, minimum and maximum are exact (the sum up to 2^64).
//
// All memory is allocated and touched by the constructor, record() neither allocates nor makes a
// system call. Not thread-safe: one histogram per thread, merged afterwards.
class Histogram
{
      public:
	static constexpr unsigned kSubBits = 7;
	static constexpr std::uint64_t kSubBuckets = std::uint64_t(1) << kSubBits;

	Histogram() : counts_((64 - kSubBits + 1) * kSubBuckets, 0)
	{
	}

	void record(std::uint64_t value)
	{
		++counts_[bucket_of(value)];
		++count_;
		sum_ += value;
		if (value < min_)
			min_ = value;
		if (value > max_)
			max_ = value;
	}

	void merge(const Histogram &other);

	std::uint64_t count() const
	{
		return count_;
	}
	std::uint64_t min() const
	{
		return count_ ? min_ : 0;
	}
	std::uint64_t max() const
	{
		return max_;
	}
	double mean() const
	{
		return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
	}

	// The smallest recorded value, within the error bound, that at least the FRACTION (0..1) of
	// all values does not exceed. 0 for an empty histogram.
	std::uint64_t quantile(double fraction) const;

      private:
	static std::size_t bucket_of(std::uint64_t value)
	{
		if (value < kSubBuckets)
			return static_cast<std::size_t>(value);
		const unsigned shift =
			63 - static_cast<unsigned>(__builtin_clzll(value)) - kSubBits;
		return static_cast<std::size_t>((std::uint64_t(shift + 1) << kSubBits) +
		                                ((value >> shift) - kSubBuckets));
	}
	static std::uint64_t last_value_of(std::size_t bucket);

	std::vector<std::uint64_t> counts_;
	std::uint64_t count_ = 0;
	std::uint64_t sum_ = 0;
	std::uint64_t min_ = UINT64_MAX;
	std::uint64_t max_ = 0;
};

} // namespace slice_ext::tool

#endif
