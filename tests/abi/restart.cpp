// SPDX-License-Identifier: MIT
// Restartable sequences of a thread whose flags word is not zero.
#include "child.hpp"
#include "counters.hpp"
#include "needs.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#if defined(__x86_64__)

// Two sequences on the area in %rdi. Both return 0 when they commit and 1 when
// the kernel sent them to their abort handler.
//   slice_test_sequence         commits after %rsi turns
//   slice_test_sequence_granted commits as soon as `granted` (byte 29) is set,
//                               or after %rsi turns with the result 2
// The words before the abort handlers are the signature the kernel looks for,
// behind the opcode of an undefined instruction, as the ABI asks.
asm(R"(
	.pushsection .data.rel.ro, "aw"
	.balign 32
.Lslice_test_cs:
	.long 0, 0
	.quad .Lslice_test_start
	.quad .Lslice_test_commit - .Lslice_test_start
	.quad .Lslice_test_abort
	.balign 32
.Lslice_test_cs_granted:
	.long 0, 0
	.quad .Lslice_test_start_granted
	.quad .Lslice_test_commit_granted - .Lslice_test_start_granted
	.quad .Lslice_test_abort_granted
	.popsection

	.pushsection .text
	.globl slice_test_sequence
	.type slice_test_sequence, @function
slice_test_sequence:
	leaq .Lslice_test_cs(%rip), %rax
	movq %rax, 8(%rdi)
.Lslice_test_start:
	decq %rsi
	jnz .Lslice_test_start
.Lslice_test_commit:
	movq $0, 8(%rdi)
	xorl %eax, %eax
	ret
	.byte 0x0f, 0xb9, 0x3d
	.long 0x53053053
.Lslice_test_abort:
	movl $1, %eax
	ret
	.size slice_test_sequence, . - slice_test_sequence

	.globl slice_test_sequence_granted
	.type slice_test_sequence_granted, @function
slice_test_sequence_granted:
	leaq .Lslice_test_cs_granted(%rip), %rax
	movq %rax, 8(%rdi)
.Lslice_test_start_granted:
	xorl %eax, %eax
	cmpb $0, 29(%rdi)
	jne .Lslice_test_commit_granted
	movl $2, %eax
	decq %rsi
	jnz .Lslice_test_start_granted
.Lslice_test_commit_granted:
	movq $0, 8(%rdi)
	ret
	.byte 0x0f, 0xb9, 0x3d
	.long 0x53053053
.Lslice_test_abort_granted:
	movl $1, %eax
	ret
	.size slice_test_sequence_granted, . - slice_test_sequence_granted
	.popsection
)");

extern "C" int slice_test_sequence(void *area, std::uint64_t turns);
extern "C" int slice_test_sequence_granted(void *area, std::uint64_t turns);

namespace slice_test
{
namespace
{

/** Turns of the sequence that take about this long. */
std::uint64_t turns_for(std::int64_t ns, RseqView area)
{
	constexpr std::uint64_t probe = 20'000;
	std::uint64_t best = ~0ULL;
	for (int i = 0; i < 5; ++i) {
		const std::uint64_t start = ticks();
		if (slice_test_sequence(area.base(), probe) == 0)
			best = std::min(best, ticks() - start);
	}
	const double per_turn = static_cast<double>(best) / probe;
	return static_cast<std::uint64_t>(static_cast<double>(to_ticks(ns)) / per_turn) + 1;
}

struct Runs {
	int committed = 0;
	int aborted = 0;
};

/** Runs sequences until both ends have been seen, within a time. */
Runs run_sequences(RseqView area)
{
	constexpr std::int64_t least = 200 * ms;
	constexpr std::int64_t most = 20 * second;
	// Of the order of the other thread's period: some are interrupted.
	const std::uint64_t turns = turns_for(600 * us, area);
	Runs runs;
	const std::uint64_t start = ticks();
	const auto for_less_than = [start](std::int64_t ns) {
		return ticks() - start < to_ticks(ns);
	};
	while (for_less_than(least) ||
	       ((runs.committed == 0 || runs.aborted == 0) && for_less_than(most)))
		++(slice_test_sequence(area.base(), turns) == 0 ? runs.committed : runs.aborted);
	return runs;
}

TEST(Restart, SurvivesWithTheFlagsSet)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "30");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	for (const std::uint32_t size : {32U, 64U})
		for (const bool opted_in : {false, true}) {
			const std::string trace =
				std::to_string(size) + " bytes" + (opted_in ? ", opted in" : "");
			SCOPED_TRACE(trace);
			const Outcome outcome = in_child([&] {
				pin(test_cpu());
				RseqArea area;
				if (area.enroll(size) != 0 || set_enabled(opted_in) != 0)
					return 1;
				const std::uint32_t flags =
					flag_available | (opted_in ? flag_enabled : 0U);
				const Runs runs = run_sequences(area);
				std::printf("%s: %d committed, %d aborted\n", trace.c_str(),
				            runs.committed, runs.aborted);
				if (area.flags() != flags)
					return 2;
				return runs.aborted > 0 && runs.committed > 0 ? 0 : 3;
			});
			EXPECT_EQ(outcome, 0)
				<< (outcome < 0    ? "killed by a signal"
			            : outcome == 1 ? "could not be set up"
			            : outcome == 2 ? "the flags changed"
			                           : "no sequence was restarted, or all");
		}
}

// With the request set, most interruptions are grants or expiries instead.
TEST(Restart, SurvivesWhileRequesting)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "30");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	const Outcome outcome = in_child([] {
		pin(test_cpu());
		RseqArea area;
		if (opt_in(area) != 0)
			return 1;
		const std::uint64_t turns = turns_for(2 * ms, area);
		int aborted = 0;
		for (int i = 0; i < 5000 && (i < 100 || aborted == 0); ++i) {
			area.set_request(1);
			aborted += slice_test_sequence(area.base(), turns);
			leave(area);
		}
		const Counters counters = Counters::of_this_thread();
		if (aborted == 0)
			return 2;
		return counters["granted"] > 0 ? 0 : 3;
	});
	EXPECT_EQ(outcome, 0) << (outcome < 0    ? "killed by a signal"
	                          : outcome == 2 ? "no sequence was restarted"
	                          : outcome == 3 ? "no grants"
	                                         : "could not be set up");
}

// A grant is no preemption: the thread keeps its CPU and its sequence.
TEST(Restart, AGrantDoesNotRestart)
{
	SLICE_EXT_NEEDS(need::control());
	const FileGuard length(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	in_thread([] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const std::uint64_t turns = turns_for(20 * ms, area);
		int committed_in_grant = 0;
		for (int i = 0; i < 200 && committed_in_grant < 10; ++i) {
			area.set_request(1);
			if (slice_test_sequence_granted(area.base(), turns) == 0)
				++committed_in_grant;
			leave(area);
		}
		EXPECT_EQ(committed_in_grant, 10);
	});
}

// The check that the series changes still refuses what it does not know.
TEST(Restart, AnUnknownFlagStillKills)
{
	SLICE_EXT_NEEDS(need::control());
	constexpr std::uint32_t unknown = 1U << 7;
	const EagerSoftirq softirq(test_cpu());
	Periodic other({});
	const Outcome outcome = in_child([] {
		pin(test_cpu());
		RseqArea area;
		if (area.enroll(64) != 0)
			return 1;
		area.set_u32(off_flags, area.flags() | unknown);
		run_sequences(area);
		return 0;
	});
	EXPECT_EQ(outcome, -SIGSEGV);
}

} // namespace
} // namespace slice_test

#endif
