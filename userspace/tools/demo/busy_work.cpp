// SPDX-License-Identifier: MIT
#include "demo/busy_work.hpp"

#include <algorithm>
#include <stdexcept>

namespace slice_ext::tool
{

BusyWork BusyWork::calibrate(const CycleClock &clock)
{
	constexpr std::uint64_t kSteps = 10000;
	constexpr int kRuns = 200;
	std::uint64_t fastest = UINT64_MAX;
	for (int i = 0; i < kRuns; ++i) {
		const std::uint64_t start = CycleClock::now();
		run(kSteps);
		fastest = std::min(fastest, CycleClock::now() - start);
	}
	const double us = static_cast<double>(fastest) * clock.ns_per_tick() / 1000;
	if (us <= 0)
		throw std::runtime_error("the clock is too coarse to calibrate the work");
	return BusyWork(static_cast<double>(kSteps) / us);
}

} // namespace slice_ext::tool
