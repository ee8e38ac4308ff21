// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_AVAILABILITY_HPP
#define SLICE_EXT_TOOL_AVAILABILITY_HPP

#include <slice_ext/slice_ext.h>

#include <memory>

#include "scoped_sysctl.hpp"

namespace slice_ext::tool
{

// Whether threads of this process will get extensions: the answer of enabling one, which is started
// for that, since the query changes nothing and so cannot tell everything; and
// SLICE_EXT_SYSCTL_ZERO where enabling works but every request is refused.
slice_ext_reason section_availability();

// Sets kernel.sched_preempt_delay_us for the life of the result; null on a kernel without the
// feature, which section_availability() will tell. OPTION is what messages call the request.
// Throws Refusal.
std::unique_ptr<ScopedSysctl> set_delay(unsigned delay_us, const char *option);

} // namespace slice_ext::tool

#endif
