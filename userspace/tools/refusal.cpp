// SPDX-License-Identifier: MIT
#include "refusal.hpp"

#include <cstdio>
#include <exception>

#include "exit_status.hpp"

namespace slice_ext::tool
{

int run_refusable(const char *command, const std::function<int()> &run)
{
	try {
		return run();
	} catch (const Refusal &refusal) {
		std::fprintf(stderr, "%s: %s\n", command, refusal.text.c_str());
		return refusal.exit_status;
	} catch (const std::exception &error) {
		std::fprintf(stderr, "%s: %s\n", command, error.what());
		return kExitFailed;
	}
}

} // namespace slice_ext::tool
