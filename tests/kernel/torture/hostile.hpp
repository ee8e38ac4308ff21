// SPDX-License-Identifier: MIT
/**
 * @file hostile.hpp
 * Processes that do with the extension whatever a program could do wrong.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_TORTURE_HOSTILE_HPP
#define SLICE_EXT_TESTS_KERNEL_TORTURE_HOSTILE_HPP

#include <atomic>
#include <cstdint>

namespace slice_test::torture
{

/** What all processes of a run share. It survives exec by its file descriptor. */
struct Shared {
	std::atomic<bool> stop{false};
	/** SCHED_DEADLINE may be used. */
	std::atomic<bool> deadline{true};
	std::atomic<std::uint64_t> acts{0};
	std::atomic<std::uint64_t> lives{0};
	std::atomic<std::uint64_t> execs{0};
	/** Calls of 471 that returned 1. */
	std::atomic<std::uint64_t> yields{0};
	/** Answers of the kernel that cannot be, and the first of them. */
	std::atomic<std::uint64_t> violations{0};
	char violation[200]{};

	/** Makes one, and leaves its descriptor to children. */
	static Shared *create();
	/** Of the process that made this one by exec. */
	static Shared *inherited();

	void report(const char *what, long value);
};

/** Lives a hostile life and ends, one way or another. Call it in a process of its own. */
[[noreturn]] void live(Shared &shared, std::uint64_t seed);

} // namespace slice_test::torture

#endif
