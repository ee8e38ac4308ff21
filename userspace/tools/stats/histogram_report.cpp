// SPDX-License-Identifier: MIT
#include "stats/histogram_report.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "text_table.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr int kSchemaVersion = 1;
constexpr std::uint64_t kMostBuckets = 20;
constexpr std::uint64_t kBarLength = 40;
constexpr std::pair<const char *, double> kQuantiles[] = {
	{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};

std::string fixed(double value, int digits)
{
	char text[32];
	std::snprintf(text, sizeof text, "%.*f", digits, value);
	return text;
}

std::string in_us(std::uint64_t ns)
{
	return fixed(static_cast<double>(ns) / 1000, 1);
}

// "31 of 30 us, 2 of 50 us"
std::string lengths_text(const Extensions &extensions)
{
	std::string text;
	for (const auto &[length, count] : extensions.granted)
		text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " +
		        fixed(static_cast<double>(length) / 1000, 0) + " us";
	return text;
}

std::string denials_text(const Extensions &extensions)
{
	std::string text;
	for (const auto &[reason, count] : extensions.denied)
		text += (text.empty() ? "" : ", ") + reason + " " + std::to_string(count);
	return text;
}

std::vector<std::string> quantile_row(const std::string &name, const Ends &ends)
{
	std::vector<std::string> row = {name, std::to_string(ends.used_ns.count())};
	for (const auto &[title, fraction] : kQuantiles)
		row.push_back(in_us(ends.used_ns.quantile(fraction)));
	row.push_back(in_us(ends.used_ns.max()));
	return row;
}

std::string quantile_table(const Extensions &extensions)
{
	std::vector<std::vector<std::string>> rows = {{"ended by", "count"}};
	for (const auto &[title, fraction] : kQuantiles)
		rows.front().push_back(std::string(title) + ", us");
	rows.front().push_back("max, us");
	for (const auto &[reason, ends] : extensions.ended)
		rows.push_back(quantile_row(reason, ends));
	rows.push_back(quantile_row("all", extensions.ends()));
	return text_table(rows);
}

std::uint64_t count_between(const Ends &ends, std::uint64_t low_us, std::uint64_t high_us)
{
	std::uint64_t sum = 0;
	for (auto one = ends.by_us.lower_bound(low_us);
	     one != ends.by_us.end() && one->first < high_us; ++one)
		sum += one->second;
	return sum;
}

// As many microseconds per bucket as bring the longest grant into kMostBuckets of them. One more is
// for those that used all of it, and the last for what a virtual machine that stood still made of it.
std::string histogram_table(const Extensions &extensions)
{
	const Ends all = extensions.ends();
	const std::uint64_t longest =
		extensions.granted.empty() ? 0 : extensions.granted.rbegin()->first / 1000;
	const std::uint64_t width = std::max<std::uint64_t>(
		1, (longest + kMostBuckets - 1) / kMostBuckets);
	std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets;
	for (std::uint64_t low = 0; low <= longest; low += width)
		buckets.emplace_back(low, low + width);
	buckets.emplace_back(buckets.back().second, UINT64_MAX);

	std::uint64_t most = 1;
	for (const auto &[low, high] : buckets)
		most = std::max(most, count_between(all, low, high));
	std::vector<std::vector<std::string>> rows = {{"used, us"}};
	for (const auto &[reason, ends] : extensions.ended)
		rows.front().push_back(reason);
	rows.front().insert(rows.front().end(), {"all", ""});
	for (const auto &[low, high] : buckets) {
		std::vector<std::string> row = {std::to_string(low) +
		                                (high == UINT64_MAX ? " and more"
		                                                    : " to " + std::to_string(high))};
		for (const auto &[reason, ends] : extensions.ended)
			row.push_back(std::to_string(count_between(ends, low, high)));
		const std::uint64_t count = count_between(all, low, high);
		row.push_back(std::to_string(count));
		const std::uint64_t bar = (count * kBarLength + most - 1) / most;
		row.push_back(std::string(bar, '#') + std::string(kBarLength - bar, ' '));
		rows.push_back(std::move(row));
	}
	return text_table(rows);
}

nlohmann::json ends_json(const Ends &ends)
{
	nlohmann::json by_us = nlohmann::json::object();
	for (const auto &[microsecond, count] : ends.by_us)
		by_us[std::to_string(microsecond)] = count;
	nlohmann::json report = {{"count", ends.used_ns.count()},
	                         {"max_ns", ends.used_ns.max()},
	                         {"histogram_us", by_us}};
	for (const auto &[title, fraction] : kQuantiles)
		report[std::string(title) + "_ns"] = ends.used_ns.quantile(fraction);
	return report;
}

} // namespace

std::string to_text(const HistogramReport &report)
{
	const Extensions &extensions = report.extensions;
	std::string text = title(report.scope) + ", " + iso_time(report.begin_ns) + ", recorded " +
	                   fixed(report.seconds, 2) + " s\n";
	text += "grants: " + std::to_string(extensions.grants());
	if (!extensions.granted.empty())
		text += " (" + lengths_text(extensions) + ")";
	text += "\ndenials: " + std::to_string(extensions.denials());
	if (!extensions.denied.empty())
		text += " (" + denials_text(extensions) + ")";
	text += "\nlost events: " + std::to_string(extensions.lost) + "\n";
	if (!extensions.ended.empty())
		text += "\n" + histogram_table(extensions) + "\n" + quantile_table(extensions);
	else
		text += "No extension ended in this time.\n";
	if (extensions.lost != 0)
		text += "WARNING: events were lost: all counts are too small.\n";
	if (report.ended)
		text += "The " + title(report.scope) + " has ended.\n";
	const std::string warning = guard_warning(report.facts);
	if (!warning.empty())
		text += "WARNING: " + warning + "\n";
	return text;
}

nlohmann::json to_json(const HistogramReport &report)
{
	const Extensions &extensions = report.extensions;
	nlohmann::json lengths = nlohmann::json::object();
	for (const auto &[length, count] : extensions.granted)
		lengths[std::to_string(length)] = count;
	nlohmann::json ended = nlohmann::json::object();
	for (const auto &[reason, ends] : extensions.ended)
		ended[reason] = ends_json(ends);
	nlohmann::json json = {
		{"schema", "slice-ext/stats-histogram"},
		{"schema_version", kSchemaVersion},
		{"environment", environment_json(report.facts)},
		{"time", iso_time(report.begin_ns)},
		{"seconds", report.seconds},
		{"grants", extensions.grants()},
		{"grants_by_length_ns", lengths},
		{"denials", extensions.denials()},
		{"denials_by_reason", extensions.denied},
		{"ends", ends_json(extensions.ends())},
		{"ends_by_reason", ended},
		{"lost_events", extensions.lost},
	};
	add_scope(json, report.scope, report.ended);
	return json;
}

} // namespace slice_ext::tool
