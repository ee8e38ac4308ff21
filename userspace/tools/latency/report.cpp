// SPDX-License-Identifier: MIT
#include "latency/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>

#include "exit_status.hpp"
#include "latency/checks.hpp"
#include "latency/compare.hpp"
#include "latency/plot.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

constexpr const char *kStyle = R"css(
body { font: 16px/1.5 sans-serif; color: #222; max-width: 62em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em } h2 { margin-top: 2.5em; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; margin: 1em 0; font-size: 0.9em }
th, td { padding: 0.25em 0.7em; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left } td.text { text-align: left }
.pass { color: #00664b; font-weight: bold } .fail { color: #b00020; font-weight: bold }
.skip { color: #666 } .control { font-style: italic }
pre { background: #f4f4f4; padding: 0.7em; overflow-x: auto; font-size: 0.85em }
svg { max-width: 100%; height: auto; margin: 0.5em 0 }
)css";

constexpr const char *kIntroduction = R"html(
<p>A thread that holds a short lock can ask the kernel not to let another ordinary thread take its
CPU just then. It gets a few microseconds more, provided that only ordinary threads have to wait.
What is shown here is both sides of that: what the threads that share a lock gain, and that a
real-time thread which wakes up on the same CPU pays nothing for it. Every table has arms on the
unpatched kernel, on the patched one without users, with well-behaved users, and with an
<em>abuser</em> that asks all the time and never gives the CPU back. In the arms called
<em>dropped</em> the guard that protects real-time threads is switched off on purpose. They are the
control: if they do not show the harm, a result that shows none proves nothing.</p>
)html";

constexpr const char *kVirtualTime = R"html(
<p>The figures are in <em>virtual time</em>: the machine is an emulated one in which every
instruction takes one nanosecond. A latency is the length of the path through the kernel, counted in
instructions: 5 us are 5000 instructions. Nothing is random, two runs agree bit for bit, so the worst
of a few hundred wake-ups means something, and a difference of a few hundred nanoseconds is a
difference of the code. It says nothing of caches, buses and firmware; that needs the same
experiments on the hardware itself.</p>
)html";

constexpr const char *kRealTime = R"html(
<p>The figures were sampled on real hardware (or a virtual machine on the host's clock). A maximum
that was not seen may still be there: zero exceedances in <em>n</em> samples only bound their rate
by about 3/<em>n</em>.</p>
)html";

void add_rows(std::string &html, const std::vector<std::vector<std::string>> &rows)
{
	html += "<table>\n";
	for (std::size_t i = 0; i < rows.size(); ++i) {
		html += "<tr>";
		for (const std::string &cell : rows[i]) {
			const std::string tag = i == 0 ? "th" : "td";
			html += "<" + tag + ">" + html_escaped(cell) + "</" + tag + ">";
		}
		html += "</tr>\n";
	}
	html += "</table>\n";
}

unsigned colour_of(const std::string &name)
{
	static const std::map<std::string, unsigned> colours = {
		{"base", 0},      {"off", 0},        {"on-user", 2}, {"on", 2}, {"on-abuser", 4},
		{"dropped-30", 1}, {"dropped-5", 3}, {"on-while-waiting", 5}};
	const auto found = colours.find(name);
	return found == colours.end() ? 6 : found->second;
}

double us(std::uint64_t ns)
{
	return static_cast<double>(ns) / 1000;
}

void add_histograms(std::string &html, const Table &table)
{
	// Beside each other in the order of harm; more than these nobody tells apart.
	Plot plot;
	plot.title = table.title() + ": wake-up latencies";
	plot.x = "latency, us";
	plot.y = "samples";
	plot.log_y = true;
	plot.dots = false;
	// The widest first, so that the narrow ones are drawn over it.
	for (const char *arm : {"dropped-30", "dropped-5", "on-abuser", "on-user", "base"}) {
		const Distribution distribution = distribution_of(table, arm);
		if (distribution.samples == 0)
			continue;
		// Half-microsecond bins show the shape; single nanoseconds do not.
		std::map<std::uint64_t, std::uint64_t> bins;
		for (const auto &[edge, count] : distribution.buckets)
			bins[edge / 500] += count;
		Series series;
		series.title = arm;
		series.colour = colour_of(arm);
		const double shift = 0.08 * static_cast<double>(plot.series.size());
		for (const auto &[bin, count] : bins)
			series.points.emplace_back(static_cast<double>(bin) / 2 + shift,
			                           static_cast<double>(count));
		plot.series.push_back(std::move(series));
	}
	if (!plot.series.empty())
		html += to_svg(plot, "p" + std::to_string(html.size()) + "-");
}

void add_phases(std::string &html, const Table &table)
{
	const auto draw = [&](const std::string &title, const std::set<std::string> &arms, double low,
	                      double high) {
		Plot plot;
		plot.title = title + " (arm: worst, us, at phase)";
		plot.x = "programmed wake-up, us from the tick";
		plot.y = "worst latency, us";
		plot.dots = true;
		for (const Arm &arm : table.experiment.arms) {
			const auto results = table.results(arm.name);
			if (!arms.count(arm.name) || results.empty())
				continue;
			Series series;
			series.title = arm.name;
			for (const ArmResult *result : results) {
				std::map<double, double> worst;
				for (const PhaseSample &sample : result->phase->samples) {
					// The last part of the period is just before the next tick.
					double phase = us(sample.phase);
					if (high < us(result->phase->period) &&
					    phase > us(result->phase->period) / 2)
						phase -= us(result->phase->period);
					if (phase >= low && phase <= high)
						worst[phase] =
							std::max(worst[phase], us(sample.latency));
				}
				series.points.insert(series.points.end(), worst.begin(), worst.end());
			}
			series.colour = colour_of(arm.name);
			if (series.points.empty())
				continue;
			const auto worst = *std::max_element(
				series.points.begin(), series.points.end(),
				[](const auto &a, const auto &b) { return a.second < b.second; });
			char text[96];
			std::snprintf(text, sizeof(text), "%s: %.1f at %.1f", arm.name.c_str(),
			              worst.second, worst.first);
			series.title = text;
			plot.series.push_back(std::move(series));
		}
		if (!plot.series.empty())
			html += to_svg(plot, "p" + std::to_string(html.size()) + "-");
	};
	draw(table.title() + ": around the tick", {"base", "on-user", "on-abuser"}, -20, 60);
	draw(table.title() + ": around the tick, with the control", {"base", "on-abuser", "dropped-30"},
	     -20, 60);
	draw(table.title() + ": the whole period", {"base", "on-abuser"}, 0, 1e6);
}

void add_locks(std::string &html, const Table &table)
{
	struct Figure {
		const char *title;
		const char *label;
		double (*value)(const LockRow &);
	};
	static const Figure figures[] = {
		{"sections per second", "sections per second",
	         [](const LockRow &row) { return row.sections_per_second; }},
		{"lock wait, 99th percentile", "us",
	         [](const LockRow &row) { return us(row.wait_p99); }},
		{"lock wait, worst", "us", [](const LockRow &row) { return us(row.wait_max); }},
	};
	std::set<std::uint64_t> sections;
	for (const ArmResult *result : table.results("on"))
		for (const LockRow &row : result->locks)
			sections.insert(row.section);
	for (const std::uint64_t section : sections)
		for (const Figure &figure : figures) {
			std::map<std::string, Series> series;
			for (const ArmResult *result : table.results("on"))
				for (const LockRow &row : result->locks)
					if (row.section == section)
						series[row.mode].points.emplace_back(
							row.threads,
							figure.value(row));
			Plot plot;
			plot.title = table.title() + ", sections of " + in_us(static_cast<double>(section)) +
			             ": " + figure.title;
			plot.x = "threads per CPU";
			plot.y = figure.label;
			plot.lines = true;
			for (auto &[mode, line] : series) {
				line.title = mode;
				line.colour = colour_of(mode);
				plot.series.push_back(std::move(line));
			}
			html += to_svg(plot, "p" + std::to_string(html.size()) + "-");
		}
}

void add_checks(std::string &html, const Verdict &verdict)
{
	html += "<table>\n<tr><th>check</th><th>outcome</th><th>figures</th></tr>\n";
	for (const CheckResult &result : verdict.checks) {
		static const char *const classes[] = {"pass", "fail", "skip"};
		const char *name = classes[static_cast<int>(result.outcome)];
		html += "<tr><td" + std::string(result.check.control ? " class=\"control\"" : "") + ">" +
		        (result.check.control ? "control: " : "") + html_escaped(result.check.title) +
		        "</td><td class=\"" + name + "\">" + name + "</td><td class=\"text\">" +
		        html_escaped(result.figures) + "</td></tr>\n";
	}
	html += "</table>\n";
}

void add_environments(std::string &html, const Table &table)
{
	for (const RunRecord *record : table.records) {
		html += "<h3>Run " + html_escaped(record->name) + "</h3>\n<p>Started " +
		        html_escaped(record->started) + (record->short_form ? ", short form" : "") +
		        ".</p>\n<table>\n";
		for (const auto &item : record->environment.items()) {
			const json &value = item.value();
			html += "<tr><td>" + html_escaped(item.key()) + "</td><td class=\"text\">" +
			        html_escaped(value.is_string() ? value.get<std::string>()
			                     : value.is_null() ? "unknown"
			                                       : value.dump()) +
			        "</td></tr>\n";
		}
		html += "</table>\n";
	}
}

std::string rerun_of(const Table &table)
{
	const std::string form = table.short_form ? " --short" : "";
	if (table.virtual_time)
		return "scripts/latency " + table.experiment.name + form;
	return "scripts/latency --host " + table.experiment.name + form;
}

} // namespace

std::string html_escaped(const std::string &text)
{
	std::string made;
	for (const char letter : text) {
		switch (letter) {
		case '&':
			made += "&amp;";
			break;
		case '<':
			made += "&lt;";
			break;
		case '>':
			made += "&gt;";
			break;
		case '"':
			made += "&quot;";
			break;
		default:
			made += letter;
		}
	}
	return made;
}

namespace
{

void add_comparison(std::string &html, const std::vector<RunRecord> &records)
{
	static const char *const words[] = {"same", "better", "worse"};
	static const char *const classes[] = {"skip", "pass", "fail"};
	const RunRecord &baseline = records.front();
	unsigned worse = 0;
	std::string rows;
	for (std::size_t i = 1; i < records.size(); ++i)
		for (const Difference &difference : compare(baseline, records[i], {})) {
			const int change = static_cast<int>(difference.change);
			worse += difference.change == Change::worse;
			rows += "<tr><td>" + html_escaped(difference.run) + "</td><td class=\"text\">" +
			        html_escaped(difference.arm) + "</td><td class=\"text\">" +
			        html_escaped(difference.metric) + "</td><td class=\"" +
			        classes[change] + "\">" + words[change] + "</td><td class=\"text\">" +
			        html_escaped(difference.figures) + "</td></tr>\n";
		}
	html += "<p>Against run " + html_escaped(baseline.name) + ": <span class=\"" +
	        (worse ? "fail\">" + std::to_string(worse) + " figures are worse"
	               : std::string("pass\">nothing is worse")) +
	        "</span>.</p>\n<table>\n<tr><th>run</th><th>arm</th><th>figure</th><th></th>"
	        "<th>before and after</th></tr>\n" +
	        rows + "</table>\n";
}

// Runs that have the same arms cannot make one table.
std::vector<Table> tables_of(const std::vector<RunRecord> &records, bool separate)
{
	if (!separate)
		return make_tables(records);
	std::vector<Table> tables;
	for (const RunRecord &record : records) {
		Table table;
		table.experiment = experiment_from_record(record.experiment, "run " + record.name);
		table.preemption = record.preemption() + ", run " + record.name;
		table.virtual_time = record.virtual_time();
		table.short_form = record.short_form;
		table.records.push_back(&record);
		tables.push_back(std::move(table));
	}
	return tables;
}

} // namespace

std::string to_html(const std::vector<RunRecord> &records, const ReportOptions &options)
{
	const std::vector<Table> tables = tables_of(records, options.compare);
	std::vector<Verdict> verdicts;
	for (const Table &table : tables)
		verdicts.push_back(judge(table, options.partial || options.compare));

	std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" +
	                   html_escaped(options.title) + "</title>\n<style>" + kStyle +
	                   "</style>\n</head>\n<body>\n<h1>" + html_escaped(options.title) + "</h1>\n";
	if (options.compare)
		add_comparison(html, records);
	html += "<table>\n<tr><th>table</th><th>verdict</th><th></th></tr>\n";
	bool any_virtual = false, any_real = false;
	for (std::size_t i = 0; i < tables.size(); ++i) {
		const char *name = verdicts[i].passed ? "pass" : "fail";
		html += "<tr><td>" + html_escaped(tables[i].title()) + "</td><td class=\"" + name +
		        "\">" + name + "</td><td class=\"text\">" + html_escaped(verdicts[i].line) +
		        "</td></tr>\n";
		any_virtual |= tables[i].virtual_time;
		any_real |= !tables[i].virtual_time;
	}
	html += "</table>\n";
	html += kIntroduction;
	if (any_virtual)
		html += kVirtualTime;
	if (any_real)
		html += kRealTime;

	for (std::size_t i = 0; i < tables.size(); ++i) {
		const Table &table = tables[i];
		html += "<h2>" + html_escaped(table.title()) + ": " +
		        html_escaped(table.experiment.title) + "</h2>\n";
		if (!table.experiment.source.empty())
			html += "<p>After: " + html_escaped(table.experiment.source) + ".</p>\n";
		html += "<p>The arms:</p>\n<table>\n";
		for (const Arm &arm : table.experiment.arms)
			html += "<tr><td>" + html_escaped(arm.name) + "</td><td class=\"text\">" +
			        html_escaped(arm.title) +
			        (table.results(arm.name).empty() ? " (not measured)" : "") +
			        "</td></tr>\n";
		html += "</table>\n";
		add_rows(html, arm_rows(table));
		if (options.plots) {
			if (table.experiment.kind == Kind::cyclictest)
				add_histograms(html, table);
			else if (table.experiment.kind == Kind::phase)
				add_phases(html, table);
			else
				add_locks(html, table);
		}
		add_checks(html, verdicts[i]);
		html += "<p>To run it again: <code>" + html_escaped(rerun_of(table)) + "</code></p>\n";
		add_environments(html, table);
	}
	return html + "</body>\n</html>\n";
}

void add_report_subcommand(CLI::App &latency, int &status)
{
	CLI::App *command = latency.add_subcommand("report", "Write runs as one HTML document");
	struct Options {
		std::vector<std::string> runs;
		std::string output;
		ReportOptions report;
		bool no_plots = false;
	};
	auto options = std::make_shared<Options>();
	command->add_option("runs", options->runs, "Files of runs")->required();
	command->add_option("--output", options->output, "The document to write")->required();
	command->add_option("--title", options->report.title, "Its title")->capture_default_str();
	command->add_flag("--no-plots", options->no_plots, "Without plots, which need gnuplot");
	command->add_flag("--compare", options->report.compare,
	                  "The runs against the first one of them, as compare does");
	command->add_flag("--partial", options->report.partial,
	                  "Skip checks of arms that were not measured, instead of failing them");
	command->callback([options, &status] {
		status = kExitFailed;
		try {
			options->report.plots = !options->no_plots;
			std::vector<RunRecord> records;
			for (const std::string &path : options->runs)
				records.push_back(read_record(path));
			if (options->report.compare && records.size() < 2)
				throw std::runtime_error("--compare needs two runs or more");
			const std::string html = to_html(records, options->report);
			const std::string temporary = options->output + ".new";
			std::ofstream file(temporary, std::ios::trunc);
			file << html;
			file.close();
			if (!file || std::rename(temporary.c_str(), options->output.c_str()) != 0) {
				const int error = errno;
				unlink(temporary.c_str());
				throw std::system_error(error, std::generic_category(),
				                        "cannot write " + options->output);
			}
			status = kExitOk;
		} catch (const std::exception &error) {
			std::fprintf(stderr, "slice-ext latency: %s\n", error.what());
		}
	});
}

} // namespace slice_ext::tool::latency
