// SPDX-License-Identifier: MIT
#include "timing.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace slice_test
{

std::int64_t now_ns()
{
	timespec ts{};
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * second + ts.tv_nsec;
}

void sleep_ns(std::int64_t ns)
{
	timespec ts{static_cast<time_t>(ns / second), static_cast<long>(ns % second)};
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) != 0) {
	}
}

double ticks_per_ns()
{
	static const double rate = [] {
		const std::int64_t t0 = now_ns();
		const std::uint64_t c0 = ticks();
		sleep_ns(50 * ms);
		const std::int64_t t1 = now_ns();
		const std::uint64_t c1 = ticks();
		return static_cast<double>(c1 - c0) / static_cast<double>(t1 - t0);
	}();
	return rate;
}

void spin(std::int64_t ns)
{
	const std::uint64_t end = ticks() + to_ticks(ns);
	while (ticks() < end)
		__builtin_ia32_pause();
}

bool deterministic()
{
	const char *value = std::getenv("SLICE_EXT_DETERMINISTIC");
	return value && std::strcmp(value, "1") == 0;
}

std::int64_t quantile(std::vector<std::int64_t> sample, double fraction)
{
	if (sample.empty())
		return 0;
	std::sort(sample.begin(), sample.end());
	const auto last = static_cast<double>(sample.size() - 1);
	return sample[static_cast<std::size_t>(last * fraction + 0.5)];
}

} // namespace slice_test
