// SPDX-License-Identifier: MIT
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "command.hpp"
#include "exit_status.hpp"

int main(int argc, char **argv)
{
	using namespace slice_ext::tool;

	CLI::App app(
		"Time slice extension for short critical sections: what this kernel can do, and "
		"what it gains",
		"slice-ext");
	app.set_version_flag("--version", "slice-ext " SLICE_EXT_TOOL_VERSION);
	app.require_subcommand(1);
	int status = kExitFailed;
	add_status_command(app, status);
	add_bench_command(app, status);
	add_demo_command(app, status);
	add_load_command(app, status);
	add_latency_command(app, status);
	add_stats_command(app, status);

	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &error) {
		return app.exit(error) == 0 ? kExitOk : kExitUsage;
	} catch (const std::exception &error) {
		std::fprintf(stderr, "slice-ext: %s\n", error.what());
		return kExitFailed;
	}
	if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
		std::fprintf(stderr, "slice-ext: the output could not be written\n");
		return kExitFailed;
	}
	return status;
}
