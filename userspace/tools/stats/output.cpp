// SPDX-License-Identifier: MIT
#include "stats/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace slice_ext::tool
{

bool write_output(std::string_view text)
{
	while (!text.empty()) {
		const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
		if (written < 0 && errno == EPIPE)
			return false;
		if (written < 0 && errno != EINTR)
			throw std::system_error(errno, std::generic_category(),
			                        "the output could not be written");
		if (written > 0)
			text.remove_prefix(static_cast<std::size_t>(written));
	}
	return true;
}

} // namespace slice_ext::tool
