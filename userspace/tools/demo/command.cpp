// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <slice_ext/slice_ext.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <system_error>
#include <tuple>

#include "availability.hpp"
#include "cpu_list.hpp"
#include "demo/contender.hpp"
#include "demo/pinned_thread.hpp"
#include "demo/report.hpp"
#include "demo/rt_probe.hpp"
#include "exit_status.hpp"
#include "number_option.hpp"
#include "refusal.hpp"
#include "scoped_sysctl.hpp"

namespace slice_ext::tool
{

namespace
{

// Before anything is measured: a run must not fail over this halfway.
void check_fifo_right(const DemoOptions &options)
{
	try {
		PinnedThread trial(options.cpus.front(), options.rt_priority, [] {});
	} catch (const std::system_error &error) {
		if (error.code().value() != EPERM)
			throw;
		throw Refusal{kExitNoPermission,
		              "--rt: no right to SCHED_FIFO priority " +
		                      std::to_string(options.rt_priority) +
		                      "; run it as root, with CAP_SYS_NICE, or raise the "
		                      "limit with 'ulimit -r'"};
	}
	if (!lock_memory())
		throw Refusal{kExitNoPermission,
		              std::string("--rt: cannot lock the memory: ") + std::strerror(errno) +
		                      "; run it as root, with CAP_IPC_LOCK, or raise the "
		                      "limit with 'ulimit -l'"};
}

void note_unavailable(DemoReport &report, slice_ext_reason reason)
{
	report.unavailable_reason = slice_ext_reason_name(reason);
	report.unavailable_text = slice_ext_reason_text(reason);
	report.unavailable_hint = slice_ext_reason_hint(reason);
	if (reason == SLICE_EXT_SYSCTL_ZERO)
		report.unavailable_hint += " (for this run only: --delay-us 30)";
}

void run_phases(DemoReport &report, SignalWatcher &signals, Progress &progress)
{
	const DemoOptions &options = report.options;
	const bool off = options.mode != Mode::on;
	const bool on = options.mode != Mode::off && report.unavailable_reason.empty();
	const unsigned count = options.rounds * (unsigned(off) + unsigned(on));

	progress.say("calibrating");
	const Calibration calibration = calibrate_on(options.cpus.front());
	report.ns_per_tick = calibration.clock.ns_per_tick();
	report.section_cost_ns = calibration.section_cost_ns;

	unsigned number = 0;
	const auto phase = [&](bool extended, std::optional<ArmResult> &arm) {
		if (signals.wait(std::chrono::nanoseconds(0)))
			return;
		progress.begin_phase(++number, count, extended);
		ArmResult result = run_phase(options, calibration, extended, signals, progress);
		if (arm)
			*arm += result;
		else
			arm = std::move(result);
	};
	for (unsigned round = 0; round < options.rounds; ++round) {
		if (off)
			phase(false, report.without);
		if (on)
			phase(true, report.with);
	}
	report.ended_by_signal = signals.caught();
}

void print(const DemoReport &report)
{
	if (report.options.json)
		std::printf("%s\n",
		            to_json(report)
		                    .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
		                    .c_str());
	else
		std::fputs(to_text(report).c_str(), stdout);
	// While SIGPIPE is still ignored; main() reports what went wrong.
	std::fflush(stdout);
}

int run_demo(const DemoOptions &options)
{
	SignalWatcher signals;
	DemoReport report;
	report.options = options;
	if (options.rt)
		check_fifo_right(options);
	const std::unique_ptr<ScopedSysctl> delay =
		options.delay_us ? set_delay(*options.delay_us, "--delay-us") : nullptr;
	report.facts = read_kernel_facts();
	if (options.mode != Mode::off) {
		const slice_ext_reason reason = section_availability();
		if (reason != SLICE_EXT_AVAILABLE)
			note_unavailable(report, reason);
	}
	if (options.mode == Mode::on && !report.unavailable_reason.empty())
		throw Refusal{kExitUnavailable,
		              report.unavailable_text + "\nnext step: " + report.unavailable_hint +
		                      "\n--mode both or off runs without extension"};
	Progress progress(options.quiet, options.seconds);
	if (const std::string warning = guard_warning(report.facts); !warning.empty())
		progress.say("WARNING: " + warning);
	run_phases(report, signals, progress);
	progress.finish();
	print(report);
	return judge(report).exit_status;
}

// What the command line gave, before it is checked.
struct RawOptions {
	DemoOptions options;
	std::string cpus;
	std::string hold = "20";
};

int run_command(RawOptions raw)
{
	try {
		std::tie(raw.options.hold_low_us, raw.options.hold_high_us) = parse_hold(raw.hold);
		raw.options.cpus = choose_cpus(raw.cpus, allowed_cpus());
	} catch (const std::invalid_argument &error) {
		std::fprintf(stderr, "slice-ext demo: %s\n", error.what());
		return kExitUsage;
	}
	return run_refusable("slice-ext demo", [&raw] { return run_demo(raw.options); });
}

} // namespace

void add_demo_command(CLI::App &app, int &status)
{
	CLI::App *command = app.add_subcommand(
		"demo",
		"What extension does to threads that contend for a lock, and to a real-time thread");
	auto raw = std::make_shared<RawOptions>();
	DemoOptions &options = raw->options;
	const std::map<std::string, Mode> modes = {
		{"both", Mode::both}, {"off", Mode::off}, {"on", Mode::on}};

	command->add_option("--seconds", options.seconds, "Length of each phase")
		->check(number_between(0.05, 86400))
		->capture_default_str();
	command->add_option("--rounds", options.rounds, "Phases of each arm, taken in turns")
		->check(CLI::Range(1, 1000))
		->capture_default_str();
	command->add_option("--mode", options.mode,
	                    "Which arms to run: both, off, on (default both)")
		->transform(CLI::CheckedTransformer(modes, CLI::ignore_case));
	command->add_option("--cpus", raw->cpus,
	                    "CPUs to use, such as 0-3,8 (default: all allowed)");
	command->add_option("--lockers", options.lockers,
	                    "Threads per CPU that contend for the lock")
		->check(CLI::Range(1u, DemoOptions::kMaxThreadsPerCpu))
		->capture_default_str();
	command->add_option("--sleepers", options.sleepers, "Short sleepers per CPU")
		->check(CLI::Range(0u, DemoOptions::kMaxThreadsPerCpu))
		->capture_default_str();
	command->add_option("--hold-us", raw->hold,
	                    "How long the lock is held: a time, or a range such as 15-50")
		->capture_default_str();
	command->add_option("--pause-us", options.pause_us, "Work of a thread between two sections")
		->check(number_between(0, 1e6))
		->capture_default_str();
	CLI::Option *rt =
		command->add_flag("--rt", options.rt,
	                          "Measure the wake-up latency of a SCHED_FIFO thread on each CPU");
	command->add_option("--rt-prio", options.rt_priority, "Its priority")
		->check(CLI::Range(1, 99))
		->needs(rt)
		->capture_default_str();
	command->add_option("--rt-interval-us", options.rt_interval_us, "Its period")
		->check(CLI::Range(100u, 1000000u))
		->needs(rt)
		->capture_default_str();
	CLI::Option *abuse = command->add_flag("--abuse", options.abuse,
	                                       "Request always, never give the CPU back");
	command->add_flag("--extend-while-waiting", options.extend_while_waiting,
	                  "Request from the first attempt at the lock on")
		->excludes(abuse);
	command->add_option("--delay-us", options.delay_us,
	                    "Set kernel.sched_preempt_delay_us for the run")
		->check(CLI::Range(0u, static_cast<unsigned>(SLICE_EXT_ABI_SYSCTL_MAX_US)));
	command->add_flag("--json", options.json, "Print the report as JSON");
	command->add_flag("-q,--quiet", options.quiet, "No progress on standard error");
	command->footer(
		"Exit status: 0 ran as it should (also without extension, where there is none),\n"
		"1 failed, for example not one section was extended, 2 usage, 3 --mode on but no\n"
		"extension here, 4 a right is missing, 128+N ended by signal N too early to compare.");
	command->callback([raw, &status] { status = run_command(*raw); });
}

} // namespace slice_ext::tool
