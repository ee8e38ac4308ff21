// SPDX-License-Identifier: MIT
/**
 * @file dice.hpp
 * Choices that a seed repeats.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_DICE_HPP
#define SLICE_EXT_TESTS_KERNEL_DICE_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace slice_test
{

/** Not thread-safe, and not for signal handlers. */
class Dice
{
      public:
	explicit Dice(std::uint64_t seed) : engine_(seed)
	{
	}

	std::uint64_t next()
	{
		return engine_();
	}
	/** 0 .. @p bound - 1. @p bound is not 0. */
	std::uint64_t below(std::uint64_t bound)
	{
		return engine_() % bound;
	}
	bool one_in(std::uint64_t bound)
	{
		return below(bound) == 0;
	}
	template <typename Container> auto pick(const Container &from)
	{
		return *(std::begin(from) + static_cast<std::ptrdiff_t>(below(std::size(from))));
	}

      private:
	std::mt19937_64 engine_;
};

/** A number from the environment, or @p otherwise where it is not set.
 * What is no number ends the program with a message. */
inline std::uint64_t number_from_environment(const char *name, std::uint64_t otherwise)
{
	const char *text = std::getenv(name);
	if (!text || !*text)
		return otherwise;
	char *end = nullptr;
	const std::uint64_t value = std::strtoull(text, &end, 10);
	if (*end || *text == '-') {
		std::fprintf(stderr, "%s=%s: not a number; leave it out for %llu\n", name, text,
		             static_cast<unsigned long long>(otherwise));
		std::exit(2);
	}
	return value;
}

} // namespace slice_test

#endif
