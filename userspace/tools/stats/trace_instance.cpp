// SPDX-License-Identifier: MIT
#include "stats/trace_instance.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "exit_status.hpp"
#include "refusal.hpp"
#include "text_file.hpp"

namespace slice_ext::tool
{

namespace
{

namespace fs = std::filesystem;

constexpr const char *kNamePrefix = "slice-ext-";
constexpr const char *kEvents[] = {"grant", "deny", "end"};

std::system_error failed(int error, const std::string &path)
{
	return std::system_error(error, std::generic_category(), path);
}

Refusal no_right(const std::string &path)
{
	return {kExitNoPermission, path + ": " + std::strerror(EACCES) +
	                                   "; tracing needs root: run it with sudo"};
}

std::string event_directory(const std::string &base, const char *event)
{
	return base + "/events/sched/sched_preempt_delay_" + event;
}

// The process may be one that nobody can see from here. But while it reads, the kernel refuses to
// remove its instance.
void remove_leftovers(const std::string &instances)
{
	std::error_code ignored;
	for (const fs::directory_entry &entry : fs::directory_iterator(instances, ignored)) {
		const std::string name = entry.path().filename();
		if (name.rfind(kNamePrefix, 0) != 0)
			continue;
		const auto pid = parse_integer(name.substr(std::strlen(kNamePrefix)));
		if (!pid || *pid <= 0)
			continue;
		if (*pid == getpid() || (kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH))
			rmdir(entry.path().c_str());
	}
}

} // namespace

std::string find_tracefs(const std::string &root)
{
	const std::string usual = root + "/sys/kernel/tracing";
	for (const std::string &path : {usual, root + "/sys/kernel/debug/tracing"}) {
		if (access((path + "/instances").c_str(), W_OK) == 0)
			return path;
		if (errno == EACCES || errno == EROFS)
			throw no_right(path);
	}
	if (access(usual.c_str(), F_OK) != 0)
		throw Refusal{kExitUnavailable,
		              usual + " does not exist: this kernel cannot trace\nnext step: boot one "
		                      "with CONFIG_FTRACE=y and CONFIG_EVENT_TRACING=y"};
	throw Refusal{kExitUnavailable, "tracefs is not mounted\nnext step: mount -t tracefs tracefs " +
	                                        usual};
}

TraceInstance::TraceInstance(const std::string &tracefs)
{
	for (const char *event : kEvents) {
		const std::string directory = event_directory(tracefs, event);
		if (access(directory.c_str(), F_OK) != 0)
			throw Refusal{kExitUnavailable,
			              "this kernel does not have the tracepoint sched:sched_preempt_delay_" +
			                      std::string(event) +
			                      "\nnext step: boot one with the slice-ext series up to "
			                      "\"sched: Trace preemption delays\" and "
			                      "CONFIG_SCHED_PREEMPT_DELAY=y"};
	}
	const std::string instances = tracefs + "/instances";
	remove_leftovers(instances);
	const std::string path = instances + "/" + kNamePrefix + std::to_string(getpid());
	if (mkdir(path.c_str(), 0700) != 0) {
		if (errno == EACCES || errno == EPERM)
			throw no_right(instances);
		throw failed(errno, path);
	}
	path_ = path;
	try {
		set("tracing_on", "0");
		// An instance starts with the options of the machine's own trace.
		set("options/context-info", "0");
		for (const char *option :
		     {"raw", "hex", "bin", "fields", "stacktrace", "userstacktrace"})
			if (access((path_ + "/options/" + option).c_str(), F_OK) == 0)
				set(std::string("options/") + option, "0");
		pipe_ = open((path_ + "/trace_pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (pipe_ < 0)
			throw failed(errno, path_ + "/trace_pipe");
	} catch (...) {
		remove();
		throw;
	}
}

TraceInstance::~TraceInstance()
{
	remove();
}

// Takes its events and buffers with it.
void TraceInstance::remove()
{
	if (pipe_ >= 0)
		close(pipe_);
	rmdir(path_.c_str());
}

void TraceInstance::set(const std::string &file, const std::string &value) const
{
	if (const int error = write_text(path_ + "/" + file, value))
		throw failed(error, path_ + "/" + file);
}

void TraceInstance::only(const std::vector<pid_t> &threads, bool forked)
{
	if (forked)
		set("options/event-fork", "1");
	std::string list;
	for (const pid_t thread : threads)
		list += std::to_string(thread) + "\n";
	if (!list.empty())
		set("set_event_pid", list);
}

void TraceInstance::start()
{
	for (const char *event : kEvents)
		set(event_directory("", event).substr(1) + "/enable", "1");
	set("tracing_on", "1");
}

void TraceInstance::stop()
{
	set("tracing_on", "0");
}

std::string TraceInstance::read()
{
	char buffer[65536];
	ssize_t got;
	do {
		got = ::read(pipe_, buffer, sizeof buffer);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno != EAGAIN)
		throw failed(errno, path_ + "/trace_pipe");
	return std::string(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
}

std::uint64_t TraceInstance::overruns() const
{
	std::uint64_t sum = 0;
	for (const fs::directory_entry &cpu : fs::directory_iterator(path_ + "/per_cpu")) {
		std::istringstream lines(read_text(cpu.path().string() + "/stats").value_or(""));
		for (std::string line; std::getline(lines, line);)
			for (const char *key : {"overrun: ", "dropped events: "})
				if (line.rfind(key, 0) == 0)
					sum += static_cast<std::uint64_t>(
						parse_integer(line.substr(std::strlen(key)))
							.value_or(0));
	}
	return sum;
}

} // namespace slice_ext::tool
