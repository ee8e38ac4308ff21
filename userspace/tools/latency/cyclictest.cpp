// SPDX-License-Identifier: MIT
#include "latency/cyclictest.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <system_error>

#include "cpu_list.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

// cyclictest's own limit on the number of buckets.
constexpr std::uint64_t kMaxBuckets = 1000000;

std::uint64_t histogram_end(const CyclictestRun &run)
{
	return std::min<std::uint64_t>(std::uint64_t(run.histogram_us) * 1000, kMaxBuckets);
}

[[noreturn]] void refuse(const std::string &origin, const std::string &what)
{
	throw CyclictestError(origin + ": " + what);
}

// In some versions the names of members end in a colon.
const json *find(const json &object, const std::string &key)
{
	for (const std::string &name : {key, key + ":"})
		if (object.contains(name))
			return &object.at(name);
	return nullptr;
}

template <typename T> T number(const json &object, const char *key, const std::string &origin)
{
	const json *value = find(object, key);
	if (!value || !value->is_number())
		refuse(origin, std::string("has no number \"") + key + "\"");
	if constexpr (std::is_unsigned_v<T>) {
		if (value->get<double>() < 0)
			refuse(origin, std::string("\"") + key + "\" is negative");
	}
	return value->get<T>();
}

ThreadLatencies thread_of(const json &object, unsigned number_of_thread, std::uint64_t width,
                          const std::string &origin, const CyclictestRun &run)
{
	ThreadLatencies thread;
	thread.thread = number_of_thread;
	thread.cpu = number<int>(object, "cpu", origin);
	thread.cycles = number<std::uint64_t>(object, "cycles", origin);
	thread.min = number<std::uint64_t>(object, "min", origin) * width;
	thread.max = number<std::uint64_t>(object, "max", origin) * width;
	thread.average = number<double>(object, "avg", origin) * static_cast<double>(width);
	thread.bucket_width = width;
	thread.histogram_end = histogram_end(run);

	if (thread.cycles < run.loops)
		refuse(origin, "was interrupted after " + std::to_string(thread.cycles) + " of " +
		                       std::to_string(run.loops) + " cycles");
	const json *buckets = find(object, "histogram");
	if (!buckets || !buckets->is_object())
		refuse(origin, "has no histogram");
	std::uint64_t sum = 0;
	for (const auto &bucket : buckets->items()) {
		char *end = nullptr;
		const std::uint64_t edge = std::strtoull(bucket.key().c_str(), &end, 10);
		if (bucket.key().empty() || *end || !bucket.value().is_number_unsigned())
			refuse(origin, "bucket \"" + bucket.key() + "\" is no count of a latency");
		if (bucket.value() != 0u)
			thread.histogram.emplace_back(edge * width, bucket.value());
		sum += bucket.value().get<std::uint64_t>();
	}
	std::sort(thread.histogram.begin(), thread.histogram.end());
	if (sum > thread.cycles)
		refuse(origin, "the buckets hold " + std::to_string(sum) + " samples of " +
		                       std::to_string(thread.cycles) + " cycles");
	thread.overflow = thread.cycles - sum;
	if (thread.overflow && thread.max < thread.histogram_end)
		refuse(origin, "misses " + std::to_string(thread.overflow) +
		                       " samples, but none was above the histogram");
	return thread;
}

} // namespace

std::vector<std::string> cyclictest_command(const CyclictestRun &run, const std::string &json_path)
{
	std::vector<std::string> command = {
		"cyclictest",
		"--quiet",
		"--mlockall",
		"--nsecs",
		"--threads=" + std::to_string(run.cpus.size()),
		"--affinity=" + format_cpu_list(run.cpus),
		"--priority=" + std::to_string(run.priority),
		"--interval=" + std::to_string(run.interval_us),
		"--distance=0",
		"--loops=" + std::to_string(run.loops),
		"--histogram=" + std::to_string(histogram_end(run)),
		"--json=" + json_path,
	};
	command.insert(command.end(), run.more.begin(), run.more.end());
	return command;
}

std::vector<ThreadLatencies> parse_cyclictest(const std::string &text, const std::string &origin,
                                              const CyclictestRun &run)
{
	if (text.empty())
		refuse(origin, "is empty");
	const json file = json::parse(text, nullptr, false);
	if (file.is_discarded())
		refuse(origin, "is truncated, or no JSON at all");
	if (!file.is_object() || !find(file, "thread") || !find(file, "cmdline"))
		refuse(origin, "was not written by cyclictest");
	if (number<int>(file, "return_code", origin) != 0)
		refuse(origin, "cyclictest failed with return code " +
		                       find(file, "return_code")->dump());
	const json &threads = *find(file, "thread");
	if (!threads.is_object() || threads.empty() ||
	    number<unsigned>(file, "num_threads", origin) == 0)
		refuse(origin, "has no threads");
	if (threads.size() != number<unsigned>(file, "num_threads", origin))
		refuse(origin, "has " + std::to_string(threads.size()) + " of " +
		                       find(file, "num_threads")->dump() + " threads");

	const json &cmdline = *find(file, "cmdline");
	const bool nanoseconds =
		cmdline.is_string() && (cmdline.get<std::string>().find("--nsecs") != std::string::npos ||
	                                cmdline.get<std::string>().find(" -N") != std::string::npos);
	std::vector<ThreadLatencies> found;
	for (unsigned i = 0; i < threads.size(); ++i) {
		const std::string name = std::to_string(i);
		if (!find(threads, name))
			refuse(origin, "has no thread " + name);
		found.push_back(thread_of(*find(threads, name), i, nanoseconds ? 1 : 1000,
		                          origin + ": thread " + name, run));
	}
	return found;
}

std::vector<ThreadLatencies> read_cyclictest(const std::string &path, const CyclictestRun &run)
{
	std::ifstream file(path);
	if (!file)
		refuse(path, "cyclictest left no result: " + std::generic_category().message(errno));
	std::stringstream text;
	text << file.rdbuf();
	return parse_cyclictest(text.str(), path, run);
}

} // namespace slice_ext::tool::latency
