// SPDX-License-Identifier: MIT
#include "signal_watcher.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace slice_ext::tool
{

SignalWatcher::SignalWatcher()
{
	sigemptyset(&watched_);
	for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
		// A signal ignored from the start (nohup, background job of a plain shell) stays
		// ignored.
		struct sigaction inherited;
		sigaction(number, nullptr, &inherited);
		if (inherited.sa_handler != SIG_IGN)
			sigaddset(&watched_, number);
	}
	pthread_sigmask(SIG_BLOCK, &watched_, &old_mask_);
	struct sigaction ignore = {};
	ignore.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &ignore, &old_pipe_);
}

SignalWatcher::~SignalWatcher()
{
	sigaction(SIGPIPE, &old_pipe_, nullptr);
	pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

bool SignalWatcher::wait(std::chrono::nanoseconds duration)
{
	using namespace std::chrono;
	if (caught_ != 0)
		return true;
	const auto end = steady_clock::now() + duration;
	for (;;) {
		const auto left = std::max(nanoseconds(0), nanoseconds(end - steady_clock::now()));
		const auto whole = duration_cast<seconds>(left);
		const timespec timeout = {static_cast<time_t>(whole.count()),
		                          static_cast<long>((left - whole).count())};
		const int number = sigtimedwait(&watched_, nullptr, &timeout);
		if (number > 0) {
			caught_ = number;
			return true;
		}
		if (errno == EAGAIN)
			return false;
	}
}

} // namespace slice_ext::tool
