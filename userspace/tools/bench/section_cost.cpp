// SPDX-License-Identifier: MIT
#include "bench/section_cost.hpp"

#include <slice_ext/slice_ext.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "demo/pinned_thread.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr int kPairs = 1000;
constexpr int kRepeats = 25;

// Ticks of one loop that begins PADDING bytes behind a cache line.
template <unsigned Padding, bool Sections> [[gnu::noinline]] std::int64_t time_loop()
{
#if defined(__x86_64__) || defined(__i386__)
	asm volatile(".p2align 6\n\t.skip %c0, 0x90" : : "i"(Padding));
#endif
	const std::uint64_t start = CycleClock::now();
	for (int i = 0; i < kPairs; ++i) {
		if constexpr (Sections)
			slice_ext_enter();
		asm volatile("" : : : "memory");
		if constexpr (Sections)
			slice_ext_leave();
	}
	return static_cast<std::int64_t>(CycleClock::now() - start);
}

template <unsigned Padding> void add_differences(std::vector<std::int64_t> &differences)
{
	// The first pair warms the caches up.
	for (int i = 0; i <= kRepeats; ++i) {
		const std::int64_t without = time_loop<Padding, false>();
		const std::int64_t with = time_loop<Padding, true>();
		if (i > 0)
			differences.push_back(with - without);
	}
}

double median_cost(const CycleClock &clock)
{
	std::vector<std::int64_t> differences;
	add_differences<0>(differences);
	add_differences<16>(differences);
	add_differences<32>(differences);
	add_differences<48>(differences);
	const auto middle =
		differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
	std::nth_element(differences.begin(), middle, differences.end());
	return static_cast<double>(*middle) * clock.ns_per_tick() / kPairs;
}

} // namespace

SectionCost measure_section_cost(int cpu, const CycleClock &clock)
{
	SectionCost cost;
	{
		PinnedThread measure(cpu, 0, [&] {
			cost.disabled = median_cost(clock);
			if (slice_ext_enable() != SLICE_EXT_AVAILABLE)
				return;
			cost.enabled = median_cost(clock);
			slice_ext_disable();
		});
	}
	return cost;
}

} // namespace slice_ext::tool
