// SPDX-License-Identifier: MIT
#include "latency/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace slice_ext::tool::latency
{

namespace
{

// In the child: only what is safe after fork. Reports errno through REPORT and does not return.
[[noreturn]] void become(char *const *argv, const Child::Places &places, pid_t parent, int go,
                         int report)
{
	const auto give_up = [report](int error) {
		(void)!write(report, &error, sizeof(error));
		_exit(127);
	};

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	char word;
	if (read(go, &word, 1) != 1) // the parent died before it had announced us
		_exit(127);

	if (!places.cgroup.empty()) {
		const int procs = open((places.cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
		if (procs < 0 || write(procs, "0", 1) != 1)
			give_up(errno);
		close(procs);
	}
	const int in = open("/dev/null", O_RDONLY);
	const int out = places.output.empty()
	                        ? open("/dev/null", O_WRONLY)
	                        : open(places.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (in < 0 || out < 0)
		give_up(errno);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);

	// The caller watches its signals by a mask, which would be inherited.
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	give_up(errno);
	_exit(127);
}

} // namespace

Child::Child(const std::vector<std::string> &command, const Places &places,
             const std::function<void(pid_t)> &announce)
{
	std::vector<char *> argv;
	for (const std::string &word : command)
		argv.push_back(const_cast<char *>(word.c_str()));
	argv.push_back(nullptr);

	int go[2], report[2];
	if (pipe2(go, O_CLOEXEC) != 0)
		throw std::system_error(errno, std::generic_category(), "pipe");
	if (pipe2(report, O_CLOEXEC) != 0) {
		const int error = errno;
		close(go[0]);
		close(go[1]);
		throw std::system_error(error, std::generic_category(), "pipe");
	}
	const pid_t parent = getpid();
	pid_ = fork();
	if (pid_ == 0) {
		close(go[1]);
		close(report[0]);
		become(argv.data(), places, parent, go[0], report[1]);
	}
	const int fork_error = errno;
	close(go[0]);
	close(report[1]);
	int error = 0;
	if (pid_ > 0) {
		setpgid(pid_, pid_);
		announce(pid_);
		(void)!write(go[1], "g", 1);
	}
	close(go[1]);
	if (pid_ > 0 && read(report[0], &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(report[0]);
	if (pid_ < 0)
		throw std::system_error(fork_error, std::generic_category(), "fork");
	if (error != 0) {
		waitpid(pid_, &status_, 0);
		throw std::system_error(error, std::generic_category(),
		                        "cannot run " + command.front());
	}
}

Child::~Child()
{
	if (pid_ <= 0)
		return;
	kill_group();
	if (!ended_)
		waitpid(pid_, &status_, 0);
}

void Child::kill_group()
{
	// Its number cannot belong to somebody else before it was waited for; afterwards the group
	// may still hold children of it.
	kill(-pid_, SIGKILL);
}

bool Child::ended()
{
	if (!ended_)
		ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
	return ended_;
}

std::string describe_status(int status)
{
	if (WIFSIGNALED(status))
		return "killed by signal " + std::to_string(WTERMSIG(status));
	return "exit status " + std::to_string(WEXITSTATUS(status));
}

} // namespace slice_ext::tool::latency
