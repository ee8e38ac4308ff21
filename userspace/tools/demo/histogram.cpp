// SPDX-License-Identifier: MIT
#include "demo/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace slice_ext::tool
{

void Histogram::merge(const Histogram &other)
{
	for (std::size_t i = 0; i < counts_.size(); ++i)
		counts_[i] += other.counts_[i];
	count_ += other.count_;
	sum_ += other.sum_;
	min_ = std::min(min_, other.min_);
	max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::last_value_of(std::size_t bucket)
{
	if (bucket < kSubBuckets)
		return bucket;
	const unsigned shift = static_cast<unsigned>(bucket >> kSubBits) - 1;
	const std::uint64_t first = (kSubBuckets + (bucket & (kSubBuckets - 1))) << shift;
	return first + ((std::uint64_t(1) << shift) - 1);
}

std::uint64_t Histogram::quantile(double fraction) const
{
	if (count_ == 0)
		return 0;
	const double exact_rank =
		std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_));
	const std::uint64_t rank =
		std::clamp(static_cast<std::uint64_t>(exact_rank), std::uint64_t(1), count_);
	std::uint64_t seen = 0;
	for (std::size_t i = 0; i < counts_.size(); ++i) {
		seen += counts_[i];
		if (seen >= rank)
			return std::clamp(last_value_of(i), min_, max_);
	}
	return max_;
}

} // namespace slice_ext::tool
