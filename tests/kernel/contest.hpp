// SPDX-License-Identifier: MIT
/**
 * @file contest.hpp
 * One thread that spins, with or without asking for extensions, and one that
 * wakes up beside it on the same CPU.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_CONTEST_HPP
#define SLICE_EXT_TESTS_KERNEL_CONTEST_HPP

#include "counters.hpp"
#include "periodic.hpp"

#include <cstdint>
#include <vector>

namespace slice_test
{

enum class Demand {
	none,   /**< never requests */
	always, /**< requests without pause and never yields */
};

struct Contest {
	/** errno of what could not be set up; 0 when all could. */
	int error = 0;
	/** How late the other thread ran, ns, one entry per wake-up. */
	std::vector<std::int64_t> lateness;
	/** Length of each grant as the spinning thread saw it, ns. */
	std::vector<std::int64_t> used;
	/** How long it was without the CPU after each of those, ns. */
	std::vector<std::int64_t> away;
	/** Of the spinning thread, for the time it spun. */
	Counters counters;

	std::int64_t median_lateness() const
	{
		return median(lateness);
	}
	std::int64_t worst_lateness() const
	{
		return quantile(lateness, 1.0);
	}
};

/** @param own policy of the spinning thread, which is opted in either way */
Contest contest(Demand demand, const Periodic::Setup &other, std::int64_t duration,
                const Policy &own = fair());

/** Prints one line about it. */
void describe(const char *what, const Contest &result);

} // namespace slice_test

#endif
