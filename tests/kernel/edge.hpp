// SPDX-License-Identifier: MIT
/**
 * @file edge.hpp
 * What the tests of edge behaviour share: a competitor for the CPU, and the account
 * that has to be even at the end whatever happened.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_EDGE_HPP
#define SLICE_EXT_TESTS_KERNEL_EDGE_HPP

#include "child.hpp"
#include "fixture.hpp"
#include "periodic.hpp"

#include <functional>
#include <memory>

namespace slice_test
{

/** Asks until a grant is there; with a Periodic on the CPU that takes a wake-up
 * or two. Makes no system call. */
inline bool get_grant(RseqView area)
{
	return until_granted(area, ticks() + to_ticks(10 * second)).granted;
}

/** A signal that the thread raises itself, by an exception: it comes while the thread
 * is inside a grant, on any kernel. */
inline void trap()
{
	asm volatile("int3" ::: "memory");
}

/** Runs a function at each trap(). */
class TrapHandler
{
      public:
	explicit TrapHandler(std::function<void()> function, int flags = 0);
	~TrapHandler();
	TrapHandler(const TrapHandler &) = delete;
	TrapHandler &operator=(const TrapHandler &) = delete;
};

/** in_child() on the test CPU, for a function with gtest assertions.
 * @return 0 when they all held */
Outcome checked_child(const std::function<void()> &function);

class Edge : public OneCpu
{
      protected:
	void SetUp() override;
	/** Something was granted, and every request and grant since SetUp() is
	 * accounted for, of whatever thread it was. */
	void TearDown() override;

	Counters machine() const
	{
		return Counters::of_machine() - machine_before_;
	}

	/** A wait for one event, on the worst of emulators. */
	static std::uint64_t patience()
	{
		return ticks() + to_ticks(10 * second);
	}
	/** How many of @p expected must have come out as told. Even where the tests control
	 * time the tick may fall into the same few microseconds of some grants in a row: it
	 * wanders through them. In another guest any grant may be over before the next
	 * instruction: there only the states count, which are asserted each time. */
	static std::int64_t at_least(std::int64_t expected)
	{
		if (deterministic())
			return expected * 3 / 4;
		return required() ? 0 : OneCpu::at_least(expected);
	}
	/** So many where the tests control time, give or take what at_least() tells. */
	static void expect_about(const Counters &counters, const char *name, std::int64_t count);

	std::unique_ptr<Periodic> other_;

      private:
	Counters machine_before_;
};

} // namespace slice_test

#endif
