// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <signal.h>
#include <slice_ext/slice_ext.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "availability.hpp"
#include "cpu_list.hpp"
#include "demo/contender.hpp"
#include "exit_status.hpp"
#include "load/build_load.hpp"
#include "load/options.hpp"
#include "load/spinners.hpp"
#include "number_option.hpp"
#include "parent_death.hpp"
#include "refusal.hpp"

namespace slice_ext::tool
{

namespace
{

bool asks(LoadKind kind)
{
	return kind == LoadKind::abuser || kind == LoadKind::user;
}

void check_availability(const LoadOptions &options)
{
	const slice_ext_reason reason = section_availability();
	if (reason == SLICE_EXT_AVAILABLE)
		return;
	const std::string text = std::string(slice_ext_reason_text(reason)) +
	                         "\nnext step: " + slice_ext_reason_hint(reason);
	// Threads that ask in vain are a load too, and whoever started it may raise the value later.
	if (reason == SLICE_EXT_SYSCTL_ZERO) {
		if (!options.quiet)
			std::fprintf(stderr, "slice-ext load: warning: %s\n", text.c_str());
		return;
	}
	throw Refusal{kExitUnavailable, text};
}

// The demo's lockers, which contend for one lock on all CPUs.
std::uint64_t run_lockers(const LoadOptions &options, SignalWatcher &signals)
{
	constexpr double kForEver = 1e9;
	DemoOptions demo;
	demo.cpus = options.cpus;
	demo.lockers = options.threads;
	demo.sleepers = options.sleepers;
	demo.hold_low_us = options.hold_low_us;
	demo.hold_high_us = options.hold_high_us;
	demo.seconds = options.seconds.value_or(kForEver);
	demo.quiet = true;
	const Calibration calibration = calibrate_on(options.cpus.front());
	Progress silent(true, demo.seconds);
	return run_phase(demo, calibration, options.kind == LoadKind::user, signals, silent)
	        .sections;
}

int run_load(const LoadOptions &options)
{
	SignalWatcher signals;
	if (asks(options.kind))
		check_availability(options);
	if (!options.quiet)
		std::fprintf(stderr, "slice-ext load: %u x %s on each of the CPUs %s, %s\n",
		             options.threads, load_kind_name(options.kind),
		             format_cpu_list(options.cpus).c_str(),
		             options.seconds ? "for the time given" : "until a signal ends it");
	std::uint64_t done = 0;
	const char *what = "";
	switch (options.kind) {
	case LoadKind::abuser:
		done = run_spinners(options, signals);
		what = "requests";
		break;
	case LoadKind::hog:
		run_spinners(options, signals);
		break;
	case LoadKind::user:
	case LoadKind::contender:
		done = run_lockers(options, signals);
		what = "sections";
		break;
	case LoadKind::build:
		done = run_build(options, signals);
		what = "programs run";
		break;
	}
	if (!options.quiet && *what != '\0')
		std::fprintf(stderr, "slice-ext load: %llu %s\n",
		             static_cast<unsigned long long>(done), what);
	return kExitOk;
}

// What the command line gave, before it is checked.
struct RawOptions {
	LoadOptions options;
	std::string kind;
	std::string cpus;
	std::string hold = "50";
	std::vector<std::string> compile;
};

int run_command(RawOptions raw, bool threads_given)
{
	raw.options.kind = load_kind(raw.kind);
	try {
		std::tie(raw.options.hold_low_us, raw.options.hold_high_us) = parse_hold(raw.hold);
		raw.options.cpus = choose_cpus(raw.cpus, allowed_cpus());
	} catch (const std::invalid_argument &error) {
		std::fprintf(stderr, "slice-ext load: %s\n", error.what());
		return kExitUsage;
	}
	if (!raw.compile.empty())
		return compile_one(raw.compile[0], raw.compile[1]);
	if (!threads_given)
		raw.options.threads = default_threads(raw.options.kind);
	const pid_t parent = getppid();
	// Whatever the parent ignores: a load that outlives it spoils what comes after.
	signal(SIGTERM, SIG_DFL);
	if (!die_with_parent(SIGTERM, parent))
		return kExitSignalBase + SIGTERM;
	return run_refusable("slice-ext load", [&raw] { return run_load(raw.options); });
}

} // namespace

void add_load_command(CLI::App &app, int &status)
{
	CLI::App *command =
		app.add_subcommand("load", "A load to put beside a measurement of something else");
	auto raw = std::make_shared<RawOptions>();
	LoadOptions &options = raw->options;
	command->add_option("KIND", raw->kind,
	                    "abuser (requests always, never leaves a section or yields), user "
	                    "(lockers whose sections are extended), contender (lockers without "
	                    "extension), hog (computes), build (short-lived programs, page faults, "
	                    "small files)")
		->required()
		->check(CLI::IsMember({"abuser", "user", "contender", "hog", "build"}));
	command->add_option("--cpus,--cpu", raw->cpus,
	                    "CPUs to load, such as 0-3,8 (default: all allowed)");
	CLI::Option *threads = command->add_option("--threads", options.threads,
	                                           "Threads per CPU (default 3, hog and build 1)")
	                               ->check(CLI::Range(1u, LoadOptions::kMaxThreadsPerCpu));
	command->add_option("--sleepers", options.sleepers,
	                    "user, contender: short sleepers per CPU that preempt the lockers")
		->check(CLI::Range(0u, LoadOptions::kMaxThreadsPerCpu))
		->capture_default_str();
	command->add_option("--hold-us", raw->hold,
	                    "user, contender: how long the lock is held, a time or a range such as "
	                    "15-50")
		->capture_default_str();
	command->add_option("--seconds", options.seconds, "How long (default: until a signal)")
		->check(number_between(0.01, 1e9));
	command->add_flag("-q,--quiet", options.quiet, "Nothing on standard error but errors");
	command->add_option("--compile", raw->compile)->expected(2)->group("");
	command->footer(
		"Ends in order at SIGTERM, SIGINT, SIGHUP and SIGQUIT, and with the thread that\n"
		"started it. Exit status: 0 ended as told, 1 failed, 2 usage, 3 abuser or user but no\n"
		"extension here.");
	command->callback(
		[raw, threads, &status] { status = run_command(*raw, threads->count() > 0); });
}

} // namespace slice_ext::tool
