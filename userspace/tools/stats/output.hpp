// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_STATS_OUTPUT_HPP
#define SLICE_EXT_TOOL_STATS_OUTPUT_HPP

#include <string_view>

namespace slice_ext::tool
{

// Writes all of TEXT to standard output, past stdio, so that each refresh is there at once. False
// when the reader has gone away, which for a view without an end is no error; SIGPIPE has to be
// ignored. Throws std::system_error for anything else.
bool write_output(std::string_view text);

} // namespace slice_ext::tool

#endif
