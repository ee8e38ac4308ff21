// SPDX-License-Identifier: MIT
#include "command.hpp"

#include <memory>

#include "number_option.hpp"
#include "refusal.hpp"
#include "stats/live.hpp"
#include "stats/options.hpp"
#include "stats/record.hpp"

namespace slice_ext::tool
{

void add_stats_command(CLI::App &app, int &status)
{
	CLI::App *command = app.add_subcommand(
		"stats", "What becomes of the requests for extension, live, and how long they last");
	auto options = std::make_shared<StatsOptions>();
	// The kernel's own limit of thread IDs.
	const CLI::Range ids(1, 4194304);

	CLI::Option *interval =
		command->add_option("--interval", options->interval, "Seconds between two refreshes")
			->check(number_between(0.05, 86400))
			->capture_default_str();
	CLI::Option *count = command->add_option("--count", options->count,
	                                         "How many refreshes (default: until a signal)")
	                             ->check(CLI::Range(1u, 1000000000u));
	auto once = std::make_shared<bool>(false);
	CLI::Option *only_once =
		command->add_flag("--once", *once, "One snapshot of the totals, without rates")
			->excludes(interval)
			->excludes(count);
	CLI::Option *pid = command->add_option("--pid", options->pid,
	                                       "Only this process: the sum over its threads")
	                           ->check(ids);
	CLI::Option *tid =
		command->add_option("--tid", options->tid, "Only this thread")->check(ids)->excludes(pid);
	CLI::Option *per_cpu = command->add_flag("--per-cpu", options->per_cpu, "A column per CPU")
	                               ->excludes(pid)
	                               ->excludes(tid);
	CLI::Option *histogram =
		command->add_flag("--histogram", options->histogram,
	                          "Record extensions with the kernel's tracer (needs root) and show "
	                          "how long they lasted")
			->excludes(interval)
			->excludes(count)
			->excludes(only_once)
			->excludes(per_cpu);
	command->add_option("--duration", options->duration,
	                    "Seconds to record (default: until a signal)")
		->needs(histogram)
		->check(number_between(0.05, 1e9));
	command->add_flag("--json", options->json,
	                  "One JSON object per refresh, each on a line of its own");
	command->footer(
		"A signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT) ends it after one more refresh.\n"
		"Exit status: 0 ended as told, or the process or the reader of the output has ended,\n"
		"1 failed, for example no such process, 2 usage, 3 this kernel does not count, 4 a\n"
		"right is missing.");
	command->callback([options, once, &status] {
		if (*once)
			options->count = 1;
		status = run_refusable("slice-ext stats", [&options] {
			return options->histogram ? run_histogram(*options) : run_live(*options);
		});
	});
}

} // namespace slice_ext::tool
