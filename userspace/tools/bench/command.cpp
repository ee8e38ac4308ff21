// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <slice_ext/slice_ext.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "availability.hpp"
#include "bench/report.hpp"
#include "cpu_list.hpp"
#include "demo/contender.hpp"
#include "exit_status.hpp"
#include "number_option.hpp"
#include "refusal.hpp"

namespace slice_ext::tool
{

namespace
{

// What a section of no work takes: the switch detection and the two clock readings in it.
double bookkeeping_ns(const BenchOptions &options, const Calibration &calibration,
                      SignalWatcher &signals)
{
	DemoOptions one;
	one.cpus = {options.cpus.front()};
	one.lockers = 1;
	one.sleepers = 0;
	one.hold_low_us = 0;
	one.hold_high_us = 0;
	one.pause_us = 1;
	one.heartbeat = false;
	one.seconds = 0.02;
	Progress silent(true, one.seconds);
	return static_cast<double>(
		run_phase(one, calibration, false, signals, silent).hold.quantile(0.5));
}

// The demo's lockers, whose lock is a test-and-set spinlock with pause, as storage engines use it:
// a waiter looks at the lock word until it is free, and never sleeps.
DemoOptions locker_options(const BenchOptions &options, const BenchRow &row, double bookkeeping)
{
	DemoOptions lockers;
	lockers.cpus = options.cpus;
	lockers.lockers = row.threads;
	lockers.sleepers = options.sleepers;
	const double section = static_cast<double>(row.section);
	lockers.hold_low_us = std::max(0.0, section - bookkeeping) / 1000;
	lockers.hold_high_us = lockers.hold_low_us;
	lockers.pause_us = options.pause_us.value_or(section / 1000);
	lockers.heartbeat = false;
	lockers.seconds = options.seconds;
	lockers.extend_while_waiting = row.mode == BenchMode::on_while_waiting;
	lockers.quiet = true;
	return lockers;
}

void note_availability(BenchReport &report)
{
	bool asks = false;
	for (const BenchMode mode : report.options.modes)
		asks = asks || mode != BenchMode::off;
	if (!asks)
		return;
	const slice_ext_reason reason = section_availability();
	if (reason == SLICE_EXT_AVAILABLE)
		return;
	report.unavailable_reason = slice_ext_reason_name(reason);
	report.unavailable_text = slice_ext_reason_text(reason);
	report.unavailable_hint = slice_ext_reason_hint(reason);
	if (reason == SLICE_EXT_SYSCTL_ZERO)
		report.unavailable_hint += " (for this run only: --delay-us 30)";
	if (report.options.modes_given)
		throw Refusal{kExitUnavailable, report.unavailable_text +
		                                        "\nnext step: " + report.unavailable_hint +
		                                        "\n--modes off runs without extension"};
}

// The rows of one section length and number of threads, the modes taken in turns. No Google Benchmark:
// it times iterations, and has neither percentiles of waits, nor pinned threads, nor kernel counters.
bool run_rows(const BenchOptions &options, std::vector<BenchRow> &rows,
              const Calibration &calibration, double bookkeeping, SignalWatcher &signals)
{
	Progress silent(true, options.seconds);
	for (unsigned round = 0; round < options.rounds; ++round)
		for (BenchRow &row : rows) {
			const DemoOptions lockers = locker_options(options, row, bookkeeping);
			ArmResult result = run_phase(lockers, calibration,
			                             row.mode != BenchMode::off, signals, silent);
			if (signals.caught() != 0)
				return false;
			if (round == 0)
				row.result = std::move(result);
			else
				row.result += result;
		}
	return true;
}

void run_table(BenchReport &report, SignalWatcher &signals)
{
	const BenchOptions &options = report.options;
	Progress progress(options.quiet, options.seconds);
	if (const std::string warning = guard_warning(report.facts); !warning.empty())
		progress.say("WARNING: " + warning);
	progress.say("calibrating");
	const Calibration calibration = calibrate_on(options.cpus.front());
	report.cost = measure_section_cost(options.cpus.front(), calibration.clock);
	const double bookkeeping = bookkeeping_ns(options, calibration, signals);
	for (const std::uint64_t section : options.sections)
		for (const unsigned threads : options.threads) {
			if (signals.wait(std::chrono::nanoseconds(0)))
				break;
			progress.say("sections of " + section_text(section) + ", " +
			             std::to_string(threads) + " per CPU");
			std::vector<BenchRow> rows;
			for (const BenchMode mode : options.modes)
				if (mode == BenchMode::off || report.unavailable_reason.empty())
					rows.push_back({mode, threads, section, {}});
			if (run_rows(options, rows, calibration, bookkeeping, signals))
				report.rows.insert(report.rows.end(),
				                   std::make_move_iterator(rows.begin()),
				                   std::make_move_iterator(rows.end()));
		}
	report.ended_by_signal = signals.caught();
	progress.finish();
}

int run_bench(const BenchOptions &options)
{
	SignalWatcher signals;
	BenchReport report;
	report.options = options;
	const std::unique_ptr<ScopedSysctl> delay =
		options.delay_us ? set_delay(*options.delay_us, "--delay-us") : nullptr;
	report.facts = read_kernel_facts();
	note_availability(report);
	run_table(report, signals);
	if (options.json)
		std::printf("%s\n",
		            to_json(report)
		                    .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
		                    .c_str());
	else
		std::fputs(to_text(report).c_str(), stdout);
	// While SIGPIPE is still ignored; main() reports what went wrong.
	std::fflush(stdout);
	const BenchVerdict verdict = judge(report);
	if (options.json && verdict.exit_status != kExitOk)
		std::fprintf(stderr, "slice-ext bench: %s\n", verdict.text.c_str());
	return verdict.exit_status;
}

// What the command line gave, before it is checked.
struct RawOptions {
	BenchOptions options;
	std::string cpus;
	std::string threads = "1-8";
	std::string sections = "200ns,1us,5us,20us,50us,100us";
	std::string modes = "off,on,on-while-waiting";
};

int run_command(RawOptions raw)
{
	try {
		raw.options.cpus = choose_cpus(raw.cpus, allowed_cpus());
		raw.options.threads = parse_thread_counts(raw.threads);
		raw.options.sections = parse_sections(raw.sections);
		raw.options.modes = parse_modes(raw.modes);
	} catch (const std::invalid_argument &error) {
		std::fprintf(stderr, "slice-ext bench: %s\n", error.what());
		return kExitUsage;
	}
	return run_refusable("slice-ext bench", [&raw] { return run_bench(raw.options); });
}

} // namespace

void add_bench_command(CLI::App &app, int &status)
{
	CLI::App *command = app.add_subcommand(
		"bench",
		"Throughput and lock wait over threads and section lengths, without and with "
		"extension");
	auto raw = std::make_shared<RawOptions>();
	BenchOptions &options = raw->options;

	command->add_option("--threads", raw->threads,
	                    "Threads per CPU, a list such as 1,2,4,8 or 1-8")
		->capture_default_str();
	command->add_option("--sections", raw->sections, "How long the lock is held, a list")
		->capture_default_str();
	CLI::Option *modes = command->add_option("--modes", raw->modes,
	                                         "What to compare: off, on, on-while-waiting")
	                             ->capture_default_str();
	command->add_option("--seconds", options.seconds, "Time per row and round")
		->check(number_between(0.02, 86400))
		->capture_default_str();
	command->add_option("--rounds", options.rounds,
	                    "How often each row is run, the modes taken in turns")
		->check(CLI::Range(1u, 1000u))
		->capture_default_str();
	command->add_option("--cpus", raw->cpus,
	                    "CPUs to use, such as 0-3,8 (default: all allowed)");
	command->add_option("--pause-us", options.pause_us,
	                    "Work between two sections (default: as long as the section)")
		->check(number_between(0, 1e6));
	command->add_option("--sleepers", options.sleepers, "Short sleepers per CPU")
		->check(CLI::Range(0u, DemoOptions::kMaxThreadsPerCpu))
		->capture_default_str();
	command->add_option("--delay-us", options.delay_us,
	                    "Set kernel.sched_preempt_delay_us for the run")
		->check(CLI::Range(0u, static_cast<unsigned>(SLICE_EXT_ABI_SYSCTL_MAX_US)));
	command->add_flag("--json", options.json, "Print the report as JSON");
	command->add_flag("-q,--quiet", options.quiet, "No progress on standard error");
	command->footer(
		"Exit status: 0 ran as it should (also without extension, where there is none),\n"
		"1 failed, for example not one section was extended, 2 usage, 3 --modes with on but no\n"
		"extension here, 4 a right is missing, 128+N ended by signal N before the first row.");
	command->callback([raw, modes, &status] {
		raw->options.modes_given = modes->count() > 0;
		status = run_command(*raw);
	});
}

} // namespace slice_ext::tool
