// SPDX-License-Identifier: MIT
#include "scoped_sysctl.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "text_file.hpp"

namespace slice_ext::tool
{

ScopedSysctl::ScopedSysctl(std::string path, long value) : path_(std::move(path))
{
	std::optional<std::string> old_text = read_text(path_);
	if (!old_text)
		throw std::system_error(errno, std::generic_category(), "cannot read " + path_);
	old_text_ = std::move(*old_text);
	const std::string text = std::to_string(value);
	if (const int error = write_text(path_, text + "\n"))
		throw std::system_error(error, std::generic_category(),
		                        "cannot write " + text + " to " + path_);
}

ScopedSysctl::~ScopedSysctl()
{
	if (const int error = write_text(path_, old_text_))
		std::fprintf(stderr, "slice-ext: %s keeps its changed value: %s\n", path_.c_str(),
		             std::strerror(error));
}

} // namespace slice_ext::tool
