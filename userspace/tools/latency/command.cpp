// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "cpu_list.hpp"
#include "exit_status.hpp"
#include "latency/checks.hpp"
#include "latency/compare.hpp"
#include "latency/experiment.hpp"
#include "latency/report.hpp"
#include "latency/runner.hpp"

namespace slice_ext::tool
{

namespace
{

using namespace latency;

void add_run(CLI::App &latency, int &status)
{
	CLI::App *command = latency.add_subcommand(
		"run", "Measure what an experiment has for this kernel, and keep it as a named run");
	auto options = std::make_shared<RunOptions>();
	auto cpus = std::make_shared<std::string>();
	// The deterministic virtual machine says so to everything that runs in it.
	const char *deterministic = std::getenv("SLICE_EXT_DETERMINISTIC");
	options->virtual_time = deterministic && *deterministic && std::string(deterministic) != "0";

	command->add_option("experiment", options->experiment,
	                    "Name of a built-in experiment (see list), or a file")
		->required();
	command->add_option("--name", options->name, "Name of the run");
	command->add_option("--output", options->output, "Directory for the results")
		->capture_default_str();
	command->add_flag("--short", options->short_form, "The short form of the experiment");
	command->add_option("--arms", options->arms, "Only these arms, separated by commas")
		->delimiter(',');
	command->add_option("--cpus", *cpus, "CPUs to measure on, such as 2-3 (default: all allowed)");
	command->add_option("--kernel-kind", options->kernel_kind,
	                    "Take this kernel for base, off or on instead of finding out")
		->check(CLI::IsMember({"base", "off", "on"}));
	command->add_option("--repetitions", options->repetitions,
	                    "How often each arm is measured, in turns (default: as in the experiment)")
		->check(CLI::Range(1u, 1000u));
	command->add_flag("--virtual-time", options->virtual_time,
	                  "This is a virtual machine under instruction counting");
	command->add_flag("--force", options->force, "Replace a run of that name");
	command->add_flag("--ktap", options->ktap, "Tell the progress as KTAP on stdout");
	command->add_flag("--quiet", options->quiet, "No progress on stderr");
	command->callback([options, cpus, &status] {
		try {
			if (!cpus->empty())
				options->cpus = parse_cpu_list(*cpus);
		} catch (const std::invalid_argument &error) {
			std::fprintf(stderr, "slice-ext latency: --cpus: %s\n", error.what());
			status = kExitUsage;
			return;
		}
		status = run_experiment(*options);
	});
}

void add_list(CLI::App &latency, int &status)
{
	latency.add_subcommand("list", "The built-in experiments")->callback([&status] {
		for (const BuiltIn &built_in : built_in_experiments()) {
			const Experiment experiment = load_experiment(built_in.name, false);
			std::printf("%-6s %s\n", experiment.name.c_str(), experiment.title.c_str());
		}
		status = kExitOk;
	});
}

void add_show(CLI::App &latency, int &status)
{
	CLI::App *command =
		latency.add_subcommand("show", "Print the file of an experiment, to start from");
	struct Options {
		std::string name;
		bool kernels = false;
		bool short_form = false;
	};
	auto options = std::make_shared<Options>();
	command->add_option("experiment", options->name, "Name of a built-in experiment, or a file")
		->required();
	command->add_flag("--kernels", options->kernels,
	                  "Only the kinds of kernels it has arms for: base, off, on");
	command->add_flag("--short", options->short_form, "With --kernels: of the short form");
	command->callback([options, &status] {
		try {
			const Experiment experiment =
				load_experiment(options->name, options->short_form);
			if (!options->kernels)
				std::fputs(experiment_text(options->name).c_str(), stdout);
			for (const char *kind : {"base", "off", "on"})
				for (const Arm &arm : experiment.arms)
					if (options->kernels && arm.kernel == kind) {
						std::printf("%s\n", kind);
						break;
					}
			status = kExitOk;
		} catch (const ExperimentError &error) {
			std::fprintf(stderr, "slice-ext latency: %s\n", error.what());
			status = kExitUsage;
		}
	});
}

} // namespace

void add_latency_command(CLI::App &app, int &status)
{
	CLI::App *latency = app.add_subcommand(
		"latency", "The laboratory: what sections cost a real-time thread, measured and compared");
	latency->require_subcommand(1);
	add_run(*latency, status);
	add_check_subcommand(*latency, status);
	add_compare_subcommand(*latency, status);
	add_report_subcommand(*latency, status);
	add_list(*latency, status);
	add_show(*latency, status);
}

} // namespace slice_ext::tool
