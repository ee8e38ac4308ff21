// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_RANDOM_HPP
#define SLICE_EXT_TOOL_DEMO_RANDOM_HPP

#include <cstdint>

namespace slice_ext::tool
{

// SplitMix64: the same numbers on every machine and in every run, and no state worth preparing.
class Random
{
      public:
	explicit Random(std::uint64_t seed) : state_(seed)
	{
	}

	std::uint64_t next()
	{
		std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		return z ^ (z >> 31);
	}

	// Uniform in LOW..HIGH, both included.
	std::uint64_t between(std::uint64_t low, std::uint64_t high)
	{
		return low + next() % (high - low + 1);
	}

      private:
	std::uint64_t state_;
};

} // namespace slice_ext::tool

#endif
