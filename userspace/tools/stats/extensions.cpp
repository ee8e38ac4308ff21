// SPDX-License-Identifier: MIT
#include "stats/extensions.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <stdexcept>

namespace slice_ext::tool
{

namespace
{

constexpr std::string_view kGrant = "sched_preempt_delay_grant: comm=";
constexpr std::string_view kDeny = "sched_preempt_delay_deny: comm=";
constexpr std::string_view kEnd = "sched_preempt_delay_end: comm=";
constexpr std::string_view kAnyEvent = "sched_preempt_delay_";
// TASK_COMM_LEN of the kernel, which the name of a thread with its final zero fits into.
constexpr auto kNameSize = 16;

bool starts_with(std::string_view text, std::string_view prefix)
{
	return text.substr(0, prefix.size()) == prefix;
}

template <typename Number> std::optional<Number> parse_number(std::string_view text)
{
	Number value = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
	if (error != std::errc{} || end != text.data() + text.size())
		return std::nullopt;
	return value;
}

// Cuts the last " KEY=value" off TEXT. From the end, because a thread can be named like a field.
std::optional<std::string_view> cut_field(std::string_view &text, std::string_view key)
{
	const std::size_t at = text.rfind(key);
	if (at == std::string_view::npos)
		return std::nullopt;
	const std::string_view value = text.substr(at + key.size());
	text = text.substr(0, at);
	if (value.empty() || value.find_first_of(" \n") != std::string_view::npos)
		return std::nullopt;
	return value;
}

bool cut_suffix(std::string_view &text, std::string_view suffix)
{
	if (text.size() < suffix.size() || text.substr(text.size() - suffix.size()) != suffix)
		return false;
	text.remove_suffix(suffix.size());
	return true;
}

std::optional<std::uint64_t> cut_ns(std::string_view &text, std::string_view key)
{
	if (!cut_suffix(text, " [ns]"))
		return std::nullopt;
	const auto value = cut_field(text, key);
	return value ? parse_number<std::uint64_t>(*value) : std::nullopt;
}

// Whether what is left of an event is the name of a thread and its ID.
bool is_thread(std::string_view text)
{
	const auto id = cut_field(text, " pid=");
	return id && parse_number<int>(*id) && text.size() < kNameSize;
}

bool take_event(std::string_view event, Extensions &extensions)
{
	if (starts_with(event, kGrant)) {
		event.remove_prefix(kGrant.size());
		const auto length = cut_ns(event, " length=");
		if (!length || !is_thread(event))
			return false;
		++extensions.granted[*length];
		return true;
	}
	const bool ended = starts_with(event, kEnd);
	if (!ended && !starts_with(event, kDeny))
		return false;
	event.remove_prefix((ended ? kEnd : kDeny).size());
	const auto used = ended ? cut_ns(event, " used=") : std::nullopt;
	const auto reason = cut_field(event, " reason=");
	if ((ended && !used) || !reason || !is_thread(event))
		return false;
	if (ended)
		extensions.ended[std::string(*reason)].record(*used);
	else
		++extensions.denied[std::string(*reason)];
	return true;
}

// "CPU:1 [LOST 23 EVENTS]", or without the number where the kernel does not know it.
bool take_loss(std::string_view line, Extensions &extensions)
{
	if (!starts_with(line, "CPU:") || !cut_suffix(line, " EVENTS]"))
		return false;
	const std::size_t bracket = line.find(" [LOST");
	if (bracket == std::string_view::npos || !parse_number<unsigned>(line.substr(4, bracket - 4)))
		return false;
	line.remove_prefix(bracket + 6);
	if (line.empty()) {
		++extensions.lost;
		return true;
	}
	const auto number = line.front() == ' ' ? parse_number<std::uint64_t>(line.substr(1))
	                                        : std::nullopt;
	extensions.lost += number.value_or(0);
	return number.has_value();
}

} // namespace

void Ends::record(std::uint64_t ns)
{
	++by_us[ns / 1000];
	used_ns.record(ns);
}

void Ends::merge(const Ends &other)
{
	for (const auto &[microsecond, count] : other.by_us)
		by_us[microsecond] += count;
	used_ns.merge(other.used_ns);
}

std::uint64_t Extensions::grants() const
{
	std::uint64_t sum = 0;
	for (const auto &[length, count] : granted)
		sum += count;
	return sum;
}

std::uint64_t Extensions::denials() const
{
	std::uint64_t sum = 0;
	for (const auto &[reason, count] : denied)
		sum += count;
	return sum;
}

Ends Extensions::ends() const
{
	Ends all;
	for (const auto &[reason, ends] : ended)
		all.merge(ends);
	return all;
}

void TraceReader::read(std::string_view text)
{
	for (;;) {
		const std::size_t end = text.find('\n');
		line_ += text.substr(0, end);
		if (end == std::string_view::npos)
			return;
		++lines_;
		take_line(line_);
		line_.clear();
		text.remove_prefix(end + 1);
	}
}

void TraceReader::take_line(std::string_view line)
{
	if (event_.empty()) {
		event_line_ = lines_;
		if (line.empty() || take_loss(line, extensions_))
			return;
		event_ = line;
	} else {
		if (starts_with(line, kAnyEvent))
			malformed();
		event_ += '\n';
		event_ += line;
	}
	if (take_event(event_, extensions_))
		event_.clear();
	else if (!starts_with(event_, kAnyEvent) ||
	         std::count(event_.begin(), event_.end(), '\n') >= kNameSize)
		malformed();
}

void TraceReader::malformed() const
{
	throw std::runtime_error("line " + std::to_string(event_line_) +
	                         " of the trace is no event of preemption delay that this program "
	                         "knows: '" +
	                         event_.substr(0, event_.find('\n')) + "'");
}

void TraceReader::finish() const
{
	if (!event_.empty())
		malformed();
	if (!line_.empty())
		throw std::runtime_error("the trace ends in the middle of line " +
		                         std::to_string(lines_ + 1) + ": '" + line_ + "'");
}

} // namespace slice_ext::tool
