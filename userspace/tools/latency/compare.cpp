// SPDX-License-Identifier: MIT
#include "latency/compare.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "exit_status.hpp"
#include "latency/checks.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

// Chance below which an excess is believed.
constexpr double kSignificant = 0.01;

class Comparing
{
      public:
	Comparing(const Table &before, const Table &after, const CompareOptions &options)
		: before_(before), after_(after), options_(options)
	{
	}

	std::vector<Difference> all(const std::string &run)
	{
		for (const Arm &arm : before_.experiment.arms) {
			run_ = run;
			arm_ = arm.name;
			if (before_.results(arm.name).empty())
				continue;
			if (after_.results(arm.name).empty()) {
				add("", Change::worse, "was not measured");
				continue;
			}
			// How much harm there is without the guard is nobody's merit or fault.
			if (is_control(arm.name)) {
				add("", Change::same, "is a control, which is not judged");
				continue;
			}
			if (before_.experiment.kind == Kind::bench)
				locks();
			else if (before_.virtual_time)
				exact();
			else if (before_.experiment.kind == Kind::phase)
				sampled_phases();
			else
				sampled();
		}
		return std::move(found_);
	}

      private:
	bool is_control(const std::string &arm) const
	{
		const std::vector<Check> &checks = before_.experiment.checks;
		return std::any_of(checks.begin(), checks.end(), [&](const Check &check) {
			return check.control && check.arm == arm;
		});
	}

	void add(const std::string &metric, Change change, const std::string &figures)
	{
		found_.push_back({run_, arm_, metric, change, figures});
	}

	void exact()
	{
		for (const char *metric : {"max", "average"}) {
			const double bound = std::string(metric) == "max" ? options_.tolerance
			                                                  : options_.tolerance / 2;
			const double old = metric_of(before_, arm_, metric, std::nullopt).value_or(0);
			const double now = metric_of(after_, arm_, metric, std::nullopt).value_or(0);
			add(metric,
			    now > old + bound   ? Change::worse
			    : now < old - bound ? Change::better
			                        : Change::same,
			    in_us(old) + " -> " + in_us(now));
		}
	}

	// One sample a phase and state: a distribution like any other.
	static Distribution phases_of(const Table &table, const std::string &arm)
	{
		Distribution distribution;
		for (const ArmResult *result : table.results(arm))
			for (const PhaseSample &sample : result->phase->samples) {
				++distribution.buckets[sample.latency];
				++distribution.samples;
				distribution.max = std::max(distribution.max, sample.latency);
			}
		return distribution;
	}

	void sampled_phases()
	{
		const Distribution old = phases_of(before_, arm_), now = phases_of(after_, arm_);
		exceedances(old, now, "above the worst", old.max);
		exceedances(old, now, "above p99", quantile(old, 0.99).value);
	}

	void exceedances(const Distribution &old, const Distribution &now, const char *name,
	                 std::uint64_t bound)
	{
		const std::uint64_t old_count = old.above(bound), now_count = now.above(bound);
		char text[200];
		std::snprintf(text, sizeof(text), "%llu of %llu -> %llu of %llu above %s",
		              static_cast<unsigned long long>(old_count),
		              static_cast<unsigned long long>(old.samples),
		              static_cast<unsigned long long>(now_count),
		              static_cast<unsigned long long>(now.samples),
		              in_us(static_cast<double>(bound)).c_str());
		std::string figures = text;
		if (now_count == 0) {
			std::snprintf(text, sizeof(text),
			              "; zero in %llu samples bounds the rate by about %.2g",
			              static_cast<unsigned long long>(now.samples),
			              rate_bound(now.samples));
			figures += text;
		}
		const bool more =
			chance_of_excess(now_count, now.samples, old_count, old.samples) < kSignificant;
		const bool fewer =
			chance_of_excess(old_count, old.samples, now_count, now.samples) < kSignificant;
		add(name, more ? Change::worse : fewer ? Change::better : Change::same, figures);
	}

	void sampled()
	{
		const Distribution old = distribution_of(before_, arm_);
		const Distribution now = distribution_of(after_, arm_);
		exceedances(old, now, "above the worst", old.max);
		const Quantile rare = quantile(old, 0.999);
		if (!rare.lower_bound)
			exceedances(old, now, "above p99.9", rare.value);
		for (const auto &[name, fraction] : {std::pair("p50", 0.5), std::pair("p99", 0.99)}) {
			const Interval before = bootstrap(old, fraction);
			const Interval after = bootstrap(now, fraction);
			const auto us = [](std::uint64_t ns) { return in_us(static_cast<double>(ns)); };
			add(name,
			    after.low > before.high   ? Change::worse
			    : after.high < before.low ? Change::better
			                              : Change::same,
			    in_us(quantile(old, fraction)) + " (" + us(before.low) + " to " +
			            us(before.high) + ") -> " + in_us(quantile(now, fraction)) + " (" +
			            us(after.low) + " to " + us(after.high) + ")");
		}
	}

	void locks()
	{
		for (const ArmResult *result : before_.results(arm_))
			for (const LockRow &row : result->locks) {
				const RowChoice choice{row.mode, row.threads, row.section};
				lock_row(choice, "sections_per_second", true);
				lock_row(choice, "wait_p99", false);
			}
	}

	void lock_row(const RowChoice &choice, const char *metric, bool more_is_better)
	{
		const auto old = metric_of(before_, arm_, metric, choice);
		const auto now = metric_of(after_, arm_, metric, choice);
		if (!old)
			return;
		if (!now) {
			add(metric, Change::worse, choice.mode + ", " + std::to_string(choice.threads) +
			                                   " threads: was not measured");
			return;
		}
		// Waits of some dozen nanoseconds are the cost of looking at a clock.
		const double margin = std::max(*old * options_.lock_tolerance,
		                               more_is_better ? 0 : options_.tolerance);
		const bool higher = *now > *old + margin, lower = *now < *old - margin;
		char text[200];
		std::snprintf(text, sizeof(text), "%s, %u threads, %s: %.0f -> %.0f %s",
		              choice.mode.c_str(), choice.threads,
		              in_us(static_cast<double>(choice.section)).c_str(), *old, *now,
		              unit_of(metric));
		add(metric,
		    (more_is_better ? lower : higher)   ? Change::worse
		    : (more_is_better ? higher : lower) ? Change::better
		                                        : Change::same,
		    text);
	}

	const Table &before_;
	const Table &after_;
	const CompareOptions &options_;
	std::string run_, arm_;
	std::vector<Difference> found_;
};

const char *word(Change change)
{
	static const char *const words[] = {"same", "better", "WORSE"};
	return words[static_cast<int>(change)];
}

} // namespace

std::vector<Difference> compare(const RunRecord &baseline, const RunRecord &run,
                                const CompareOptions &options)
{
	const std::string both = "runs " + baseline.name + " and " + run.name + " cannot be compared: ";
	if (baseline.experiment_name() != run.experiment_name())
		throw RecordError(both + "they are of experiments " + baseline.experiment_name() +
		                  " and " + run.experiment_name());
	if (baseline.experiment.value("kind", "") != run.experiment.value("kind", "") ||
	    baseline.experiment.value("measure", json()) != run.experiment.value("measure", json()))
		throw RecordError(both + "their experiments measure differently");
	if (baseline.short_form != run.short_form)
		throw RecordError(both + "one is of the short form");
	if (baseline.preemption() != run.preemption())
		throw RecordError(both + "they are of " + baseline.preemption() + " and " +
		                  run.preemption());
	if (baseline.virtual_time() != run.virtual_time())
		throw RecordError(both + "one is of virtual time");
	const std::vector<RunRecord> one = {baseline}, other = {run};
	const std::vector<Table> before = make_tables(one), after = make_tables(other);
	std::vector<Difference> found = Comparing(before.front(), after.front(), options).all(run.name);
	if (found.empty())
		throw RecordError(both + "they have no arm in common");
	return found;
}

void add_compare_subcommand(CLI::App &latency, int &status)
{
	CLI::App *command = latency.add_subcommand(
		"compare", "Put runs beside a baseline, arm by arm; fails when one is worse");
	struct Options {
		std::string baseline;
		std::vector<std::string> runs;
		CompareOptions compare;
		bool json = false;
	};
	auto options = std::make_shared<Options>();
	command->add_option("baseline", options->baseline, "File of the run to compare with")->required();
	command->add_option("runs", options->runs, "Files of other runs")->required();
	command->add_option("--tolerance-ns", options->compare.tolerance,
	                    "Virtual time: growth of the worst that is no regression; half of it for "
	                    "the average")
		->check(CLI::NonNegativeNumber)
		->capture_default_str();
	command->add_flag("--json", options->json, "As JSON");
	command->callback([options, &status] {
		try {
			const RunRecord baseline = read_record(options->baseline);
			json all = {{"schema", "slice-ext-latency-compare/1"},
			            {"baseline", baseline.name},
			            {"differences", json::array()}};
			unsigned worse = 0, better = 0, compared = 0;
			for (const std::string &path : options->runs)
				for (const Difference &difference :
				     compare(baseline, read_record(path), options->compare)) {
					++compared;
					worse += difference.change == Change::worse;
					better += difference.change == Change::better;
					all["differences"].push_back(
						{{"run", difference.run},
					         {"arm", difference.arm},
					         {"metric", difference.metric},
					         {"change", word(difference.change)},
					         {"figures", difference.figures}});
					if (!options->json)
						std::printf("  %-6s %s, %s, %s: %s\n",
						            word(difference.change),
						            difference.run.c_str(),
						            difference.arm.c_str(),
						            difference.metric.c_str(),
						            difference.figures.c_str());
				}
			all["worse"] = worse;
			if (options->json)
				std::printf("%s\n", all.dump(2).c_str());
			else
				std::printf("%s  against %s: %u of %u figures worse, %u better\n",
				            worse ? "FAIL" : "PASS", baseline.name.c_str(), worse,
				            compared, better);
			status = worse ? kExitFailed : kExitOk;
		} catch (const std::runtime_error &error) {
			std::fprintf(stderr, "slice-ext latency: %s\n", error.what());
			status = kExitFailed;
		}
	});
}

} // namespace slice_ext::tool::latency
