// SPDX-License-Identifier: MIT
#include "bench/options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "text_file.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr std::int64_t kMaxThreads = 64;
constexpr double kShortestSection = 50;
constexpr double kLongestSection = 10e6;

std::vector<std::string> split(std::string_view text)
{
	std::vector<std::string> items;
	for (;;) {
		const std::size_t comma = text.find(',');
		items.emplace_back(text.substr(0, comma));
		if (comma == std::string_view::npos)
			return items;
		text.remove_prefix(comma + 1);
	}
}

template <typename Value>
void add_once(std::vector<Value> &values, Value value, const std::string &text)
{
	if (std::find(values.begin(), values.end(), value) != values.end())
		throw std::invalid_argument("'" + text + "' is there twice");
	values.push_back(value);
}

std::uint64_t parse_section(const std::string &text)
{
	char *unit = nullptr;
	const double number = std::strtod(text.c_str(), &unit);
	const std::string name = unit;
	const double factor = name == "ns" ? 1 : name == "us" ? 1e3 : name == "ms" ? 1e6 : 0;
	if (unit == text.c_str() || factor == 0 || !std::isfinite(number))
		throw std::invalid_argument("'" + text +
		                            "' is not a length; write it like 200ns, 20us, 1ms");
	const double ns = std::round(number * factor);
	if (ns < kShortestSection || ns > kLongestSection)
		throw std::invalid_argument("a section is 50ns to 10ms long, not " + text);
	return static_cast<std::uint64_t>(ns);
}

} // namespace

const char *bench_mode_name(BenchMode mode)
{
	switch (mode) {
	case BenchMode::off:
		return "off";
	case BenchMode::on:
		return "on";
	case BenchMode::on_while_waiting:
		return "on-while-waiting";
	}
	return "?";
}

std::vector<unsigned> parse_thread_counts(std::string_view text)
{
	std::vector<unsigned> counts;
	for (const std::string &item : split(text)) {
		const std::size_t dash = item.find('-', 1);
		const auto first = parse_integer(item.substr(0, dash));
		const auto last =
			dash == std::string::npos ? first : parse_integer(item.substr(dash + 1));
		if (!first || !last)
			throw std::invalid_argument(
				"'" + item + "' is not a number of threads; write it like 1,2,4,8");
		if (*first < 1 || *last > kMaxThreads || *first > *last)
			throw std::invalid_argument("1 to " + std::to_string(kMaxThreads) +
			                            " threads per CPU, not " + item);
		for (auto count = *first; count <= *last; ++count)
			add_once(counts, static_cast<unsigned>(count), item);
	}
	return counts;
}

std::vector<std::uint64_t> parse_sections(std::string_view text)
{
	std::vector<std::uint64_t> sections;
	for (const std::string &item : split(text))
		add_once(sections, parse_section(item), item);
	return sections;
}

std::vector<BenchMode> parse_modes(std::string_view text)
{
	std::vector<BenchMode> modes;
	for (const std::string &item : split(text)) {
		bool known = false;
		for (const BenchMode mode :
		     {BenchMode::off, BenchMode::on, BenchMode::on_while_waiting})
			if (item == bench_mode_name(mode)) {
				add_once(modes, mode, item);
				known = true;
			}
		if (!known)
			throw std::invalid_argument("'" + item +
			                            "' is not a mode: off, on or on-while-waiting");
	}
	return modes;
}

std::string section_text(std::uint64_t ns)
{
	char text[32];
	if (ns < 1000)
		std::snprintf(text, sizeof text, "%llu ns", static_cast<unsigned long long>(ns));
	else
		std::snprintf(text, sizeof text, "%g us", static_cast<double>(ns) / 1000);
	return text;
}

} // namespace slice_ext::tool
