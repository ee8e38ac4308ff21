// SPDX-License-Identifier: MIT
#include "stats/record.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <vector>

#include "exit_status.hpp"
#include "signal_watcher.hpp"
#include "stats/extensions.hpp"
#include "stats/histogram_report.hpp"
#include "stats/output.hpp"
#include "stats/sample.hpp"
#include "stats/trace_instance.hpp"

namespace slice_ext::tool
{

namespace
{

using namespace std::chrono;

// Often enough for the buffers (a megabyte per CPU, 48 bytes per event), and seldom enough to be no
// load.
constexpr auto kReadEvery = milliseconds(50);

// The list is only complete once nothing is new in it: threads that are there already, but were not
// when it was made, are followed from its being set on.
void follow(TraceInstance &trace, const ThreadSampler &threads, bool forked)
{
	std::set<pid_t> followed;
	for (;;) {
		std::vector<pid_t> added;
		for (const pid_t thread : threads.threads())
			if (followed.insert(thread).second)
				added.push_back(thread);
		if (added.empty())
			return;
		trace.only(added, forked);
	}
}

void drain(TraceInstance &trace, TraceReader &reader)
{
	for (std::string text = trace.read(); !text.empty(); text = trace.read())
		reader.read(text);
}

} // namespace

int run_histogram(const StatsOptions &options)
{
	SignalWatcher signals;
	// Says why, where nothing is counted at all.
	sample_machine();
	HistogramReport report;
	std::unique_ptr<ThreadSampler> threads;
	if (options.pid || options.tid) {
		report.scope.kind = options.pid ? Scope::process : Scope::thread;
		report.scope.id = options.pid ? *options.pid : *options.tid;
		threads = std::make_unique<ThreadSampler>(report.scope.id, options.pid.has_value());
		report.scope.name = threads->name();
	}
	TraceInstance trace(find_tracefs());
	TraceReader reader(report.extensions);
	if (threads)
		follow(trace, *threads, options.pid.has_value());

	const auto begin = steady_clock::now();
	const auto end = options.duration ? begin + duration_cast<nanoseconds>(
							    duration<double>(*options.duration))
	                                  : steady_clock::time_point::max();
	report.begin_ns = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
	trace.start();
	for (auto now = begin; now < end && !report.ended; now = steady_clock::now()) {
		if (signals.wait(std::min<nanoseconds>(kReadEvery, end - now)))
			break;
		drain(trace, reader);
		report.ended = threads && threads->sample().ended;
	}
	trace.stop();
	report.seconds = duration<double>(steady_clock::now() - begin).count();
	drain(trace, reader);
	reader.finish();
	report.extensions.lost = std::max(report.extensions.lost, trace.overruns());
	report.facts = read_kernel_facts();
	write_output(options.json
	                     ? to_json(report).dump(
				       -1, ' ', false, nlohmann::json::error_handler_t::replace) +
	                               "\n"
	                     : to_text(report));
	return kExitOk;
}

} // namespace slice_ext::tool
