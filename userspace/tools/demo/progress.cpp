// SPDX-License-Identifier: MIT
#include "demo/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace slice_ext::tool
{

namespace
{

std::string format(const char *pattern, double a, double b, double c)
{
	char text[160];
	std::snprintf(text, sizeof text, pattern, a, b, c);
	return text;
}

} // namespace

Progress::Progress(bool quiet, double phase_seconds)
	: quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), phase_seconds_(phase_seconds),
	  interval_(quiet       ? std::chrono::hours(1)
                    : terminal_ ? std::chrono::nanoseconds(std::chrono::milliseconds(250))
                                : std::chrono::seconds(1))
{
}

Progress::~Progress()
{
	finish();
}

void Progress::show(const std::string &text)
{
	if (quiet_)
		return;
	if (!terminal_) {
		std::fprintf(stderr, "%s\n", text.c_str());
		return;
	}
	std::fprintf(stderr, "\r%s%*s", text.c_str(),
	             static_cast<int>(shown_ - std::min(shown_, text.size())), "");
	std::fflush(stderr);
	shown_ = text.size();
}

void Progress::say(const std::string &text)
{
	show(text);
}

void Progress::begin_phase(unsigned number, unsigned count, bool extended)
{
	phase_ = "phase " + std::to_string(number) + " of " + std::to_string(count) +
	         (extended ? ", with extension" : ", without extension");
	show(phase_ + format(": %g s", phase_seconds_, 0, 0));
}

void Progress::update(double elapsed_seconds, std::uint64_t sections)
{
	show(phase_ +
	     format(": %.0f of %g s, %.0f sections/s", elapsed_seconds, phase_seconds_,
	            elapsed_seconds > 0 ? static_cast<double>(sections) / elapsed_seconds : 0));
}

void Progress::finish()
{
	if (!quiet_ && terminal_ && shown_ > 0) {
		std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
		std::fflush(stderr);
		shown_ = 0;
	}
}

} // namespace slice_ext::tool
