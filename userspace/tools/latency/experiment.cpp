// SPDX-License-Identifier: MIT
#include "latency/experiment.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "latency/phase.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

[[noreturn]] void fail(const std::string &where, const std::string &what)
{
	throw ExperimentError(where + ": " + what);
}

void only_keys(const json &object, const std::set<std::string> &known, const std::string &where)
{
	if (!object.is_object())
		fail(where, "is not an object");
	for (const auto &item : object.items())
		if (!known.count(item.key()))
			fail(where, "unknown member \"" + item.key() + "\"");
}

std::string text_of(const json &object, const char *key, const std::string &where)
{
	if (!object.contains(key))
		fail(where, std::string("\"") + key + "\" is missing");
	if (!object.at(key).is_string() || object.at(key).get<std::string>().empty())
		fail(where, std::string("\"") + key + "\" is not a text");
	return object.at(key);
}

unsigned count_of(const json &object, const char *key, unsigned low, unsigned high,
                  unsigned otherwise, const std::string &where)
{
	if (!object.contains(key))
		return otherwise;
	const json &value = object.at(key);
	if (!value.is_number_unsigned() || value.get<std::uint64_t>() < low ||
	    value.get<std::uint64_t>() > high)
		fail(where, std::string("\"") + key + "\" is " + value.dump() +
		                    ", not a number from " + std::to_string(low) + " to " +
		                    std::to_string(high));
	return value;
}

Kind kind_of(const json &file, const std::string &where)
{
	const std::string name = text_of(file, "kind", where);
	if (name == "cyclictest")
		return Kind::cyclictest;
	if (name == "bench")
		return Kind::bench;
	if (name == "phase")
		return Kind::phase;
	fail(where, "kind \"" + name + "\" is none of cyclictest, bench, phase");
}

// sysctl names have dots, other files are named by their path.
std::string path_of_setting(const std::string &name)
{
	if (name[0] == '/')
		return name;
	std::string path = "/proc/sys/" + name;
	std::replace(path.begin() + 10, path.end(), '.', '/');
	return path;
}

void add_settings(const json &object, std::vector<std::pair<std::string, std::string>> &settings,
                  const std::string &where)
{
	if (!object.contains("settings"))
		return;
	if (!object.at("settings").is_object())
		fail(where, "\"settings\" is not an object");
	for (const auto &item : object.at("settings").items()) {
		if (item.key().empty() || !item.value().is_string())
			fail(where, "setting \"" + item.key() + "\" is not a text");
		const std::string path = path_of_setting(item.key());
		const auto same = std::find_if(settings.begin(), settings.end(),
		                               [&](const auto &other) { return other.first == path; });
		if (same == settings.end())
			settings.emplace_back(path, item.value());
		else
			same->second = item.value();
	}
}

Load load_of(const json &object, const std::string &where)
{
	only_keys(object, {"command", "warmup_ms"}, where);
	Load load;
	if (!object.contains("command") || !object.at("command").is_array() ||
	    object.at("command").empty())
		fail(where, "\"command\" is not a list of words");
	for (const json &word : object.at("command")) {
		if (!word.is_string())
			fail(where, "\"command\" holds " + word.dump() + ", which is not a text");
		load.command.push_back(word);
	}
	load.warmup_ms = count_of(object, "warmup_ms", 0, 600000, load.warmup_ms, where);
	return load;
}

void check_arguments(const json &measure, const std::string &where)
{
	const json arguments = measure.value("arguments", json::array());
	if (!arguments.is_array())
		fail(where, "measure: \"arguments\" is not a list");
	for (const json &word : arguments)
		if (!word.is_string())
			fail(where, "measure: argument " + word.dump() + " is not a text");
}

void check_measure(Kind kind, const json &measure, const std::string &where)
{
	switch (kind) {
	case Kind::phase:
		try {
			phase_options_from_json(measure);
		} catch (const std::invalid_argument &error) {
			fail(where, error.what());
		}
		break;
	case Kind::cyclictest:
		only_keys(measure, {"arguments", "loops", "interval_us", "priority", "histogram_us"},
		          where + ": measure");
		count_of(measure, "loops", 1, 2000000000, 1000, where);
		count_of(measure, "interval_us", 50, 1000000, 997, where);
		count_of(measure, "priority", 1, 99, 95, where);
		// In nanoseconds this is all that cyclictest has buckets for.
		count_of(measure, "histogram_us", 1, 1000, 400, where);
		check_arguments(measure, where);
		break;
	case Kind::bench:
		only_keys(measure, {"arguments"}, where + ": measure");
		check_arguments(measure, where);
		break;
	}
}

Arm arm_of(const json &object, const json &file, Kind kind, const std::string &origin)
{
	Arm arm;
	arm.name = text_of(object, "name", origin + ": arm");
	const std::string where = origin + ": arm " + arm.name;
	only_keys(object, {"name", "title", "kernel", "settings", "load", "measure"}, where);
	arm.title = object.contains("title") ? text_of(object, "title", where) : arm.name;
	arm.kernel = text_of(object, "kernel", where);
	if (arm.kernel != "base" && arm.kernel != "off" && arm.kernel != "on")
		fail(where, "kernel \"" + arm.kernel + "\" is none of base, off, on");
	add_settings(file, arm.settings, origin);
	add_settings(object, arm.settings, where);
	if (object.contains("load")) {
		if (!object.at("load").is_array())
			fail(where, "\"load\" is not a list");
		for (const json &load : object.at("load"))
			arm.load.push_back(load_of(load, where + ": load"));
	}
	arm.measure = file.value("measure", json::object());
	arm.measure.merge_patch(object.value("measure", json::object()));
	check_measure(kind, arm.measure, where);
	return arm;
}

bool is_metric(Kind kind, const std::string &metric)
{
	static const std::set<std::string> cyclictest = {"min", "average", "max",     "p50",
	                                                 "p99", "p99.9",   "overflow"};
	static const std::set<std::string> phase = {"max", "average", "wake_ups", "uncovered"};
	static const std::set<std::string> bench = {
		"sections_per_second", "wait_p50",         "wait_p99",        "wait_p999",
		"wait_max",            "holder_preempted", "uncontended_cost"};
	if (metric.rfind("counters.", 0) == 0)
		return metric.size() > 9;
	if (kind == Kind::cyclictest)
		return cyclictest.count(metric);
	if (kind == Kind::bench)
		return bench.count(metric);
	for (unsigned state = 0; state <= static_cast<unsigned>(PhaseState::granted); ++state)
		for (const char *what : {"max.", "samples."})
			if (metric == std::string(what) +
			                      phase_state_name(static_cast<PhaseState>(state)))
				return true;
	return phase.count(metric);
}

std::optional<RowChoice> row_of(const json &object, const char *key, const std::string &where)
{
	if (!object.contains(key))
		return std::nullopt;
	const json &value = object.at(key);
	only_keys(value, {"mode", "threads", "section_us"}, where + ": " + key);
	RowChoice row;
	row.mode = text_of(value, "mode", where + ": " + key);
	row.threads = count_of(value, "threads", 1, 100000, 0, where);
	if (!value.contains("section_us") || !value.at("section_us").is_number())
		fail(where, std::string(key) + ": \"section_us\" is not a number");
	row.section = static_cast<std::uint64_t>(value.at("section_us").get<double>() * 1000 + 0.5);
	return row;
}

void add_comparison(const json &object, Check &check, const std::string &where)
{
	static const std::pair<const char *, Comparison> names[] = {
		{"at_most", Comparison::at_most},
		{"at_least", Comparison::at_least},
		{"at_most_above", Comparison::at_most_above},
		{"at_least_above", Comparison::at_least_above},
		{"at_most_times", Comparison::at_most_times},
		{"at_least_times", Comparison::at_least_times},
	};
	unsigned found = 0;
	for (const auto &[name, comparison] : names) {
		if (!object.contains(name))
			continue;
		if (!object.at(name).is_number())
			fail(where, std::string("\"") + name + "\" is not a number");
		check.comparison = comparison;
		check.bound = object.at(name);
		++found;
	}
	if (found != 1)
		fail(where, "needs one of at_most, at_least, at_most_above, at_least_above, "
		            "at_most_times, at_least_times");
	const bool relative = check.comparison != Comparison::at_most &&
	                      check.comparison != Comparison::at_least;
	if (relative == check.against.empty())
		fail(where, relative ? "needs \"against\"" : "\"against\" is for a relative bound");
}

Check check_of(const json &object, const Experiment &experiment, const std::string &origin)
{
	Check check;
	check.title = text_of(object, "title", origin + ": check");
	const std::string where = origin + ": check \"" + check.title + "\"";
	only_keys(object,
	          {"title", "metric", "arm", "row", "against", "against_row", "control", "places",
	           "at_most", "at_least", "at_most_above", "at_least_above", "at_most_times",
	           "at_least_times"},
	          where);
	check.metric = text_of(object, "metric", where);
	if (!is_metric(experiment.kind, check.metric))
		fail(where, "no metric \"" + check.metric + "\" for this kind of experiment");
	check.arm = text_of(object, "arm", where);
	check.row = row_of(object, "row", where);
	if (object.contains("against"))
		check.against = text_of(object, "against", where);
	check.against_row = row_of(object, "against_row", where);
	if (experiment.kind == Kind::bench && check.metric.rfind("counters.", 0) != 0 && !check.row)
		fail(where, "needs \"row\"");
	if (experiment.kind != Kind::bench && (check.row || check.against_row))
		fail(where, "\"row\" is for the kind bench");
	if (object.contains("control") && !object.at("control").is_boolean())
		fail(where, "\"control\" is neither true nor false");
	check.control = object.value("control", false);
	if (object.contains("places")) {
		check.in_virtual_time = check.on_real_hardware = false;
		if (!object.at("places").is_array())
			fail(where, "\"places\" is not a list");
		for (const json &place : object.at("places")) {
			if (place == "virtual")
				check.in_virtual_time = true;
			else if (place == "real")
				check.on_real_hardware = true;
			else
				fail(where, "place " + place.dump() +
				                    " is none of \"virtual\", \"real\"");
		}
	}
	add_comparison(object, check, where);
	for (const std::string &name : {check.arm, check.against})
		if (!name.empty() && !experiment.find(name))
			fail(where, "there is no arm \"" + name + "\"");
	return check;
}

json parse_json(const std::string &text, const std::string &origin)
{
	try {
		return json::parse(text, nullptr, true, true);
	} catch (const json::exception &error) {
		fail(origin, error.what());
	}
}

json apply_short(json file, const std::string &origin)
{
	const json form = file.value("short", json::object());
	only_keys(form, {"measure", "repetitions", "leave_out"}, origin + ": short");
	if (form.contains("measure")) {
		if (!file.contains("measure"))
			file["measure"] = json::object();
		file["measure"].merge_patch(form.at("measure"));
	}
	if (form.contains("repetitions"))
		file["repetitions"] = form.at("repetitions");
	const json left = form.value("leave_out", json::array());
	if (!left.is_array())
		fail(origin, "short: \"leave_out\" is not a list");
	for (const json &name : left)
		if (std::none_of(file.at("arms").begin(), file.at("arms").end(),
		                 [&](const json &arm) { return arm.value("name", json()) == name; }))
			fail(origin, "short: leave_out: there is no arm " + name.dump());
	const auto is_left = [&](const json &name) {
		return std::find(left.begin(), left.end(), name) != left.end();
	};
	json arms = json::array(), checks = json::array();
	for (const json &arm : file.value("arms", json::array()))
		if (!is_left(arm.value("name", json())))
			arms.push_back(arm);
	for (const json &check : file.value("checks", json::array()))
		if (!is_left(check.value("arm", json())) && !is_left(check.value("against", json())))
			checks.push_back(check);
	file["arms"] = std::move(arms);
	file["checks"] = std::move(checks);
	return file;
}

Experiment make_experiment(json file, const std::string &origin)
{
	Experiment experiment;
	only_keys(file,
	          {"name", "title", "source", "kind", "measure", "short", "repetitions", "settings",
	           "arms", "checks"},
	          origin);
	experiment.name = text_of(file, "name", origin);
	experiment.title = text_of(file, "title", origin);
	experiment.source = file.contains("source") ? text_of(file, "source", origin) : "";
	experiment.kind = kind_of(file, origin);
	experiment.repetitions = count_of(file, "repetitions", 1, 1000, 1, origin);
	if (!file.contains("arms") || !file.at("arms").is_array() || file.at("arms").empty())
		fail(origin, "\"arms\" is not a list with something in it");
	for (const json &object : file.at("arms")) {
		Arm arm = arm_of(object, file, experiment.kind, origin);
		if (experiment.find(arm.name))
			fail(origin, "two arms are called " + arm.name);
		experiment.arms.push_back(std::move(arm));
	}
	if (file.contains("checks") && !file.at("checks").is_array())
		fail(origin, "\"checks\" is not a list");
	for (const json &object : file.value("checks", json::array()))
		experiment.checks.push_back(check_of(object, experiment, origin));
	file.erase("short");
	experiment.effective = std::move(file);
	return experiment;
}

bool is_path(const std::string &name)
{
	return name.find('/') != std::string::npos ||
	       (name.size() > 5 && name.compare(name.size() - 5, 5, ".json") == 0);
}

} // namespace

const Arm *Experiment::find(const std::string &arm) const
{
	const auto found = std::find_if(arms.begin(), arms.end(),
	                                [&](const Arm &other) { return other.name == arm; });
	return found == arms.end() ? nullptr : &*found;
}

Experiment parse_experiment(const std::string &text, const std::string &origin, bool short_form)
{
	json file = parse_json(text, origin);
	if (!file.is_object())
		fail(origin, "is not an object");
	// Both forms must be good, whichever is asked for.
	Experiment whole = make_experiment(file, origin);
	Experiment short_one = make_experiment(apply_short(std::move(file), origin), origin);
	return short_form ? short_one : whole;
}

Experiment experiment_from_record(const json &effective, const std::string &origin)
{
	return make_experiment(effective, origin);
}

std::string experiment_text(const std::string &name)
{
	if (is_path(name)) {
		std::ifstream file(name);
		if (!file)
			fail(name, std::generic_category().message(errno));
		std::stringstream text;
		text << file.rdbuf();
		return text.str();
	}
	std::string known;
	for (const BuiltIn &experiment : built_in_experiments()) {
		if (name == experiment.name)
			return experiment.text;
		known += std::string(known.empty() ? "" : ", ") + experiment.name;
	}
	throw ExperimentError("there is no experiment \"" + name + "\"; built in are " + known +
	                      ", a file of your own is named with a slash or .json");
}

Experiment load_experiment(const std::string &name, bool short_form)
{
	return parse_experiment(experiment_text(name), is_path(name) ? name : "experiment " + name,
	                        short_form);
}

} // namespace slice_ext::tool::latency
