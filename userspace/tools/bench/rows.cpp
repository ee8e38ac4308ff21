// SPDX-License-Identifier: MIT
#include "bench/rows.hpp"

#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

#include "bench/options.hpp"

namespace slice_ext::tool
{

namespace
{

using latency::LockRow;
using latency::RecordError;
using nlohmann::json;

bool is_count(const json &value)
{
	return value.is_number_integer() &&
	       (value.is_number_unsigned() || value.get<std::int64_t>() >= 0);
}

// One row, with its number for the messages.
class RowReader
{
      public:
	RowReader(const json &row, std::size_t number) : row_(row), number_(number)
	{
		if (!row.is_object())
			fail("is not an object");
	}

	[[noreturn]] void fail(const std::string &what) const
	{
		throw RecordError("bench report: row " + std::to_string(number_) + " " + what);
	}

	const json &at(const char *key) const
	{
		const auto found = row_.find(key);
		if (found == row_.end())
			fail(std::string("has no ") + key);
		return *found;
	}

	std::uint64_t count(const char *key) const
	{
		const json &value = at(key);
		if (!is_count(value))
			fail(std::string("has a ") + key + " that is not a count: " + value.dump());
		return value;
	}

	double number(const char *key) const
	{
		const json &value = at(key);
		if (!value.is_number() || !std::isfinite(value.get<double>()) ||
		    value.get<double>() < 0)
			fail(std::string("has a ") + key +
			     " that is not a number: " + value.dump());
		return value;
	}

	std::string text(const char *key) const
	{
		const json &value = at(key);
		if (!value.is_string())
			fail(std::string("has a ") + key + " that is not a text: " + value.dump());
		return value;
	}

      private:
	const json &row_;
	std::size_t number_;
};

LockRow row_from_json(const RowReader &reader)
{
	LockRow row;
	row.mode = reader.text("mode");
	try {
		if (parse_modes(row.mode).size() != 1)
			reader.fail("has more than one mode");
	} catch (const std::invalid_argument &error) {
		reader.fail(std::string("has a mode that does not exist: ") + error.what());
	}
	row.threads = static_cast<unsigned>(reader.count("threads"));
	row.cpus = static_cast<unsigned>(reader.count("cpus"));
	row.section = reader.count("section_ns");
	if (row.threads == 0 || row.cpus == 0 || row.section == 0)
		reader.fail("has no threads, no CPUs or no section length");
	row.sections = reader.count("sections");
	row.sections_per_second = reader.number("sections_per_second");
	const double seconds = reader.number("seconds");
	if (std::abs(row.sections_per_second * seconds - static_cast<double>(row.sections)) >
	    0.001 * static_cast<double>(row.sections) + 1)
		reader.fail("has a throughput that is not its sections by its time");
	row.wait_p50 = reader.count("wait_p50_ns");
	row.wait_p99 = reader.count("wait_p99_ns");
	row.wait_p999 = reader.count("wait_p999_ns");
	row.wait_max = reader.count("wait_max_ns");
	if (row.wait_p50 > row.wait_p99 || row.wait_p99 > row.wait_p999 ||
	    row.wait_p999 > row.wait_max)
		reader.fail("has percentiles of the wait that are out of order");
	if (reader.at("holder_preempted").is_null())
		reader.fail("does not know how often the holder was preempted: this kernel or "
		            "machine does not tell");
	row.holder_preempted = reader.count("holder_preempted");
	if (!reader.at("uncontended_cost_ns").is_null()) {
		// The difference of two loops may come out below zero on real hardware.
		const json &cost = reader.at("uncontended_cost_ns");
		if (!cost.is_number())
			reader.fail("has an uncontended_cost_ns that is not a number");
		row.uncontended_cost = cost.get<double>();
	}
	const json &counters = reader.at("counters");
	if (!counters.is_null() && !counters.is_object())
		reader.fail("has counters that are no object");
	for (const auto &[name, value] : counters.items()) {
		if (!is_count(value))
			reader.fail("has a counter " + name + " that is not a count");
		row.counters[name] = value.get<long long>();
	}
	return row;
}

} // namespace

std::vector<LockRow> lock_rows_from_json(const json &report)
{
	if (!report.is_object() || report.value("schema", json()) != kBenchSchema)
		throw RecordError("not a report of slice-ext bench --json");
	if (report.value("schema_version", json()) != kBenchSchemaVersion)
		throw RecordError("bench report: another schema_version, of another slice-ext");
	if (report.value("exit_status", json()) != 0)
		throw RecordError("bench report: the run failed: " +
		                  report.value("verdict", json("no verdict")).dump());
	if (report.value("ended_by_signal", json()) != 0)
		throw RecordError("bench report: a signal ended the run early");
	const json rows = report.value("rows", json());
	if (!rows.is_array() || rows.empty())
		throw RecordError("bench report: no rows");
	std::vector<LockRow> result;
	std::set<std::tuple<std::string, unsigned, std::uint64_t>> seen;
	for (const json &row : rows) {
		const RowReader reader(row, result.size() + 1);
		result.push_back(row_from_json(reader));
		const LockRow &last = result.back();
		if (!seen.emplace(last.mode, last.threads, last.section).second)
			reader.fail("is there twice");
	}
	return result;
}

} // namespace slice_ext::tool
