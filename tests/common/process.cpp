// SPDX-License-Identifier: MIT
#include "process.hpp"

#include <csignal>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace slice_test {

namespace {

int decode(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

Process::Process(const std::vector<std::string> &arguments, const std::string &output)
{
	std::vector<char *> argv;
	for (const std::string &argument : arguments)
		argv.push_back(const_cast<char *>(argument.c_str()));
	argv.push_back(nullptr);

	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO,
					 output.empty() ? "/dev/null" : output.c_str(),
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ)) {
		pid_ = -1;
		status_ = 127;
	}
	posix_spawn_file_actions_destroy(&actions);
}

Process::~Process()
{
	terminate();
	wait();
}

bool Process::running()
{
	int status;
	if (status_ < 0 && waitpid(pid_, &status, WNOHANG) == pid_)
		status_ = decode(status);
	return status_ < 0;
}

void Process::terminate() const
{
	send(SIGTERM);
}

void Process::send(int signal_number) const
{
	if (status_ < 0)
		kill(pid_, signal_number);
}

int Process::wait()
{
	int status;
	if (status_ < 0 && waitpid(pid_, &status, 0) == pid_)
		status_ = decode(status);
	return status_;
}

} // namespace slice_test
