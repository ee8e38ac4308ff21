// SPDX-License-Identifier: MIT
#include "child.hpp"
#include "needs.hpp"
#include "system.hpp"
#include "timing.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <limits.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test
{

namespace
{

constexpr const char *mode_argument = "--slice-ext-child";
constexpr const char *tunables = "GLIBC_TUNABLES";
constexpr const char *no_libc_rseq = "glibc.pthread.rseq=0";
constexpr const char *self = "/proc/self/exe";
constexpr int exec_failed = 126;

std::map<std::string, int (*)()> &child_modes()
{
	static std::map<std::string, int (*)()> modes;
	return modes;
}

bool libc_rseq_is_off()
{
	const char *value = std::getenv(tunables);
	return value && std::strstr(value, no_libc_rseq);
}

void switch_libc_rseq_off()
{
	const char *value = std::getenv(tunables);
	const std::string wanted =
		value && *value ? std::string(value) + ":" + no_libc_rseq : no_libc_rseq;
	setenv(tunables, wanted.c_str(), 1);
}

Outcome wait_for(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0) {
	}
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void no_core_dump()
{
	const rlimit none{0, 0};
	setrlimit(RLIMIT_CORE, &none);
}

} // namespace

Outcome in_child(const std::function<int()> &function)
{
	std::fflush(nullptr);
	const pid_t pid = fork();
	if (pid == 0) {
		no_core_dump();
		const int result = function();
		std::fflush(nullptr);
		_exit(result);
	}
	return wait_for(pid);
}

ChildMode::ChildMode(const char *name, int (*function)())
{
	child_modes()[name] = function;
}

Outcome exec_self(const std::string &mode, bool libc_rseq)
{
	std::fflush(nullptr);
	const pid_t pid = fork();
	if (pid == 0) {
		no_core_dump();
		if (libc_rseq)
			unsetenv(tunables);
		else if (!libc_rseq_is_off())
			switch_libc_rseq_off();
		execl(self, self, mode_argument, mode.c_str(), static_cast<char *>(nullptr));
		_exit(exec_failed);
	}
	return wait_for(pid);
}

void become(const char *mode)
{
	execl(self, self, mode_argument, mode, static_cast<char *>(nullptr));
}

std::vector<std::string> command_of(const std::string &mode)
{
	char path[PATH_MAX] = "";
	if (readlink(self, path, sizeof path - 1) < 0)
		return {};
	return {path, mode_argument, mode};
}

namespace
{

int run(int argc, char **argv)
{
	constexpr int skipped = 77;

	if (argc == 3 && std::strcmp(argv[1], mode_argument) == 0) {
		const auto found = child_modes().find(argv[2]);
		return found == child_modes().end() ? exec_failed : found->second();
	}
	// A thread has one rseq area, and the C library takes it unless told not to.
	if (!libc_rseq_is_off()) {
		switch_libc_rseq_off();
		execv(self, argv);
		std::perror("exec of the test itself");
		return exec_failed;
	}

	testing::InitGoogleTest(&argc, argv);
	utsname name{};
	uname(&name);
	std::printf("kernel %s%s, %zu CPUs, test CPU %d, counter %.3f GHz%s\n", name.release,
	            preempt_rt() ? " PREEMPT_RT" : "", allowed_cpus().size(), test_cpu(),
	            ticks_per_ns(), deterministic() ? ", deterministic" : "");
	const int result = RUN_ALL_TESTS();
	const auto &unit = *testing::UnitTest::GetInstance();
	if (result == 0 && unit.successful_test_count() == 0)
		return unit.skipped_test_count() > 0 ? skipped : EXIT_FAILURE;
	return result;
}

} // namespace

} // namespace slice_test

int main(int argc, char **argv)
{
	return slice_test::run(argc, argv);
}
