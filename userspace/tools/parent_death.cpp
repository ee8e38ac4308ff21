// SPDX-License-Identifier: MIT
#include "parent_death.hpp"

#include <sys/prctl.h>
#include <unistd.h>

namespace slice_ext::tool
{

bool die_with_parent(int signal_number, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0);
	// An orphan has another parent: init, or a subreaper.
	return getppid() == parent;
}

} // namespace slice_ext::tool
