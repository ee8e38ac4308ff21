// SPDX-License-Identifier: MIT
#include "text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace slice_ext::tool
{

std::optional<std::string> read_text(const std::string &path)
{
	const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return std::nullopt;
	std::string text;
	char buffer[4096];
	for (;;) {
		const ssize_t got = ::read(fd, buffer, sizeof buffer);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			const int error = errno;
			::close(fd);
			errno = error;
			return std::nullopt;
		}
		if (got == 0)
			break;
		text.append(buffer, static_cast<std::size_t>(got));
	}
	::close(fd);
	return text;
}

int write_text(const std::string &path, std::string_view text)
{
	const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	ssize_t written;
	do {
		written = ::write(fd, text.data(), text.size());
	} while (written < 0 && errno == EINTR);
	const int error = written < 0                                    ? errno
	                  : written == static_cast<ssize_t>(text.size()) ? 0
	                                                                 : EIO;
	::close(fd);
	return error;
}

std::string_view trimmed(std::string_view text)
{
	constexpr std::string_view blank = " \t\r\n\v\f";
	const std::size_t first = text.find_first_not_of(blank);
	if (first == std::string_view::npos)
		return {};
	return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text)
{
	text = trimmed(text);
	std::int64_t value = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
	if (error != std::errc{} || end != text.data() + text.size())
		return std::nullopt;
	return value;
}

} // namespace slice_ext::tool
