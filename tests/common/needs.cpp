// SPDX-License-Identifier: MIT
#include "needs.hpp"

#include "numbers.hpp"
#include "rseq_area.hpp"
#include "system.hpp"

#include <cstdlib>
#include <cstring>

#include <sys/auxv.h>
#include <unistd.h>

namespace slice_test
{

bool required()
{
	const char *value = std::getenv("SLICE_EXT_REQUIRE");
	return value && std::strcmp(value, "1") == 0;
}

namespace need
{

std::string feature()
{
	const int state = get_enabled();
	if (state < 0)
		return "this kernel has no time slice extension (prctl 79: " +
		       std::string(std::strerror(-state)) + ")";
	if (getauxval(at_feature_size) < feature_size)
		return "the time slice extension is switched off at boot (rseq_slice_ext=0)";
	return {};
}

std::string series()
{
	if (std::string reason = feature(); !reason.empty())
		return reason;
	if (access(path_counters, R_OK) != 0)
		return std::string("this kernel has no ") + path_counters +
		       ": not the slice-ext series";
	return {};
}

std::string control()
{
	if (std::string reason = series(); !reason.empty())
		return reason;
	if (access(path_sysctl, W_OK) != 0)
		return std::string(path_sysctl) + " cannot be written (needs root)";
	return {};
}

std::string real_time()
{
	const int error = apply(fifo(1));
	apply(fair());
	if (error)
		return "SCHED_FIFO is refused: " + std::string(std::strerror(error));
	return {};
}

std::string two_cpus()
{
	return allowed_cpus().size() < 2 ? "needs two CPUs" : "";
}

std::string unguarded_switch()
{
	if (access(path_unguarded, W_OK) != 0)
		return std::string(path_unguarded) +
		       " cannot be written (CONFIG_SCHED_PREEMPT_DELAY_UNGUARDED, debugfs, root)";
	return {};
}

} // namespace need

} // namespace slice_test
