// SPDX-License-Identifier: MIT
#include "latency/guardian.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <system_error>

#include "text_file.hpp"

namespace slice_ext::tool::latency
{

namespace
{

// What a message, and an entry of the list, is about.
constexpr char kFile = 'f';    // path, NUL, old content
constexpr char kGroup = 'g';   // process group
constexpr char kCgroup = 'c';  // directory
constexpr char kRestore = 'r'; // now, and answer
constexpr std::size_t kMaxMessage = 64 * 1024;

using Changes = std::vector<std::pair<char, std::string>>;

void nap_ms(long ms)
{
	const timespec pause = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&pause, nullptr);
}

std::string remove_cgroup(const std::string &directory)
{
	// Gone, or never made because the run was killed just before.
	for (int tries = 0; tries < 100; ++tries) {
		write_text(directory + "/cgroup.kill", "1");
		if (rmdir(directory.c_str()) == 0 || errno == ENOENT)
			return "";
		nap_ms(20);
	}
	return "cannot remove " + directory + "; ";
}

std::string undo(const std::pair<char, std::string> &change)
{
	const auto &[what, text] = change;
	if (what == kGroup) {
		kill(-std::atoi(text.c_str()), SIGKILL);
		return "";
	}
	if (what == kCgroup)
		return remove_cgroup(text);
	const std::size_t end = text.find('\0');
	const std::string path = text.substr(0, end);
	const int error = write_text(path, text.substr(end + 1));
	if (error == 0)
		return "";
	return "cannot write " + path + " back: " + std::generic_category().message(error) + "; ";
}

// The load first: it must not run with the old values.
std::string undo_all(Changes &changes)
{
	std::string trouble;
	for (const bool files : {false, true})
		for (auto change = changes.rbegin(); change != changes.rend(); ++change)
			if ((change->first == kFile) == files)
				trouble += undo(*change);
	changes.clear();
	return trouble;
}

[[noreturn]] void guard(int socket)
{
	setsid();
	prctl(PR_SET_NAME, "slice-ext-guard");
	for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
		signal(number, SIG_IGN);

	Changes changes;
	std::string buffer(kMaxMessage, '\0');
	while (true) {
		const ssize_t length = recv(socket, buffer.data(), buffer.size(), 0);
		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			break;
		std::string answer = "+";
		if (buffer[0] == kRestore)
			answer += undo_all(changes);
		else
			changes.emplace_back(buffer[0], buffer.substr(1, static_cast<std::size_t>(length) - 1));
		if (send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0)
			break;
	}
	undo_all(changes);
	_exit(0);
}

// Where this process is in the unified hierarchy; "" without one.
std::string own_cgroup()
{
	const std::string mount = "/sys/fs/cgroup";
	if (access((mount + "/cgroup.controllers").c_str(), R_OK) != 0)
		return "";
	const std::optional<std::string> text = read_text("/proc/self/cgroup");
	if (!text)
		return "";
	const std::size_t start = text->find("0::");
	if (start == std::string::npos || (start > 0 && (*text)[start - 1] != '\n'))
		return "";
	const std::size_t end = text->find('\n', start);
	std::string path = text->substr(start + 3, end - start - 3);
	return mount + (path == "/" ? "" : path);
}

} // namespace

Guardian::Guardian()
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		throw std::system_error(errno, std::generic_category(), "socketpair");
	pid_ = fork();
	if (pid_ == 0) {
		close(sockets[0]);
		guard(sockets[1]);
	}
	const int error = errno;
	close(sockets[1]);
	socket_ = sockets[0];
	if (pid_ < 0) {
		close(socket_);
		throw std::system_error(error, std::generic_category(), "fork");
	}
}

Guardian::~Guardian()
{
	restore();
	close(socket_);
	waitpid(pid_, nullptr, 0);
}

bool Guardian::alive() const
{
	pollfd watched = {socket_, 0, 0};
	return poll(&watched, 1, 0) == 0;
}

// Returns when the guardian knows. A dead one is no reason to fail here: alive() tells, and the
// list is kept in this process as well.
void Guardian::tell(char what, const std::string &text)
{
	const std::string message = what + text;
	char answer;
	changes_.emplace_back(what, text);
	if (message.size() > kMaxMessage)
		throw std::system_error(EMSGSIZE, std::generic_category(), text.substr(0, text.find('\0')));
	if (send(socket_, message.data(), message.size(), MSG_NOSIGNAL) >= 0)
		while (recv(socket_, &answer, 1, 0) < 0 && errno == EINTR) {
		}
}

void Guardian::set(const std::string &path, const std::string &value)
{
	const std::optional<std::string> old = read_text(path);
	if (!old)
		throw std::system_error(errno, std::generic_category(), path);
	tell(kFile, path + '\0' + *old);
	if (const int error = write_text(path, value))
		throw std::system_error(error, std::generic_category(),
		                        "cannot write \"" + value + "\" to " + path);
}

std::string Guardian::make_cgroup()
{
	const std::string parent = own_cgroup();
	if (parent.empty())
		return "";
	const std::string directory = parent + "/slice-ext-latency-" + std::to_string(getpid());
	tell(kCgroup, directory);
	if (mkdir(directory.c_str(), 0755) != 0)
		return "";
	return access((directory + "/cgroup.procs").c_str(), W_OK) == 0 ? directory : "";
}

void Guardian::watch(pid_t group)
{
	tell(kGroup, std::to_string(group));
}

std::string Guardian::restore()
{
	std::string answer(kMaxMessage, '\0');
	const char message = kRestore;
	if (send(socket_, &message, 1, MSG_NOSIGNAL) == 1) {
		ssize_t length;
		while ((length = recv(socket_, answer.data(), answer.size(), 0)) < 0 &&
		       errno == EINTR) {
		}
		if (length > 0) {
			changes_.clear();
			return answer.substr(1, static_cast<std::size_t>(length) - 1);
		}
	}
	return undo_all(changes_);
}

} // namespace slice_ext::tool::latency
