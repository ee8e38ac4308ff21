// SPDX-License-Identifier: MIT
#include "stats/live.hpp"

#include <slice_ext/slice_ext.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "exit_status.hpp"
#include "signal_watcher.hpp"
#include "stats/live_report.hpp"
#include "stats/output.hpp"
#include "stats/sample.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr const char *kCursorHomeAndClear = "\033[H\033[J";

bool terminal_can_clear()
{
	const char *terminal = std::getenv("TERM");
	return isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
	       std::strcmp(terminal, "dumb") != 0;
}

// Those of the reasons of the library that concern all processes.
std::string why_nothing_is_counted()
{
	slice_ext_info info;
	slice_ext_query(&info);
	if (info.reason == SLICE_EXT_OFF_AT_BOOT)
		return slice_ext_reason_text(SLICE_EXT_OFF_AT_BOOT);
	return info.delay_us == 0 ? slice_ext_reason_text(SLICE_EXT_SYSCTL_ZERO) : "";
}

bool show(const View &view, bool json, bool in_place, bool first)
{
	if (json)
		return write_output(
			to_json(view).dump(-1, ' ', false,
		                           nlohmann::json::error_handler_t::replace) +
			"\n");
	return write_output((in_place ? kCursorHomeAndClear : first ? "" : "\n") + to_text(view));
}

} // namespace

int run_live(const StatsOptions &options)
{
	using namespace std::chrono;
	SignalWatcher signals;
	View view;
	view.per_cpu = options.per_cpu;
	std::unique_ptr<ThreadSampler> threads;
	if (options.pid || options.tid) {
		view.scope.kind = options.pid ? Scope::process : Scope::thread;
		view.scope.id = options.pid ? *options.pid : *options.tid;
		threads = std::make_unique<ThreadSampler>(view.scope.id, options.pid.has_value());
		view.scope.name = threads->name();
	}
	const bool in_place = !options.json && terminal_can_clear();
	const auto interval = duration_cast<nanoseconds>(duration<double>(options.interval));
	auto next = steady_clock::now();
	for (unsigned shown = 0;;) {
		Sample now = threads ? threads->sample() : sample_machine();
		if (now.columns.empty() && shown > 0) {
			// Gone altogether: what was seen last is its last.
			view.sample.ended = true;
			view.change.reset();
		} else {
			if (shown > 0)
				view.change = change_between(view.sample, now);
			view.sample = std::move(now);
		}
		view.note = why_nothing_is_counted();
		if (!show(view, options.json, in_place, shown == 0))
			return kExitOk;
		++shown;
		if (view.sample.ended || signals.caught() != 0 || shown == options.count)
			return kExitOk;
		next = std::max(next + interval, steady_clock::now());
		signals.wait(next - steady_clock::now());
	}
}

} // namespace slice_ext::tool
