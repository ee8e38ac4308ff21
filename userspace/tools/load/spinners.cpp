// SPDX-License-Identifier: MIT
#include "load/spinners.hpp"

#include <slice_ext/slice_ext.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demo/busy_work.hpp"
#include "demo/pinned_thread.hpp"
#include "demo/start_gate.hpp"
#include "exit_status.hpp"
#include "refusal.hpp"

namespace slice_ext::tool
{

namespace
{

// Some tens of instructions: the request is missing for no longer than that.
constexpr std::uint64_t kStepsBetweenLooks = 8;
constexpr std::uint64_t kHogSteps = 10000;

struct Spinner {
	int reason = SLICE_EXT_AVAILABLE;
	std::uint64_t again = 0;
};

// Against the protocol, hence not with slice_ext_enter(): that would not notice that the kernel
// took the request away.
void abuse(Spinner &self, StartGate &gate, const std::atomic<bool> &stop)
{
	self.reason = slice_ext_enable();
	volatile unsigned char *const ctrl = slice_ext_self.ctrl;
	if (gate.wait() && ctrl != nullptr) {
		while (!stop.load(std::memory_order_relaxed)) {
			if (ctrl[0] == 0) {
				ctrl[0] = 1;
				++self.again;
			}
			BusyWork::run(kStepsBetweenLooks);
		}
		ctrl[0] = 0;
	}
	slice_ext_disable();
}

void compute(StartGate &gate, const std::atomic<bool> &stop)
{
	if (gate.wait())
		while (!stop.load(std::memory_order_relaxed))
			BusyWork::run(kHogSteps);
}

} // namespace

void wait_for_end(const LoadOptions &options, SignalWatcher &signals)
{
	using namespace std::chrono;
	if (options.seconds)
		signals.wait(duration_cast<nanoseconds>(duration<double>(*options.seconds)));
	else
		while (!signals.wait(hours(24))) {
		}
}

std::uint64_t run_spinners(const LoadOptions &options, SignalWatcher &signals)
{
	StartGate gate;
	std::atomic<bool> stop{false};
	std::vector<std::unique_ptr<Spinner>> spinners;
	std::vector<std::unique_ptr<PinnedThread>> threads;
	try {
		for (unsigned i = 0; i < options.threads; ++i)
			for (const int cpu : options.cpus) {
				spinners.push_back(std::make_unique<Spinner>());
				Spinner &self = *spinners.back();
				std::function<void()> body;
				if (options.kind == LoadKind::abuser)
					body = [&] { abuse(self, gate, stop); };
				else
					body = [&] { compute(gate, stop); };
				threads.push_back(
					std::make_unique<PinnedThread>(cpu, 0, std::move(body)));
			}
		gate.await(static_cast<unsigned>(threads.size()));
		for (const auto &spinner : spinners)
			if (spinner->reason != SLICE_EXT_AVAILABLE) {
				const auto reason = static_cast<slice_ext_reason>(spinner->reason);
				throw Refusal{
					kExitUnavailable,
					std::string("a thread could not be enabled: ") +
						slice_ext_reason_text(reason) +
						"\nnext step: " + slice_ext_reason_hint(reason)};
			}
	} catch (...) {
		gate.give_up();
		throw;
	}
	gate.open();
	wait_for_end(options, signals);
	stop.store(true, std::memory_order_relaxed);
	threads.clear();
	std::uint64_t again = 0;
	for (const auto &spinner : spinners)
		again += spinner->again;
	return again;
}

} // namespace slice_ext::tool
