// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_EXPERIMENT_HPP
#define SLICE_EXT_TOOL_LATENCY_EXPERIMENT_HPP

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace slice_ext::tool::latency
{

// An experiment file: one table, with its arms and what has to come out. It is JSON with comments;
// slice-ext(1) describes the members, `slice-ext latency show NAME` prints one to start from.

// A file that is no experiment: names the file, the place in it and the cause.
class ExperimentError : public std::runtime_error
{
	using std::runtime_error::runtime_error;
};

enum class Kind { cyclictest, bench, phase };

struct Load {
	std::vector<std::string> command;
	unsigned warmup_ms = 100; // before anything is measured
};

struct Arm {
	std::string name;
	std::string title;
	std::string kernel; // base, off, on; see RunRecord::environment
	// Paths and what is written to them, in this order.
	std::vector<std::pair<std::string, std::string>> settings;
	std::vector<Load> load;
	nlohmann::json measure; // the experiment's and the arm's own, put together
};

// Which row of a bench arm a check is about.
struct RowChoice {
	std::string mode;
	unsigned threads = 0;
	std::uint64_t section = 0; // ns
};

enum class Comparison {
	at_most,
	at_least,
	at_most_above, // the other side plus the bound
	at_least_above,
	at_most_times, // the other side times the bound
	at_least_times,
};

struct Check {
	std::string title;
	std::string metric;
	std::string arm;
	std::optional<RowChoice> row;
	Comparison comparison = Comparison::at_most;
	double bound = 0;
	std::string against; // arm; "" for an absolute bound
	std::optional<RowChoice> against_row;
	// A control shows the harm that the others show to be absent: when it shows nothing, the
	// others prove nothing.
	bool control = false;
	bool in_virtual_time = true;
	bool on_real_hardware = true;
};

struct Experiment {
	std::string name;
	std::string title;
	std::string source;
	Kind kind = Kind::cyclictest;
	unsigned repetitions = 1;
	std::vector<Arm> arms;
	std::vector<Check> checks;
	// The whole as it is used, short form applied: what a record keeps.
	nlohmann::json effective;

	// nullptr: there is none of that name.
	const Arm *find(const std::string &arm) const;
};

// ORIGIN is what messages call it. SHORT_FORM applies the member "short". Throws ExperimentError.
Experiment parse_experiment(const std::string &text, const std::string &origin, bool short_form);
// The same from what a record keeps.
Experiment experiment_from_record(const nlohmann::json &effective, const std::string &origin);

struct BuiltIn {
	const char *name;
	const char *text;
};
const std::vector<BuiltIn> &built_in_experiments();

// NAME is that of a built-in one, or a path: with a slash, or ending in .json.
Experiment load_experiment(const std::string &name, bool short_form);
std::string experiment_text(const std::string &name);

} // namespace slice_ext::tool::latency

#endif
