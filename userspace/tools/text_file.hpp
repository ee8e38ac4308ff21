// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_TEXT_FILE_HPP
#define SLICE_EXT_TOOL_TEXT_FILE_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace slice_ext::tool
{

// Whole content of a small (procfs, sysfs, sysctl) file; nullopt with errno set when it cannot be
// read. Trailing white space is kept. Thread-safe.
std::optional<std::string> read_text(const std::string &path);

// Overwrites PATH with TEXT in one write(2), as sysctl files need. Returns 0 or an errno value.
int write_text(const std::string &path, std::string_view text);

// The whole of TEXT, white space around it aside, as a decimal number; nullopt for anything else,
// overflow included.
std::optional<std::int64_t> parse_integer(std::string_view text);

std::string_view trimmed(std::string_view text);

} // namespace slice_ext::tool

#endif
