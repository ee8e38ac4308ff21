// SPDX-License-Identifier: MIT
#include "stats/live_report.hpp"

#include <cstdio>
#include <ctime>
#include <vector>

#include "text_table.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr int kSchemaVersion = 1;
constexpr const char *kUnknown = "-";

std::string fixed(double value, int digits)
{
	char text[32];
	std::snprintf(text, sizeof text, "%.*f", digits, value);
	return text;
}

// nullopt: the counter is not in CHANGE, because it ran backwards.
std::optional<double> rate(const Counters &change, double seconds, const std::string &name)
{
	const auto found = change.find(name);
	if (found == change.end() || !(seconds > 0))
		return std::nullopt;
	return static_cast<double>(found->second) / seconds;
}

std::string rate_text(const Counters &change, double seconds, const std::string &name)
{
	const std::optional<double> value = rate(change, seconds, name);
	return value ? fixed(*value, 1) : kUnknown;
}

std::string percent(const std::optional<double> &share)
{
	return share ? fixed(*share * 100, 1) + " %" : kUnknown;
}

std::vector<std::string> header_row(const View &view)
{
	std::vector<std::string> row = {"", "total"};
	if (view.change)
		row.push_back("per second");
	if (view.per_cpu)
		for (const auto &[cpu, counters] : view.sample.columns)
			row.push_back("CPU" + std::to_string(cpu) + (view.change ? "/s" : ""));
	return row;
}

std::vector<std::string> counter_row(const View &view, const Counters &total,
                                     const std::string &name)
{
	std::vector<std::string> row = {name, std::to_string(total.at(name))};
	if (view.change)
		row.push_back(rate_text(view.change->sum, view.change->seconds, name));
	if (view.per_cpu)
		for (const auto &[cpu, counters] : view.sample.columns)
			row.push_back(view.change ? rate_text(view.change->columns.at(cpu),
			                                      view.change->seconds, name)
			                          : std::to_string(counters.at(name)));
	return row;
}

std::vector<std::string> share_row(const View &view, const char *name,
                                   std::optional<double> Shares::*share)
{
	std::vector<std::string> row = {name, percent(shares_of(view.sample.total()).*share)};
	if (view.change)
		row.push_back(percent(shares_of(view.change->sum).*share));
	if (view.per_cpu)
		for (const auto &[cpu, counters] : view.sample.columns)
			row.push_back(percent(
				shares_of(view.change ? view.change->columns.at(cpu) : counters).*
				share));
	return row;
}

std::string remarks(const View &view, const Counters &total)
{
	std::string text, missing;
	for (const char *name : {"requests", "granted", "ended_yield", "ended_expired"})
		if (total.count(name) == 0)
			missing += std::string(" ") + name;
	if (!missing.empty() && !total.empty())
		text += "This kernel has another version of the series and does not count:" + missing +
		        "\n";
	if (view.change && !view.change->backwards.empty()) {
		text += "Set to zero since the last refresh, so without a rate:";
		for (const std::string &name : view.change->backwards)
			text += " " + name;
		text += "\n";
	}
	if (!view.note.empty())
		text += view.note + "\n";
	if (view.sample.ended)
		text += "The " + title(view.scope) + " has ended; these are its last numbers.\n";
	return text;
}

nlohmann::json shares_json(const Counters &counters)
{
	const auto or_null = [](const std::optional<double> &share) {
		return share ? nlohmann::json(*share) : nlohmann::json();
	};
	const Shares shares = shares_of(counters);
	return {{"granted", or_null(shares.granted)},
	        {"yielded", or_null(shares.yielded)},
	        {"expired", or_null(shares.expired)}};
}

nlohmann::json rates_json(const Counters &now, const Counters &change, double seconds)
{
	nlohmann::json rates = nlohmann::json::object();
	for (const auto &[name, value] : now) {
		const std::optional<double> per_second = rate(change, seconds, name);
		rates[name] = per_second ? nlohmann::json(*per_second) : nlohmann::json();
	}
	return rates;
}

} // namespace

std::string title(const Scope &scope)
{
	if (scope.kind == Scope::machine)
		return "whole machine";
	std::string text = (scope.kind == Scope::process ? "process " : "thread ") +
	                   std::to_string(scope.id) + " (";
	for (const char letter : scope.name)
		text += letter >= ' ' && letter <= '~' ? letter : '?';
	return text + ")";
}

void add_scope(nlohmann::json &report, const Scope &scope, bool ended)
{
	if (scope.kind == Scope::machine) {
		report["scope"] = "machine";
		return;
	}
	report["scope"] = scope.kind == Scope::process ? "process" : "thread";
	report["id"] = scope.id;
	report["name"] = scope.name;
	report["ended"] = ended;
}

std::string iso_time(std::int64_t realtime_ns)
{
	const std::time_t seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
	std::tm parts = {};
	gmtime_r(&seconds, &parts);
	char date[32], text[48];
	std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
	std::snprintf(text, sizeof text, "%s.%03dZ", date,
	              static_cast<int>(realtime_ns / 1'000'000 % 1000));
	return text;
}

std::string to_text(const View &view)
{
	const Counters total = view.sample.total();
	std::string text = title(view.scope) + ", " + iso_time(view.sample.realtime_ns);
	if (view.scope.kind == Scope::process)
		text += ", threads: " + std::to_string(view.sample.columns.size());
	if (view.change)
		text += ", last " + fixed(view.change->seconds, 2) + " s";
	std::vector<std::vector<std::string>> rows = {header_row(view)};
	for (const std::string &name : shown_order(total))
		rows.push_back(counter_row(view, total, name));
	rows.push_back(share_row(view, "granted of requests", &Shares::granted));
	rows.push_back(share_row(view, "ends by yield", &Shares::yielded));
	rows.push_back(share_row(view, "ends by expiry", &Shares::expired));
	return text + "\n" + text_table(rows) + remarks(view, total);
}

nlohmann::json to_json(const View &view)
{
	const Counters total = view.sample.total();
	const Change *change = view.change ? &*view.change : nullptr;
	nlohmann::json columns = nlohmann::json::object();
	for (const auto &[column, counters] : view.sample.columns)
		columns[std::to_string(column)] = {
			{"totals", counters},
			{"rates", change ? rates_json(counters, change->columns.at(column),
		                                      change->seconds)
		                         : nlohmann::json()}};
	nlohmann::json report = {
		{"schema", "slice-ext/stats"},
		{"schema_version", kSchemaVersion},
		{"time", iso_time(view.sample.realtime_ns)},
		{"monotonic_ns", view.sample.monotonic_ns},
		{"interval_seconds", change ? nlohmann::json(change->seconds) : nlohmann::json()},
		{"totals", total},
		{"rates", change ? rates_json(total, change->sum, change->seconds)
	                         : nlohmann::json()},
		{"shares",
	         {{"total", shares_json(total)},
	          {"interval", change ? shares_json(change->sum) : nlohmann::json()}}},
		{"set_to_zero", change ? nlohmann::json(change->backwards) : nlohmann::json::array()},
		{"note", view.note.empty() ? nlohmann::json() : nlohmann::json(view.note)},
	};
	add_scope(report, view.scope, view.sample.ended);
	report[view.scope.kind == Scope::machine ? "per_cpu" : "per_thread"] = columns;
	return report;
}

} // namespace slice_ext::tool
