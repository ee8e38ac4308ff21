// SPDX-License-Identifier: MIT
/**
 * @file timing.hpp
 * Time without system calls.
 *
 * Any system call ends a grant, and clock_gettime(2) becomes one whenever the
 * clock source is not readable from user space, as in many guests. So a thread
 * under test reads nothing but the time stamp counter.
 */
#ifndef SLICE_EXT_TESTS_COMMON_TIMING_HPP
#define SLICE_EXT_TESTS_COMMON_TIMING_HPP

#include <cstdint>
#include <vector>

namespace slice_test
{

constexpr std::int64_t us = 1000;
constexpr std::int64_t ms = 1000 * us;
constexpr std::int64_t second = 1000 * ms;

inline std::uint64_t ticks()
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
#error "tests/ needs a cycle counter that user space can read"
#endif
}

/** Ticks per nanosecond, measured once against CLOCK_MONOTONIC while asleep.
 * Call it first outside any grant. */
double ticks_per_ns();

inline std::uint64_t to_ticks(std::int64_t ns)
{
	return static_cast<std::uint64_t>(static_cast<double>(ns) * ticks_per_ns());
}

inline std::int64_t to_ns(std::uint64_t tick_count)
{
	return static_cast<std::int64_t>(static_cast<double>(tick_count) / ticks_per_ns());
}

/** Keeps the CPU busy for @p ns of elapsed time, without a system call. */
void spin(std::int64_t ns);

/** CLOCK_MONOTONIC in ns; may be a system call. */
std::int64_t now_ns();

void sleep_ns(std::int64_t ns);

/** True in the virtual machine that counts instructions: there the same run
 * gives the same figures, and the tests hold them to the microsecond. */
bool deterministic();

/** 0 for an empty sample. @p fraction 0..1. */
std::int64_t quantile(std::vector<std::int64_t> sample, double fraction);
inline std::int64_t median(const std::vector<std::int64_t> &sample)
{
	return quantile(sample, 0.5);
}

} // namespace slice_test

#endif
