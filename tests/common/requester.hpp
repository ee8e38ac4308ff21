// SPDX-License-Identifier: MIT
/**
 * @file requester.hpp
 * The user's side of the protocol, in raw stores and system calls.
 */
#ifndef SLICE_EXT_TESTS_COMMON_REQUESTER_HPP
#define SLICE_EXT_TESTS_COMMON_REQUESTER_HPP

#include "rseq_area.hpp"
#include "system.hpp"
#include "timing.hpp"

#include <cstdint>
#include <exception>
#include <thread>
#include <utility>

namespace slice_test
{

/** Runs a function in a new thread without any rseq area, pinned to a CPU, and
 * waits for it. gtest assertions work inside; ASSERT_ leaves the function. */
template <typename Function> void in_thread(Function &&function, int cpu = test_cpu())
{
	ticks_per_ns();
	std::exception_ptr thrown;
	std::thread thread([&] {
		pin(cpu);
		try {
			function();
		} catch (...) {
			thrown = std::current_exception();
		}
	});
	thread.join();
	if (thrown)
		std::rethrow_exception(thrown);
}

/** What until_granted() saw. */
struct Wait {
	bool granted = false;
	/** Times the word was found 0/0: the thread had been switched out. */
	unsigned switched_out = 0;
	/** ticks() just after `granted` was first seen. */
	std::uint64_t seen = 0;
};

/**
 * Spins with the request set until the kernel grants an extension, asking again
 * after every switch. Makes no system call. On failure the request is withdrawn.
 * @param until value of ticks() to give up at
 */
inline Wait until_granted(RseqView area, std::uint64_t until)
{
	Wait wait;
	area.set_request(1);
	for (;;) {
		const std::uint32_t word = area.ctrl();
		if (word & 0xff00) {
			wait.seen = ticks();
			wait.granted = true;
			return wait;
		}
		if (!(word & 0xff)) {
			++wait.switched_out;
			area.set_request(1);
		}
		if (ticks() > until) {
			area.set_request(0);
			if (area.granted()) {
				wait.seen = ticks();
				wait.granted = true;
			}
			return wait;
		}
	}
}

/** How a grant that was left alone went. */
struct Stay {
	/** From the first look at `granted` to the last moment it was still set, ns. */
	std::int64_t used = 0;
	/** From that moment to running again, ns. */
	std::int64_t away = 0;
	bool ended = false;
};

/** Spins inside a grant, without a system call, until the kernel has ended it. */
inline Stay until_ended(RseqView area, std::uint64_t seen, std::uint64_t limit)
{
	Stay stay;
	std::uint64_t last = seen;
	const std::uint64_t until = seen + limit;
	for (;;) {
		const std::uint64_t now = ticks();
		if (!area.granted()) {
			stay.used = to_ns(last - seen);
			stay.away = to_ns(now - last);
			stay.ended = true;
			return stay;
		}
		if (now > until)
			return stay;
		last = now;
	}
}

/** The protocol's end of a section. @return 1 yielded, 0 not, -1 nothing to do. */
inline long leave(RseqView area)
{
	area.set_request(0);
	return area.granted() ? sys_yield() : -1;
}

/** Registers a 64-byte area and opts the thread in. @return 0 or the errno value. */
inline int opt_in(RseqArea &area)
{
	if (const int error = area.enroll())
		return error;
	return set_enabled(true);
}

} // namespace slice_test

#endif
