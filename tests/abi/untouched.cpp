// SPDX-License-Identifier: MIT
// Memory past the base kernel's fields belongs to whoever registered the area,
// allocators among them, until the thread opts in.
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <ctime>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

volatile sig_atomic_t signals_taken;

void on_signal(int)
{
	signals_taken = signals_taken + 1;
}

/** A signal to the calling thread every period, for as long as it lives. */
class SignalTimer
{
      public:
	explicit SignalTimer(std::int64_t period)
	{
		struct sigaction action = {};
		action.sa_handler = on_signal;
		sigaction(SIGUSR1, &action, nullptr);
		sigevent event{};
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_signo = SIGUSR1;
		event._sigev_un._tid = thread_id();
		timer_create(CLOCK_MONOTONIC, &event, &timer_);
		const itimerspec every{{0, period}, {0, period}};
		timer_settime(timer_, 0, &every, nullptr);
	}
	~SignalTimer()
	{
		timer_delete(timer_);
	}
	SignalTimer(const SignalTimer &) = delete;
	SignalTimer &operator=(const SignalTimer &) = delete;

      private:
	timer_t timer_{};
};

/** Preemptions, signals, page faults and system calls, with a look at the bytes
 * after each turn. */
void live_with_pattern(RseqArea &area, const std::array<std::uint8_t, 4> &ctrl_bytes)
{
	constexpr std::uint8_t rest = 0x5a;
	constexpr std::size_t pages = 64;
	constexpr std::size_t page = 4096;
	for (unsigned i = 0; i < 4; ++i)
		area.set_u8(off_slice_ctrl + i, ctrl_bytes[i]);
	for (unsigned offset = legacy_size; offset < RseqArea::capacity; ++offset)
		area.set_u8(offset, rest);
	const std::uint32_t word = area.ctrl();

	auto *memory = static_cast<unsigned char *>(mmap(
		nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	ASSERT_NE(memory, MAP_FAILED);
	struct Events {
		long preemptions;
		long faults;
		long signals;
	};
	const auto events = [] {
		rusage usage{};
		getrusage(RUSAGE_THREAD, &usage);
		return Events{usage.ru_nivcsw, usage.ru_minflt, signals_taken};
	};
	const Events before = events();
	const auto enough = [&] {
		const Events now = events();
		return now.preemptions - before.preemptions > 50 &&
		       now.faults - before.faults > 1000 && now.signals - before.signals > 50;
	};
	{
		const SignalTimer timer(2 * ms);
		const std::uint64_t start = ticks();
		const std::uint64_t least = start + to_ticks(200 * ms);
		const std::uint64_t most = start + to_ticks(20 * second);
		while (ticks() < least || (!enough() && ticks() < most)) {
			for (std::size_t i = 0; i < pages; ++i)
				memory[i * page] = 1;
			ASSERT_EQ(area.ctrl(), word);
			madvise(memory, pages * page, MADV_DONTNEED);
			const std::uint64_t busy_end = ticks() + to_ticks(3 * ms);
			while (ticks() < busy_end)
				ASSERT_EQ(area.ctrl(), word);
			syscall(SYS_getppid);
			ASSERT_EQ(area.ctrl(), word);
		}
	}
	EXPECT_TRUE(enough()) << "too few preemptions, page faults and signals to tell";
	munmap(memory, pages * page);
	for (unsigned offset = legacy_size; offset < RseqArea::capacity; ++offset)
		EXPECT_EQ(area.u8(offset), rest) << "byte " << offset;
}

// The first looks like a request to a kernel that does not check who asks.
constexpr std::array<std::array<std::uint8_t, 4>, 2> patterns{
	{{0x01, 0x00, 0x00, 0x00}, {0xa5, 0x5a, 0xc3, 0x3c}}};

class Untouched : public testing::TestWithParam<std::uint32_t>
{
};

TEST_P(Untouched, NeverOptedIn)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	for (const auto &pattern : patterns)
		in_thread([&] {
			RseqArea area;
			ASSERT_EQ(area.enroll(GetParam()), 0);
			live_with_pattern(area, pattern);
		});
}

TEST_P(Untouched, AfterOptingOut)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(area.enroll(GetParam()), 0);
		ASSERT_EQ(set_enabled(true), 0);
		ASSERT_TRUE(until_granted(area, ticks() + to_ticks(10 * second)).granted)
			<< "it never was under the kernel's hand";
		leave(area);
		ASSERT_EQ(set_enabled(false), 0);
		live_with_pattern(area, patterns[1]);
	});
}

INSTANTIATE_TEST_SUITE_P(Lengths, Untouched, testing::Values(32U, 64U),
                         [](const auto &info) { return std::to_string(info.param) + "Bytes"; });

} // namespace
} // namespace slice_test
