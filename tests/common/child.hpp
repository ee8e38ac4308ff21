// SPDX-License-Identifier: MIT
/**
 * @file child.hpp
 * Parts of a test that need a process of their own.
 */
#ifndef SLICE_EXT_TESTS_COMMON_CHILD_HPP
#define SLICE_EXT_TESTS_COMMON_CHILD_HPP

#include <functional>
#include <string>
#include <vector>

namespace slice_test
{

/** How a child ended: its exit code, or the negated number of its signal. */
using Outcome = int;

/** Forks, runs the function in the child and exits with its result (0..255).
 * Call it from the only thread, or from one whose locks nobody else holds. */
Outcome in_child(const std::function<int()> &function);

/** A function that exec_self() can start in a fresh image of this program. */
struct ChildMode {
	ChildMode(const char *name, int (*function)());
};

/** Starts this program anew for a ChildMode, with the C library's own rseq
 * registration left on or switched off. */
Outcome exec_self(const std::string &mode, bool libc_rseq);

/** Replaces the calling process by a fresh image in a ChildMode, in one system call.
 * Returns only if that fails, with errno. */
void become(const char *mode);

/** The command line of a ChildMode, for tools that start programs. */
std::vector<std::string> command_of(const std::string &mode);

} // namespace slice_test

#endif
