// SPDX-License-Identifier: MIT
#include "stats/sample.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <slice_ext/slice_ext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <tuple>

#include "exit_status.hpp"
#include "refusal.hpp"
#include "text_file.hpp"

namespace slice_ext::tool
{

namespace
{

std::int64_t now_ns(clockid_t clock)
{
	timespec now = {};
	clock_gettime(clock, &now);
	return std::int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Sample empty_sample()
{
	Sample sample;
	sample.monotonic_ns = now_ns(CLOCK_MONOTONIC);
	sample.realtime_ns = now_ns(CLOCK_REALTIME);
	return sample;
}

bool starts_with(const std::string &text, const char *prefix)
{
	return text.rfind(prefix, 0) == 0;
}

Refusal cannot_read(const std::string &path, int error)
{
	const bool right = error == EACCES || error == EPERM;
	return {right ? kExitNoPermission : kExitFailed,
	        path + ": " + std::strerror(error) + (right ? "; run it as root" : "")};
}

// Why there are no counters in PATH.
Refusal not_counted(const std::string &path)
{
	const slice_ext_reason reason = slice_ext_query(nullptr);
	if (reason == SLICE_EXT_KERNEL_WITHOUT || reason == SLICE_EXT_UNSUPPORTED_ARCH)
		return {kExitUnavailable, std::string("no counters in ") + path + ": " +
		                                  slice_ext_reason_text(reason) +
		                                  "\nnext step: " + slice_ext_reason_hint(reason)};
	return {kExitUnavailable,
	        "no counters in " + path +
	                ", although the kernel has time slice extension\nnext step: boot a kernel with "
	                "the slice-ext series (Linux 7.x has other counters); those of threads need "
	                "CONFIG_SCHED_DEBUG=y too"};
}

// "Z" and "X" are threads that only have to be waited for.
bool lives(const std::string &stat)
{
	const std::size_t name_end = stat.rfind(") ");
	return name_end != std::string::npos && stat[name_end + 2] != 'Z' &&
	       stat[name_end + 2] != 'X';
}

bool is_gone(int error)
{
	return error == ENOENT || error == ESRCH;
}

} // namespace

Counters Sample::total() const
{
	Counters sum;
	for (const auto &[column, counters] : columns)
		sum += counters;
	return sum;
}

Change change_between(const Sample &before, const Sample &after)
{
	Change change;
	change.seconds = static_cast<double>(after.monotonic_ns - before.monotonic_ns) / 1e9;
	for (const auto &[column, counters] : after.columns) {
		const auto old = before.columns.find(column);
		const Counters from = old == before.columns.end() ? Counters{} : old->second;
		Counters difference = counters - from;
		for (const auto &[name, value] : from) {
			const auto now = counters.find(name);
			if (now != counters.end() && now->second < value) {
				change.backwards.insert(name);
				difference.erase(name);
			}
		}
		change.sum += difference;
		change.columns[column] = std::move(difference);
	}
	for (const std::string &name : change.backwards)
		change.sum.erase(name);
	return change;
}

Shares shares_of(const Counters &counters)
{
	const auto share = [](std::optional<std::uint64_t> part, std::optional<std::uint64_t> whole) {
		return part && whole && *whole != 0
		               ? std::optional(static_cast<double>(*part) /
		                               static_cast<double>(*whole))
		               : std::nullopt;
	};
	std::uint64_t ends = 0;
	for (const auto &[name, value] : counters)
		if (starts_with(name, "ended_"))
			ends += value;
	const CounterSummary summary = summarize(counters);
	return {share(summary.granted, summary.requests), share(summary.yielded, ends),
	        share(summary.expired, ends)};
}

std::vector<std::string> shown_order(const Counters &counters)
{
	const auto rank = [](const std::string &name) {
		int place = 0;
		for (const char *known : {"requests", "granted", "kept", "denied_", "ended_"}) {
			if (starts_with(name, known))
				break;
			++place;
		}
		return std::tuple(place, name);
	};
	std::vector<std::string> names;
	for (const auto &[name, value] : counters)
		names.push_back(name);
	std::sort(names.begin(), names.end(), [&rank](const std::string &a, const std::string &b) {
		return rank(a) < rank(b);
	});
	return names;
}

Sample sample_machine(const std::string &proc)
{
	Sample sample = empty_sample();
	const std::string path = proc + "/preempt_delay";
	const std::optional<std::string> text = read_text(path);
	if (!text)
		throw errno == ENOENT ? not_counted(path) : cannot_read(path, errno);
	const Parsed<MachineCounters> parsed = parse_preempt_delay(*text);
	if (!parsed.value)
		throw Refusal{kExitFailed, path + ": " + parsed.error};
	for (const auto &[name, values] : parsed.value->rows)
		for (std::size_t i = 0; i < values.size(); ++i)
			sample.columns[parsed.value->cpus[i]][name] = values[i];
	return sample;
}

ThreadSampler::ThreadSampler(int id, bool whole_process, const std::string &proc)
	: id_(id), whole_process_(whole_process)
{
	std::string path = proc + "/" + std::to_string(id);
	if (!whole_process)
		path += "/task/" + std::to_string(id);
	directory_ = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory_ < 0 && is_gone(errno))
		throw Refusal{kExitFailed, std::string("there is no ") +
		                                   (whole_process ? "process " : "thread ") +
		                                   std::to_string(id) +
		                                   "; ps -eLf shows those there are"};
	if (directory_ < 0)
		throw cannot_read(path, errno);
	// Through the descriptor: the number may belong to somebody else later.
	path_ = "/proc/self/fd/" + std::to_string(directory_);
	name_ = trimmed(read_text(path_ + "/comm").value_or(""));
}

ThreadSampler::~ThreadSampler()
{
	close(directory_);
}

std::vector<int> ThreadSampler::threads() const
{
	std::vector<int> ids;
	if (!whole_process_) {
		if (access((path_ + "/stat").c_str(), F_OK) == 0)
			ids.push_back(id_);
		return ids;
	}
	DIR *tasks = opendir((path_ + "/task").c_str());
	if (tasks == nullptr) {
		if (is_gone(errno))
			return ids;
		throw cannot_read("the threads of process " + std::to_string(id_), errno);
	}
	while (const dirent *entry = readdir(tasks))
		if (const std::optional<std::int64_t> number = parse_integer(entry->d_name))
			ids.push_back(static_cast<int>(*number));
	closedir(tasks);
	return ids;
}

Sample ThreadSampler::sample() const
{
	Sample sample = empty_sample();
	sample.ended = true;
	for (const int id : threads()) {
		const std::string thread = std::to_string(id);
		const std::string path = whole_process_ ? path_ + "/task/" + thread : path_;
		const std::optional<std::string> stat = read_text(path + "/stat");
		if (!stat)
			continue;
		const std::optional<std::string> text = read_text(path + "/sched");
		if (!text && is_gone(errno)) {
			if (access((path + "/stat").c_str(), F_OK) == 0)
				throw not_counted("/proc/" + thread + "/sched");
			continue;
		}
		if (!text)
			throw cannot_read("/proc/" + thread + "/sched", errno);
		Parsed<Counters> parsed = parse_task_sched(*text);
		if (!parsed.value && parsed.error == kNoTaskCounters)
			throw not_counted("/proc/" + thread + "/sched");
		if (!parsed.value)
			throw Refusal{kExitFailed, "/proc/" + thread + "/sched: " + parsed.error};
		sample.columns[id] = std::move(*parsed.value);
		sample.ended = sample.ended && !lives(*stat);
	}
	return sample;
}

} // namespace slice_ext::tool
