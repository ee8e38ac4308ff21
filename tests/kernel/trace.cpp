// SPDX-License-Identifier: MIT
// The tracepoints tell what the counters count, and how much of the time was used.
#include "contest.hpp"
#include "fixture.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace slice_test
{
namespace
{

const std::string tracing = "/sys/kernel/tracing/";
constexpr std::int64_t length_us = 30;

struct Traced {
	unsigned grants = 0;
	std::map<std::string, unsigned> denied, ended;
	std::vector<std::int64_t> used; // ns
	std::vector<std::int64_t> lengths;
};

/** The text between @p key and the next space. */
std::string value_of(const std::string &line, const std::string &key)
{
	const std::size_t at = line.find(" " + key + "=");
	if (at == std::string::npos)
		return "";
	const std::size_t start = at + key.size() + 2;
	return line.substr(start, line.find(' ', start) - start);
}

Traced read_trace()
{
	Traced traced;
	std::ifstream file(tracing + "trace");
	for (std::string line; std::getline(file, line);) {
		if (line.find("sched_preempt_delay_grant:") != std::string::npos) {
			++traced.grants;
			traced.lengths.push_back(std::atoll(value_of(line, "length").c_str()));
		} else if (line.find("sched_preempt_delay_deny:") != std::string::npos) {
			++traced.denied[value_of(line, "reason")];
		} else if (line.find("sched_preempt_delay_end:") != std::string::npos) {
			++traced.ended[value_of(line, "reason")];
			traced.used.push_back(std::atoll(value_of(line, "used").c_str()));
		}
	}
	return traced;
}

class Trace : public OneCpu
{
      protected:
	void SetUp() override
	{
		prepare(std::to_string(length_us));
		if (IsSkipped() || HasFatalFailure())
			return;
		for (const char *event : {"grant", "deny", "end"}) {
			const std::string switch_file =
				tracing + "events/sched/sched_preempt_delay_" + event + "/enable";
			if (access(switch_file.c_str(), W_OK) != 0)
				SLICE_EXT_NEEDS("tracefs with the scheduler's events on " + tracing);
			events_.push_back(std::make_unique<FileGuard>(switch_file, "1"));
		}
		// Empties it.
		std::ofstream(tracing + "trace") << "";
	}

	std::vector<std::unique_ptr<FileGuard>> events_;
};

TEST_F(Trace, TellsWhatTheCountersCount)
{
	const Contest asked = contest(Demand::always, Periodic::Setup{}, 40 * ms);
	const Traced traced = read_trace();
	describe("requesting always", asked);
	ASSERT_EQ(asked.error, 0);
	ASSERT_GT(asked.counters["granted"], 10);

	// The rest of the system may ask too, but nobody does here.
	EXPECT_EQ(traced.grants, asked.counters["granted"]);
	unsigned ended = 0;
	for (const auto &[reason, count] : traced.ended) {
		EXPECT_EQ(count, asked.counters[("ended_" + reason).c_str()]) << reason;
		ended += count;
	}
	EXPECT_EQ(ended, asked.counters.ended());
	for (const auto &[reason, count] : traced.denied)
		EXPECT_EQ(count, asked.counters[("denied_" + reason).c_str()]) << reason;

	for (const std::int64_t length : traced.lengths)
		EXPECT_EQ(length, length_us * us);
	for (const std::int64_t used : traced.used) {
		EXPECT_GT(used, 0);
		EXPECT_LE(used, length_us * us + (deterministic() ? 10 * us : second));
	}
	// It never gives the CPU back, so nearly all of the time is used.
	EXPECT_GE(median(traced.used), length_us * us - 1 * us);
}

} // namespace
} // namespace slice_test
