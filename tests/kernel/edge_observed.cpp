// SPDX-License-Identifier: MIT
// Grants while others look on: sampling, signals of a sampler, events, a probe.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 20;
const std::string tracing = "/sys/kernel/tracing/";

/** A clock event on the calling thread. */
class Sampler
{
      public:
	/** @param signals a signal for each sample instead of a record */
	Sampler(std::int64_t period, bool signals)
	{
		perf_event_attr attr{};
		attr.size = sizeof attr;
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = static_cast<std::uint64_t>(period);
		attr.sample_type = PERF_SAMPLE_IP;
		attr.exclude_kernel = signals;
		attr.sigtrap = signals;
		attr.remove_on_exec = signals;
		fd_ = static_cast<int>(
			syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
		if (fd_ < 0 || signals)
			return;
		ring_ = mmap(nullptr, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
	}
	~Sampler()
	{
		if (ring_ != MAP_FAILED)
			munmap(ring_, page + size);
		if (fd_ >= 0)
			close(fd_);
	}
	Sampler(const Sampler &) = delete;
	Sampler &operator=(const Sampler &) = delete;

	bool ready() const
	{
		return fd_ >= 0;
	}
	/** Records so far, by their type. The ring is large enough for a test. */
	std::map<unsigned, int> records() const
	{
		const auto *header = static_cast<const perf_event_mmap_page *>(ring_);
		const char *data = static_cast<const char *>(ring_) + page;
		const std::uint64_t head = __atomic_load_n(&header->data_head, __ATOMIC_ACQUIRE);
		std::map<unsigned, int> count;
		for (std::uint64_t at = 0; at < head;) {
			perf_event_header record{};
			std::memcpy(&record, data + at % size, sizeof record);
			++count[record.type];
			at += record.size;
		}
		return count;
	}

      private:
	static constexpr std::size_t page = 4096;
	static constexpr std::size_t size = 64 * page;

	int fd_ = -1;
	void *ring_ = MAP_FAILED;
};

class EdgeObserved : public Edge
{
};

TEST_F(EdgeObserved, SamplingTakesNothingFromAGrant)
{
	constexpr std::int64_t period = 20 * us;
	std::vector<std::int64_t> used;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Sampler sampler(period, false);
		if (!sampler.ready())
			GTEST_SKIP() << "no perf events: " << std::strerror(errno);
		const std::uint64_t start = ticks();
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			const Wait wait = until_granted(area, patience());
			ASSERT_TRUE(wait.granted);
			used.push_back(until_ended(area, wait.seen, to_ticks(second)).used);
		}
		const Counters counters = Counters::of_this_thread() - before;
		auto records = sampler.records();
		const std::int64_t took = to_ns(ticks() - start);
		report("sampled", records[PERF_RECORD_SAMPLE], counters);
		expect_about(counters, "granted", rounds);
		expect_about(counters, "ended_expired", rounds);
		EXPECT_EQ(records[PERF_RECORD_LOST], 0);
		EXPECT_GT(records[PERF_RECORD_SAMPLE], deterministic() ? took / period / 4 : 0);
	});
	if (used.empty())
		return;
	std::printf("used: median %.1f us\n", static_cast<double>(median(used)) / us);
	if (deterministic()) {
		EXPECT_GT(median(used), 90 * us);
		EXPECT_LT(median(used), 103 * us);
	}
}

volatile sig_atomic_t sampled_idle, sampled_requested, sampled_granted, sampled_other;
RseqView *area_of_handler;

void sort_word(int)
{
	switch (area_of_handler->ctrl()) {
	case ctrl_idle:
		sampled_idle = sampled_idle + 1;
		break;
	case ctrl_requested:
		sampled_requested = sampled_requested + 1;
		break;
	case ctrl_granted:
		sampled_granted = sampled_granted + 1;
		break;
	default:
		sampled_other = sampled_other + 1;
	}
}

// A signal out of an interrupt that asks for no reschedule, on PREEMPT_RT too: the grant
// goes on into the handler, and the return from it is what ends it.
TEST_F(EdgeObserved, ASamplersSignalInsideAGrantRunsInside)
{
	struct sigaction action = {};
	action.sa_handler = sort_word;
	struct sigaction old = {};
	ASSERT_EQ(sigaction(SIGTRAP, &action, &old), 0);
	sampled_idle = sampled_requested = sampled_granted = sampled_other = 0;
	in_thread([&] {
		RseqArea area;
		area_of_handler = &area;
		ASSERT_EQ(opt_in(area), 0);
		// An emulator that does not keep up with it would do nothing else.
		auto sampler =
			std::make_unique<Sampler>(deterministic() ? 73 * us : 733 * us, true);
		if (!sampler->ready())
			GTEST_SKIP() << "no perf events with signals: " << std::strerror(errno);
		const Counters before = Counters::of_this_thread();
		const std::uint64_t end = ticks() + to_ticks(60 * ms);
		while (ticks() < end)
			if (area.ctrl() == ctrl_idle)
				area.set_request(1);
		area.set_request(0);
		sampler.reset();
		const Counters counters = Counters::of_this_thread() - before;
		report("signals inside a grant", sampled_granted, counters);
		std::printf("0/0 %d, 1/0 %d\n", int(sampled_idle), int(sampled_requested));
		EXPECT_GE(counters["granted"], at_least(rounds));
		EXPECT_GE(sampled_granted, at_least(rounds));
		EXPECT_GT(sampled_idle + sampled_requested + sampled_granted, 0);
		EXPECT_EQ(sampled_other, 0);
		EXPECT_GE(counters["ended_syscall"], at_least(sampled_granted));
		ASSERT_TRUE(get_grant(area)) << "after the last signal";
		leave(area);
	});
	sigaction(SIGTRAP, &old, nullptr);
}

/** Switches the events that a file of tracefs stands for on, until the end. */
class Events
{
      public:
	explicit Events(const std::vector<std::string> &groups)
	{
		std::ofstream(tracing + "trace") << "";
		for (const std::string &group : groups) {
			const std::string path = tracing + "events/" + group + "/enable";
			if (access(path.c_str(), W_OK) == 0)
				switches_.push_back(std::make_unique<FileGuard>(path, "1"));
		}
	}
	std::size_t count() const
	{
		return switches_.size();
	}
	void off()
	{
		switches_.clear();
	}

	/** Lines of the trace with @p text. */
	static int lines_with(const std::string &text)
	{
		std::ifstream file(tracing + "trace");
		int count = 0;
		for (std::string line; std::getline(file, line);)
			count += line.find(text) != std::string::npos;
		return count;
	}
	/** Events that did not fit, on the test CPU. */
	static int lost()
	{
		std::ifstream file(tracing + "per_cpu/cpu" + std::to_string(test_cpu()) + "/stats");
		int sum = 0;
		for (std::string line; std::getline(file, line);)
			if (line.rfind("overrun:", 0) == 0 || line.rfind("dropped events:", 0) == 0)
				sum += std::stoi(line.substr(line.find(':') + 1));
		return sum;
	}

      private:
	std::vector<std::unique_ptr<FileGuard>> switches_;
};

TEST_F(EdgeObserved, EventsOfEverySortTakeNoneAndLoseNone)
{
	Events events({"sched", "irq", "irq_vectors", "timer", "signal", "rseq", "raw_syscalls"});
	if (events.count() < 4)
		GTEST_SKIP() << "no events in " << tracing;
	Counters counters;
	int yielded = 0;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			yielded += leave(area) == 1;
		}
		counters = Counters::of_this_thread();
	});
	events.off();
	report("traced", yielded, counters);
	expect_about(counters, "granted", rounds);
	EXPECT_GE(yielded, at_least(rounds));
	EXPECT_EQ(Events::lost(), 0);
	EXPECT_EQ(Events::lines_with("sched_preempt_delay_grant:"), counters["granted"]);
	EXPECT_EQ(Events::lines_with("sched_preempt_delay_end:"), counters.ended());
	// The system call is seen by its own tracepoints although it ended the grant before.
	EXPECT_GE(Events::lines_with("sys_enter: NR 471 "), yielded);
	EXPECT_EQ(Events::lines_with("sys_exit: NR 471 = 1"), yielded);
}

extern "C" __attribute__((noinline)) void edge_probed()
{
	asm volatile("nop; nop");
}

/** PATH:0xOFFSET of a function of this program, as uprobe_events wants it. */
std::string place_of(void (*function)())
{
	const auto address = reinterpret_cast<unsigned long>(function);
	std::ifstream maps("/proc/self/maps");
	for (std::string line; std::getline(maps, line);) {
		std::istringstream fields(line);
		unsigned long start = 0, end = 0, offset = 0;
		char dash = 0;
		std::string rights, device, inode, path;
		fields >> std::hex >> start >> dash >> end >> rights >> offset >> device >> inode >>
			path;
		if (start <= address && address < end) {
			std::ostringstream place;
			place << path << ":0x" << std::hex << offset + address - start;
			return place.str();
		}
	}
	return {};
}

// The probe is work of its own before user mode. Without a reschedule it is no reason to
// end a grant; with one it would be.
TEST_F(EdgeObserved, AProbeInsideAGrantIsHitAndTheGrantGoesOn)
{
	const std::string list = tracing + "uprobe_events";
	if (write_file(list, "p:edge/probed " + place_of(edge_probed)) != 0)
		GTEST_SKIP() << "no probes of user functions: " << std::strerror(errno);
	{
		Events events({"edge/probed"});
		EXPECT_EQ(events.count(), 1U);
		in_thread([&] {
			RseqArea area;
			ASSERT_EQ(opt_in(area), 0);
			int live = 0;
			for (int i = 0; i < rounds; ++i) {
				ASSERT_TRUE(get_grant(area));
				edge_probed();
				live += leave(area) == 1;
			}
			// Requests that may come at any moment of a probe.
			int calls = rounds;
			const std::uint64_t end = ticks() + to_ticks(20 * ms);
			for (; ticks() < end; ++calls) {
				area.set_request(1);
				edge_probed();
				spin(5 * us);
			}
			area.set_request(0);
			const Counters counters = Counters::of_this_thread();
			report("live after the probe", live, counters);
			EXPECT_GE(live, at_least(rounds));
			EXPECT_GT(counters["granted"], at_least(rounds));
			EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
			std::ifstream profile(tracing + "uprobe_profile");
			std::string path, name;
			int hits = 0;
			profile >> path >> name >> hits;
			EXPECT_EQ(hits, calls);
		});
	}
	EXPECT_EQ(write_file(list, "-:edge/probed"), 0);
}

} // namespace
} // namespace slice_test
