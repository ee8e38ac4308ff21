// SPDX-License-Identifier: MIT
// A 32-bit task, by the program compat32.c beside this.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include <limits.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds_of_compat32 = 20;

/** The program in the directory of this one. */
std::string beside_this_program(const char *name)
{
	char path[PATH_MAX] = "";
	const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
	const std::string own(path, length > 0 ? static_cast<std::size_t>(length) : 0);
	return own.substr(0, own.rfind('/') + 1) + name;
}

class EdgeCompat : public Edge
{
};

TEST_F(EdgeCompat, A32BitTaskIsGrantedAndYields)
{
	const std::string program = beside_this_program("kernel-edge-compat32");
	if (access(program.c_str(), X_OK) != 0)
		GTEST_SKIP() << "no " << program << ": the compiler makes no 32-bit programs";
	const Outcome outcome = checked_child([&program] {
		execl(program.c_str(), program.c_str(), static_cast<char *>(nullptr));
		_exit(errno == ENOEXEC ? 77 : 1);
	});
	if (outcome == 77)
		GTEST_SKIP() << "this kernel runs no 32-bit programs";
	EXPECT_EQ(outcome, 0) << "the number of the check in compat32.c";
	const Counters counters = machine();
	EXPECT_EQ(counters["ended_yield"], rounds_of_compat32) << counters;
	expect_about(counters, "ended_syscall", rounds_of_compat32);
}

} // namespace
} // namespace slice_test
