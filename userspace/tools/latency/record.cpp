// SPDX-License-Identifier: MIT
#include "latency/record.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

constexpr const char *kStateNames[] = {"other", "hog", "outside", "section", "granted"};

json to_json(const ThreadLatencies &thread)
{
	json buckets = json::array();
	for (const auto &[edge, count] : thread.histogram)
		buckets.push_back({edge, count});
	return {{"thread", thread.thread},
	        {"cpu", thread.cpu},
	        {"cycles", thread.cycles},
	        {"min", thread.min},
	        {"average", thread.average},
	        {"max", thread.max},
	        {"bucket_width", thread.bucket_width},
	        {"histogram_end", thread.histogram_end},
	        {"overflow", thread.overflow},
	        {"histogram", std::move(buckets)}};
}

json to_json(const PhaseScan &scan)
{
	json samples = json::array();
	for (const PhaseSample &sample : scan.samples)
		samples.push_back(
			{sample.phase, sample.latency, static_cast<unsigned>(sample.state)});
	return {{"period", scan.period}, {"step", scan.step},
	        {"first", scan.first},   {"end", scan.end},
	        {"wake_ups", scan.wake_ups}, {"uncovered", scan.uncovered},
	        {"samples", std::move(samples)}};
}

json to_json(const LockRow &row)
{
	json made = {{"mode", row.mode},
	             {"threads", row.threads},
	             {"cpus", row.cpus},
	             {"section", row.section},
	             {"sections", row.sections},
	             {"sections_per_second", row.sections_per_second},
	             {"wait_p50", row.wait_p50},
	             {"wait_p99", row.wait_p99},
	             {"wait_p999", row.wait_p999},
	             {"wait_max", row.wait_max},
	             {"holder_preempted", row.holder_preempted},
	             {"counters", row.counters}};
	if (row.uncontended_cost)
		made["uncontended_cost"] = *row.uncontended_cost;
	return made;
}

// Reads members with an error that says which one of which file is wrong.
class Reader
{
      public:
	Reader(const json &object, std::string where) : object_(object), where_(std::move(where))
	{
		if (!object.is_object())
			fail("is not an object");
	}

	[[noreturn]] void fail(const std::string &what) const
	{
		throw RecordError(where_ + ": " + what);
	}

	const json &member(const char *key) const
	{
		if (!object_.contains(key))
			fail(std::string("\"") + key + "\" is missing");
		return object_.at(key);
	}

	template <typename T> T get(const char *key) const
	{
		const json &value = member(key);
		if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
			if (!value.is_number_unsigned())
				fail(std::string("\"") + key + "\" is " + value.dump() +
				     ", not a count");
		}
		try {
			return value.get<T>();
		} catch (const json::exception &) {
			fail(std::string("\"") + key + "\" is of the wrong type: " + value.dump());
		}
	}

	template <typename T> T get(const char *key, T low, T high) const
	{
		const T value = get<T>(key);
		if (value < low || value > high)
			fail(std::string("\"") + key + "\" is " + member(key).dump() +
			     ", not from " + std::to_string(low) + " to " + std::to_string(high));
		return value;
	}

	const json &list(const char *key) const
	{
		const json &value = member(key);
		if (!value.is_array())
			fail(std::string("\"") + key + "\" is not a list");
		return value;
	}

	const std::string &where() const
	{
		return where_;
	}

      private:
	const json &object_;
	std::string where_;
};

ThreadLatencies thread_from(const json &object, const std::string &where)
{
	const Reader reader(object, where);
	ThreadLatencies thread;
	thread.thread = reader.get<unsigned>("thread");
	thread.cpu = reader.get<int>("cpu");
	thread.cycles = reader.get<std::uint64_t>("cycles");
	thread.min = reader.get<std::uint64_t>("min");
	thread.average = reader.get<double>("average");
	thread.max = reader.get<std::uint64_t>("max");
	thread.bucket_width = reader.get<std::uint64_t>("bucket_width");
	thread.histogram_end = reader.get<std::uint64_t>("histogram_end");
	thread.overflow = reader.get<std::uint64_t>("overflow");
	std::uint64_t sum = thread.overflow;
	for (const json &bucket : reader.list("histogram")) {
		if (!bucket.is_array() || bucket.size() != 2 || !bucket[0].is_number_unsigned() ||
		    !bucket[1].is_number_unsigned())
			reader.fail("a bucket is " + bucket.dump() + ", not a pair of counts");
		thread.histogram.emplace_back(bucket[0], bucket[1]);
		sum += thread.histogram.back().second;
	}
	if (sum != thread.cycles)
		reader.fail("the histogram holds " + std::to_string(sum) + " of " +
		            std::to_string(thread.cycles) + " cycles");
	if (thread.cycles == 0)
		reader.fail("no cycles");
	if (!(thread.average >= 0) || thread.min > thread.max)
		reader.fail("minimum, average and maximum are out of order");
	return thread;
}

PhaseScan scan_from(const json &object, const std::string &where)
{
	const Reader reader(object, where);
	PhaseScan scan;
	scan.period = reader.get<std::uint64_t>("period");
	scan.step = reader.get<std::uint64_t>("step");
	scan.first = reader.get<std::uint64_t>("first");
	scan.end = reader.get<std::uint64_t>("end");
	scan.wake_ups = reader.get<std::uint64_t>("wake_ups");
	scan.uncovered = reader.get<std::uint64_t>("uncovered");
	for (const json &sample : reader.list("samples")) {
		if (!sample.is_array() || sample.size() != 3 || !sample[0].is_number_unsigned() ||
		    !sample[1].is_number_unsigned() || !sample[2].is_number_unsigned() ||
		    sample[2].get<unsigned>() > static_cast<unsigned>(PhaseState::granted))
			reader.fail("a sample is " + sample.dump() +
			            ", not phase, latency and state");
		scan.samples.push_back({sample[0], sample[1],
		                        static_cast<PhaseState>(sample[2].get<unsigned>())});
	}
	if (scan.samples.empty())
		reader.fail("no samples");
	return scan;
}

LockRow row_from(const json &object, const std::string &where)
{
	const Reader reader(object, where);
	LockRow row;
	row.mode = reader.get<std::string>("mode");
	row.threads = reader.get<unsigned>("threads");
	row.cpus = reader.get<unsigned>("cpus");
	row.section = reader.get<std::uint64_t>("section");
	row.sections = reader.get<std::uint64_t>("sections");
	row.sections_per_second = reader.get<double>("sections_per_second");
	row.wait_p50 = reader.get<std::uint64_t>("wait_p50");
	row.wait_p99 = reader.get<std::uint64_t>("wait_p99");
	row.wait_p999 = reader.get<std::uint64_t>("wait_p999");
	row.wait_max = reader.get<std::uint64_t>("wait_max");
	row.holder_preempted = reader.get<std::uint64_t>("holder_preempted");
	row.counters = reader.get<std::map<std::string, long long>>("counters");
	if (object.contains("uncontended_cost"))
		row.uncontended_cost = reader.get<double>("uncontended_cost");
	if (row.mode != "off" && row.mode != "on" && row.mode != "on-while-waiting")
		reader.fail("no mode \"" + row.mode + "\"");
	return row;
}

std::set<std::string> arms_of(const json &experiment, const std::string &origin)
{
	std::set<std::string> names;
	for (const json &arm : Reader(experiment, origin + ": experiment").list("arms"))
		names.insert(Reader(arm, origin + ": experiment: arm").get<std::string>("name"));
	return names;
}

ArmResult arm_from(const json &object, const std::string &origin)
{
	const Reader reader(object, origin + ": arm");
	ArmResult arm;
	arm.arm = reader.get<std::string>("arm");
	const std::string where = origin + ": arm " + arm.arm;
	arm.repetition = static_cast<unsigned>(
		reader.get<std::uint64_t>("repetition", 1, 1000000));
	arm.seconds = reader.get<double>("seconds");
	if (!(arm.seconds >= 0))
		throw RecordError(where + ": lasted " + std::to_string(arm.seconds) + " s");
	arm.settings = reader.get<std::map<std::string, std::string>>("settings");
	arm.counters = reader.get<std::map<std::string, long long>>("counters");
	for (const auto &[name, value] : arm.counters)
		if (value < 0)
			throw RecordError(where + ": counter " + name + " is negative");
	if (object.contains("threads"))
		for (const json &thread : reader.list("threads"))
			arm.threads.push_back(thread_from(thread, where));
	if (object.contains("phase"))
		arm.phase = scan_from(object.at("phase"), where);
	if (object.contains("locks"))
		for (const json &row : reader.list("locks"))
			arm.locks.push_back(row_from(row, where));
	if (int(!arm.threads.empty()) + int(arm.phase.has_value()) + int(!arm.locks.empty()) != 1)
		throw RecordError(where + ": holds not exactly one kind of measurement");
	return arm;
}

} // namespace

const char *phase_state_name(PhaseState state)
{
	return kStateNames[static_cast<unsigned>(state)];
}

std::string RunRecord::experiment_name() const
{
	return experiment.value("name", "");
}
std::string RunRecord::kernel_kind() const
{
	return environment.value("kernel_kind", "");
}
std::string RunRecord::preemption() const
{
	return environment.value("preemption", "");
}
bool RunRecord::virtual_time() const
{
	return environment.value("virtual_time", false);
}

json to_json(const RunRecord &record)
{
	json arms = json::array();
	for (const ArmResult &arm : record.arms) {
		json made = {{"arm", arm.arm},
		             {"repetition", arm.repetition},
		             {"seconds", arm.seconds},
		             {"settings", arm.settings},
		             {"counters", arm.counters}};
		for (const ThreadLatencies &thread : arm.threads)
			made["threads"].push_back(to_json(thread));
		if (arm.phase)
			made["phase"] = to_json(*arm.phase);
		for (const LockRow &row : arm.locks)
			made["locks"].push_back(to_json(row));
		arms.push_back(std::move(made));
	}
	return {{"schema", kRecordSchema},
	        {"name", record.name},
	        {"experiment", record.experiment},
	        {"short_form", record.short_form},
	        {"complete", record.complete},
	        {"why_incomplete", record.why_incomplete},
	        {"started", record.started},
	        {"environment", record.environment},
	        {"arms", std::move(arms)}};
}

RunRecord record_from_json(const json &object, const std::string &origin)
{
	const Reader reader(object, origin);
	if (reader.get<std::string>("schema") != kRecordSchema)
		reader.fail("schema \"" + reader.get<std::string>("schema") + "\", this program reads \"" +
		            kRecordSchema + "\"");
	RunRecord record;
	record.name = reader.get<std::string>("name");
	record.experiment = reader.member("experiment");
	record.short_form = reader.get<bool>("short_form");
	record.complete = reader.get<bool>("complete");
	record.why_incomplete = reader.get<std::string>("why_incomplete");
	record.started = reader.get<std::string>("started");
	record.environment = reader.member("environment");
	const Reader environment(record.environment, origin + ": environment");
	environment.get<std::string>("preemption");
	environment.get<bool>("virtual_time");
	const auto kind = environment.get<std::string>("kernel_kind");
	if (kind != "base" && kind != "off" && kind != "on")
		environment.fail("no kernel_kind \"" + kind + "\"");
	const std::set<std::string> known = arms_of(record.experiment, origin);
	std::set<std::pair<std::string, unsigned>> seen;
	for (const json &arm : reader.list("arms")) {
		record.arms.push_back(arm_from(arm, origin));
		if (!seen.emplace(record.arms.back().arm, record.arms.back().repetition).second)
			reader.fail("arm " + record.arms.back().arm + " has one repetition twice");
		if (!known.count(record.arms.back().arm))
			reader.fail("arm " + record.arms.back().arm + " is not one of its experiment");
	}
	if (record.complete && record.arms.empty())
		reader.fail("is complete, and has no arms");
	return record;
}

RunRecord read_record(const std::string &path)
{
	std::ifstream file(path);
	if (!file)
		throw RecordError(path + ": " + std::generic_category().message(errno));
	std::stringstream text;
	text << file.rdbuf();
	if (text.str().empty())
		throw RecordError(path + ": is empty");
	const json object = json::parse(text.str(), nullptr, false);
	if (object.is_discarded())
		throw RecordError(path + ": is truncated, or no JSON at all");
	return record_from_json(object, path);
}

void write_record(const RunRecord &record, const std::string &path)
{
	const std::string temporary = path + ".new";
	std::ofstream file(temporary, std::ios::trunc);
	file << to_json(record).dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
	file.close();
	if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
		const int error = errno;
		unlink(temporary.c_str());
		throw std::system_error(error, std::generic_category(), "cannot write " + path);
	}
}

} // namespace slice_ext::tool::latency
