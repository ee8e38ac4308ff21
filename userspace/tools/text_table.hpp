// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_TEXT_TABLE_HPP
#define SLICE_EXT_TOOL_TEXT_TABLE_HPP

#include <string>
#include <vector>

namespace slice_ext::tool
{

// Columns under each other: the first to the left, the others to the right, two blanks between
// them. All rows have the length of the first; there is at least one.
std::string text_table(const std::vector<std::vector<std::string>> &rows);

} // namespace slice_ext::tool

#endif
