// SPDX-License-Identifier: MIT
#include "demo/calibration.hpp"

#include <slice_ext/slice_ext.h>

#include <algorithm>
#include <exception>

#include "demo/pinned_thread.hpp"

namespace slice_ext::tool
{

namespace
{

std::optional<double> section_cost(const CycleClock &clock)
{
	constexpr int kPairs = 1000;
	constexpr int kRuns = 50;
	if (slice_ext_enable() != 0)
		return std::nullopt;
	std::uint64_t fastest = UINT64_MAX;
	for (int run = 0; run < kRuns; ++run) {
		const std::uint64_t start = CycleClock::now();
		for (int i = 0; i < kPairs; ++i) {
			slice_ext_enter();
			slice_ext_leave();
		}
		fastest = std::min(fastest, CycleClock::now() - start);
	}
	slice_ext_disable();
	return static_cast<double>(fastest) * clock.ns_per_tick() / kPairs;
}

} // namespace

Calibration calibrate_on(int cpu)
{
	std::optional<Calibration> result;
	std::exception_ptr failure;
	{
		PinnedThread measure(cpu, 0, [&] {
			try {
				const CycleClock clock = CycleClock::calibrate();
				const BusyWork work = BusyWork::calibrate(clock);
				result = Calibration{clock, work, section_cost(clock)};
			} catch (...) {
				failure = std::current_exception();
			}
		});
	}
	if (failure)
		std::rethrow_exception(failure);
	return *result;
}

} // namespace slice_ext::tool
