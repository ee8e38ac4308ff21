// SPDX-License-Identifier: MIT
#include "kernel_counters.hpp"

#include <charconv>
#include <cstring>
#include <functional>

#include "text_file.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr std::string_view kTaskPrefix = "preempt_delay.";
constexpr std::string_view kBlank = " \t";

std::vector<std::string_view> words(std::string_view line)
{
	std::vector<std::string_view> result;
	for (;;) {
		const std::size_t begin = line.find_first_not_of(kBlank);
		if (begin == std::string_view::npos)
			return result;
		line.remove_prefix(begin);
		const std::size_t end = line.find_first_of(kBlank);
		result.push_back(line.substr(0, end));
		if (end == std::string_view::npos)
			return result;
		line.remove_prefix(end);
	}
}

// Calls EACH(line, number) until it returns false.
void for_each_line(std::string_view text,
                   const std::function<bool(std::string_view, unsigned)> &each)
{
	unsigned number = 1;
	while (!text.empty()) {
		const std::size_t end = text.find('\n');
		if (!each(text.substr(0, end), number++))
			return;
		if (end == std::string_view::npos)
			return;
		text.remove_prefix(end + 1);
	}
}

std::optional<std::uint64_t> parse_count(std::string_view word)
{
	std::uint64_t value = 0;
	const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
	if (error != std::errc{} || end != word.data() + word.size())
		return std::nullopt;
	return value;
}

std::string at_line(unsigned number, const std::string &what)
{
	return "line " + std::to_string(number) + ": " + what;
}

std::string cannot_read(const std::string &path)
{
	return path + ": " + std::strerror(errno);
}

std::string parse_header(std::string_view line, MachineCounters &counters)
{
	for (const std::string_view word : words(line)) {
		const std::optional<std::uint64_t> cpu =
			word.substr(0, 3) == "CPU" ? parse_count(word.substr(3)) : std::nullopt;
		if (!cpu || *cpu > INT32_MAX)
			return "'" + std::string(word) + "' is not a CPU column";
		counters.cpus.push_back(static_cast<int>(*cpu));
	}
	return counters.cpus.empty() ? "no CPU column" : "";
}

std::string parse_row(std::string_view line, MachineCounters &counters)
{
	const std::vector<std::string_view> row = words(line);
	if (row.empty())
		return "";
	std::string_view name = row.front();
	if (name.size() < 2 || name.back() != ':')
		return "'" + std::string(name) + "' is not the name of a counter";
	name.remove_suffix(1);
	if (row.size() - 1 != counters.cpus.size())
		return std::to_string(row.size() - 1) + " values for " +
		       std::to_string(counters.cpus.size()) + " CPUs";
	std::vector<std::uint64_t> values;
	for (std::size_t i = 1; i < row.size(); ++i) {
		const std::optional<std::uint64_t> value = parse_count(row[i]);
		if (!value)
			return "'" + std::string(row[i]) + "' is not a count";
		values.push_back(*value);
	}
	if (!counters.rows.emplace(name, std::move(values)).second)
		return "counter '" + std::string(name) + "' appears twice";
	return "";
}

} // namespace

Counters MachineCounters::total() const
{
	Counters sums;
	for (const auto &[name, values] : rows) {
		std::uint64_t &sum = sums[name];
		for (const std::uint64_t value : values)
			sum += value;
	}
	return sums;
}

Parsed<MachineCounters> parse_preempt_delay(std::string_view text)
{
	MachineCounters counters;
	std::string error = "empty";
	for_each_line(text, [&](std::string_view line, unsigned number) {
		error = number == 1 ? parse_header(line, counters) : parse_row(line, counters);
		if (!error.empty())
			error = at_line(number, error);
		return error.empty();
	});
	if (error.empty() && counters.rows.empty())
		error = "no counters";
	if (!error.empty())
		return {std::nullopt, error};
	return {std::move(counters), ""};
}

Parsed<Counters> parse_task_sched(std::string_view text)
{
	Counters counters;
	std::string error;
	for_each_line(text, [&](std::string_view line, unsigned number) {
		const std::string_view content = trimmed(line);
		if (content.substr(0, kTaskPrefix.size()) != kTaskPrefix)
			return true;
		const std::size_t colon = content.find(':');
		if (colon == std::string_view::npos) {
			error = at_line(number, "no value");
			return false;
		}
		const std::string name(
			trimmed(content.substr(kTaskPrefix.size(), colon - kTaskPrefix.size())));
		const std::string_view text_value = trimmed(content.substr(colon + 1));
		const std::optional<std::uint64_t> value = parse_count(text_value);
		if (name.empty() || !value)
			error = at_line(number, "'" + std::string(text_value) + "' is not a count");
		else if (!counters.emplace(name, *value).second)
			error = at_line(number, "counter '" + name + "' appears twice");
		return error.empty();
	});
	if (error.empty() && counters.empty())
		error = kNoTaskCounters;
	if (!error.empty())
		return {std::nullopt, error};
	return {std::move(counters), ""};
}

Parsed<Counters> read_machine_counters(const std::string &proc)
{
	const std::string path = proc + "/preempt_delay";
	const std::optional<std::string> text = read_text(path);
	if (!text)
		return {std::nullopt, cannot_read(path)};
	Parsed<MachineCounters> parsed = parse_preempt_delay(*text);
	if (!parsed.value)
		return {std::nullopt, path + ": " + parsed.error};
	return {parsed.value->total(), ""};
}

Parsed<Counters> read_own_counters(const std::string &proc)
{
	const std::string path = proc + "/thread-self/sched";
	const std::optional<std::string> text = read_text(path);
	if (!text)
		return {std::nullopt, cannot_read(path)};
	Parsed<Counters> parsed = parse_task_sched(*text);
	if (!parsed.value)
		parsed.error = path + ": " + parsed.error;
	return parsed;
}

Counters operator-(const Counters &after, const Counters &before)
{
	Counters difference;
	for (const auto &[name, value] : after) {
		const auto old = before.find(name);
		const std::uint64_t from = old == before.end() ? 0 : old->second;
		difference[name] = value > from ? value - from : 0;
	}
	return difference;
}

Counters &operator+=(Counters &sum, const Counters &more)
{
	for (const auto &[name, value] : more)
		sum[name] += value;
	return sum;
}

CounterSummary summarize(const Counters &counters)
{
	const auto named = [&](const char *name) -> std::optional<std::uint64_t> {
		const auto found = counters.find(name);
		return found == counters.end() ? std::nullopt : std::optional(found->second);
	};
	CounterSummary summary;
	summary.requests = named("requests");
	summary.granted = named("granted");
	summary.kept = named("kept");
	summary.yielded = named("ended_yield");
	summary.expired = named("ended_expired");
	for (const auto &[name, value] : counters)
		if (name.rfind("denied_", 0) == 0)
			summary.denied = summary.denied.value_or(0) + value;
	return summary;
}

} // namespace slice_ext::tool
