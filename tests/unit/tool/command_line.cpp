// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <thread>

#include "text_file.hpp"

using slice_ext::tool::read_text;

namespace
{

void redirect(int descriptor, const std::string &path)
{
	const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || dup2(file, descriptor) < 0)
		_exit(126);
	close(file);
}

} // namespace

ToolRun::ToolRun(const std::vector<std::string> &arguments, const std::function<void()> &in_child)
{
	std::string pattern = std::filesystem::temp_directory_path() / "slice-ext-run-XXXXXX";
	if (mkdtemp(pattern.data()) == nullptr)
		throw std::runtime_error("mkdtemp: " + pattern);
	dir_ = pattern;

	std::vector<char *> argv = {const_cast<char *>("slice-ext")};
	for (const std::string &argument : arguments)
		argv.push_back(const_cast<char *>(argument.c_str()));
	argv.push_back(nullptr);
	pid_ = fork();
	if (pid_ < 0)
		throw std::runtime_error("fork");
	if (pid_ == 0) {
		redirect(STDOUT_FILENO, dir_ + "/out");
		redirect(STDERR_FILENO, dir_ + "/err");
		in_child();
		// In a guest there is no build tree; the programs are on its PATH.
		execv(SLICE_EXT_TOOL, argv.data());
		execvp(argv[0], argv.data());
		_exit(127);
	}
}

ToolRun::~ToolRun()
{
	if (pid_ > 0) {
		kill(pid_, SIGKILL);
		wait();
	}
	std::error_code ignored;
	std::filesystem::remove_all(dir_, ignored);
}

void ToolRun::send(int signal_number) const
{
	kill(pid_, signal_number);
}

int ToolRun::wait()
{
	int status = 0;
	waitpid(pid_, &status, 0);
	pid_ = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool ToolRun::wait_for_error_text(const std::string &text, std::chrono::seconds deadline) const
{
	const auto end = std::chrono::steady_clock::now() + deadline;
	while (errors().find(text) == std::string::npos) {
		if (std::chrono::steady_clock::now() > end)
			return false;
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
	}
	return true;
}

std::string ToolRun::output() const
{
	return read_text(dir_ + "/out").value_or("");
}

std::string ToolRun::errors() const
{
	return read_text(dir_ + "/err").value_or("");
}
