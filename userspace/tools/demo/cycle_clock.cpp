// SPDX-License-Identifier: MIT
#include "demo/cycle_clock.hpp"

#include <sys/prctl.h>

#include <stdexcept>

namespace slice_ext::tool
{

namespace
{

std::uint64_t monotonic_ns()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
	       static_cast<std::uint64_t>(time.tv_nsec);
}

struct Reading {
	std::uint64_t ns;
	std::uint64_t ticks;
};

// Both clocks at the same moment: of several tries the one least likely to have been interrupted.
Reading read_both()
{
	Reading best = {};
	std::uint64_t best_width = UINT64_MAX;
	for (int i = 0; i < 16; ++i) {
		const std::uint64_t before = CycleClock::now();
		const std::uint64_t ns = monotonic_ns();
		const std::uint64_t after = CycleClock::now();
		if (after >= before && after - before < best_width) {
			best_width = after - before;
			best = {ns, before + (after - before) / 2};
		}
	}
	return best;
}

} // namespace

CycleClock CycleClock::calibrate()
{
#if defined(__x86_64__) || defined(__i386__)
	int access = PR_TSC_ENABLE;
	if (prctl(PR_GET_TSC, &access) == 0 && access != PR_TSC_ENABLE &&
	    prctl(PR_SET_TSC, PR_TSC_ENABLE) != 0)
		throw std::runtime_error("this process may not read the time-stamp counter");
#endif
	constexpr std::uint64_t kSpanNs = 20000000;
	const Reading start = read_both();
	while (monotonic_ns() - start.ns < kSpanNs) {
	}
	const Reading end = read_both();
	if (end.ticks <= start.ticks || end.ns <= start.ns)
		throw std::runtime_error("the time-stamp counter does not advance");
	return CycleClock(static_cast<double>(end.ns - start.ns) /
	                  static_cast<double>(end.ticks - start.ticks));
}

} // namespace slice_ext::tool
