// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_RUNNER_HPP
#define SLICE_EXT_TOOL_LATENCY_RUNNER_HPP

#include <string>
#include <vector>

namespace slice_ext::tool::latency
{

struct RunOptions {
	std::string experiment;
	std::string name;   // of the run; "": experiment, preemption model and kernel kind
	std::string output = ".";
	std::vector<std::string> arms; // only these; empty: all that this kernel can give
	std::vector<int> cpus;         // empty: all allowed
	std::string kernel_kind;       // "": find out
	unsigned repetitions = 0;      // 0: as the experiment says
	bool short_form = false;
	bool virtual_time = false;
	bool force = false; // replace a run of that name
	bool ktap = false;
	bool quiet = false;
};

// Runs what the experiment has for this kernel and writes OUTPUT/NAME.json and the raw results
// beside it. Returns an exit status; the reason of a failure is printed to stderr.
int run_experiment(const RunOptions &options);

} // namespace slice_ext::tool::latency

#endif
