// SPDX-License-Identifier: MIT
//
// Measures the ways through the kernel that everybody pays for, in instructions, and prints
// how often each length was seen: lines of "WAY THREADS INSTRUCTIONS TIMES". For the
// deterministic virtual machine, where one tick of the time stamp counter is one instruction.
//
// WAY      syscall    a system call that does next to nothing (getppid)
//          interrupt  from user mode and back, nothing to do afterwards
//          resched    the same with a reschedule pending: the interrupt wakes up a real-time
//                     thread, which runs until it sleeps again
//          yield      a switch to another thread by sched_yield(2)
//          block      from a real-time thread to another and back by pipes: two of each of
//                     write(2), read(2) that sleeps, wake-up and switch
// THREADS  bare       none has an rseq area
//          area       all have one, as the C library gives it to them
//          user       all have opted in to the extension and ask for nothing
//          asking     as user, but the thread that is interrupted asks for an extension
#include "requester.hpp"
#include "system.hpp"
#include "timing.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <system_error>
#include <thread>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace slice_test
{

namespace
{

/** Instructions to how often that many were seen. */
class Lengths
{
      public:
	void add(std::uint64_t instructions)
	{
		++times_[instructions];
		++size_;
	}
	std::size_t size() const
	{
		return size_;
	}
	/** What was seen once is where something else came in between. */
	void print(const char *way, const char *threads) const
	{
		for (const auto &[instructions, times] : times_)
			if (times > 1)
				std::printf("%s %s %ju %zu\n", way, threads,
				            std::uintmax_t{instructions}, times);
	}

      private:
	std::map<std::uint64_t, std::size_t> times_;
	std::size_t size_ = 0;
};

void check(int error, const char *what)
{
	if (error)
		throw std::system_error(error, std::generic_category(), what);
}

/** Without the C library's instructions. */
inline long kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0)
{
	long result = 0;
	register long fourth asm("r10") = d;
	asm volatile("syscall"
	             : "=a"(result)
	             : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
	             : "rcx", "r11", "memory");
	return result;
}

enum class Kind { bare, area, user, asking };

/** Makes the calling thread one of its kind, until the end of the scope. */
class Member
{
      public:
	explicit Member(Kind kind)
	{
		if (kind >= Kind::area)
			check(area_.enroll(), "rseq");
		if (kind >= Kind::user)
			check(set_enabled(true), "prctl");
	}
	RseqView area()
	{
		return area_;
	}

      private:
	RseqArea area_;
};

/** What the readings themselves cost is taken off by differences only: every length
 * that is compared was measured by the same code. */
Lengths system_calls()
{
	Lengths lengths;
	for (int i = 0; i < 200; ++i) {
		const std::uint64_t start = ticks();
		kernel(SYS_getppid);
		lengths.add(ticks() - start);
	}
	return lengths;
}

/** Far above a turn of the loops below and far below an interrupt. */
constexpr std::uint64_t gap = 100;

/** A timer of perf that is not to look at user mode, so that each of its interrupts there
 * does nothing. Unlike those of timerfd and the like it expires in the interrupt on
 * PREEMPT_RT too. */
Lengths interrupts()
{
	perf_event_attr attr{};
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 25 * us;
	attr.exclude_user = 1;
	const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
	check(fd < 0 ? errno : 0, "perf_event_open");
	Lengths lengths;
	for (std::uint64_t last = ticks(); lengths.size() < 300;) {
		std::uint64_t now = ticks();
		if (now - last > gap) {
			lengths.add(now - last);
			now = ticks();
		}
		last = now;
	}
	close(fd);
	return lengths;
}

Lengths reschedules(Kind kind)
{
	constexpr std::int64_t period = 309 * us;
	std::atomic<std::uint64_t> wakeups{0};
	std::atomic<bool> stop{false};
	Lengths lengths;
	Member me(kind);
	std::thread sleeper([&] {
		pin(test_cpu());
		Member it(kind);
		check(apply(fifo(50)), "SCHED_FIFO");
		for (std::int64_t next = now_ns() + period; !stop; next += period) {
			const timespec at{next / second, next % second};
			kernel(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME,
			       reinterpret_cast<long>(&at));
			wakeups.fetch_add(1, std::memory_order_relaxed);
		}
	});
	std::uint64_t seen = 0;
	for (std::uint64_t last = ticks(); lengths.size() < 300;) {
		std::uint64_t now = ticks();
		if (now - last > gap) {
			// Other interrupts make gaps too.
			const std::uint64_t count = wakeups.load(std::memory_order_relaxed);
			if (count != seen)
				lengths.add(now - last);
			seen = count;
			if (kind == Kind::asking)
				me.area().set_request(1);
			now = ticks();
		}
		last = now;
	}
	me.area().set_request(0);
	stop = true;
	sleeper.join();
	return lengths;
}

/** Many pairs of threads with few turns each: how EEVDF sees the two of a pair sticks to
 * them for a while. */
constexpr int pairs = 40;
constexpr std::size_t turns = 10;

struct Turns {
	std::atomic<std::uint64_t> left{0};
	std::atomic<int> last{0};
	std::size_t wanted;
	Lengths &lengths;
};

/** One piece of code for both threads of a pair. */
[[gnu::noinline]] void take_turns(Turns &turns_of_both, int me)
{
	while (turns_of_both.lengths.size() < turns_of_both.wanted) {
		const std::uint64_t now = ticks();
		const int last = turns_of_both.last.load(std::memory_order_relaxed);
		if (last && last != me)
			turns_of_both.lengths.add(
				now - turns_of_both.left.load(std::memory_order_relaxed));
		turns_of_both.last.store(me, std::memory_order_relaxed);
		turns_of_both.left.store(ticks(), std::memory_order_relaxed);
		kernel(SYS_sched_yield);
	}
}

void yields_of_a_pair(Kind kind, Lengths &lengths)
{
	Turns both{{0}, {0}, lengths.size() + turns, lengths};
	Member me(kind);
	std::thread other([&] {
		pin(test_cpu());
		Member it(kind);
		take_turns(both, 1);
	});
	take_turns(both, 2);
	other.join();
}

void blocks_of_a_pair(Kind kind, Lengths &lengths)
{
	int there[2];
	int back[2];
	check(pipe(there) || pipe(back) ? errno : 0, "pipe");
	Member me(kind);
	check(apply(fifo(50)), "SCHED_FIFO");
	std::thread other([&] {
		pin(test_cpu());
		Member it(kind);
		char byte = 0;
		while (kernel(SYS_read, there[0], reinterpret_cast<long>(&byte), 1) == 1)
			kernel(SYS_write, back[1], reinterpret_cast<long>(&byte), 1);
	});
	char byte = 0;
	for (std::size_t i = 0; i < turns; ++i) {
		const std::uint64_t start = ticks();
		kernel(SYS_write, there[1], reinterpret_cast<long>(&byte), 1);
		kernel(SYS_read, back[0], reinterpret_cast<long>(&byte), 1);
		lengths.add(ticks() - start);
	}
	close(there[1]);
	other.join();
	for (const int fd : {there[0], back[0], back[1]})
		close(fd);
}

void measure(Kind kind, const char *threads)
{
	if (kind != Kind::asking) {
		Lengths yields;
		Lengths blocks;
		in_thread([&] {
			Member me(kind);
			system_calls().print("syscall", threads);
			interrupts().print("interrupt", threads);
		});
		for (int i = 0; i < pairs; ++i) {
			in_thread([&] { yields_of_a_pair(kind, yields); });
			in_thread([&] { blocks_of_a_pair(kind, blocks); });
		}
		yields.print("yield", threads);
		blocks.print("block", threads);
	}
	in_thread([&] { reschedules(kind).print("resched", threads); });
}

bool opted_in_works()
{
	bool works = false;
	in_thread([&] {
		RseqArea area;
		works = opt_in(area) == 0;
	});
	return works;
}

/** The counter must tell a single instruction. */
void check_counter()
{
	const std::uint64_t start = ticks();
	const std::uint64_t middle = ticks();
	asm volatile("nop");
	const std::uint64_t end = ticks();
	if (end - middle != middle - start + 1)
		throw std::runtime_error("the time stamp counter does not count instructions: "
		                         "run this by scripts/vm --deterministic");
}

int run()
{
	check_counter();
	if (libc_area().base())
		throw std::runtime_error("the threads have rseq areas of the C library: "
		                         "run this with GLIBC_TUNABLES=glibc.pthread.rseq=0");
	measure(Kind::bare, "bare");
	measure(Kind::area, "area");
	if (opted_in_works()) {
		measure(Kind::user, "user");
		// On PREEMPT_RT it starts with 0, and everything is refused at once.
		const FileGuard delay(path_sysctl, "30");
		check(delay.error(), path_sysctl);
		measure(Kind::asking, "asking");
	}
	return 0;
}

} // namespace

} // namespace slice_test

int main()
{
	try {
		return slice_test::run();
	} catch (const std::exception &error) {
		std::fprintf(stderr, "kernel-unused-cost: %s\n", error.what());
		return 1;
	}
}
