// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_ENVIRONMENT_HPP
#define SLICE_EXT_TOOL_LATENCY_ENVIRONMENT_HPP

#include <nlohmann/json.hpp>
#include <string>

namespace slice_ext::tool::latency
{

// What a result can depend on, for RunRecord::environment. ROOT is put before every path, for
// tests. VIRTUAL_TIME: the caller knows that this is a virtual machine under instruction counting.
nlohmann::json read_environment(bool virtual_time, const std::string &root = "");

// "base": no trace of the feature; "off": there, but rseq_slice_ext= on the command line switched it
// off; "on".
std::string kernel_kind(const std::string &root = "");

// Clock ticks that a hypervisor took from this machine since boot; -1: not known.
long long steal_ticks(const std::string &root = "");

} // namespace slice_ext::tool::latency

#endif
