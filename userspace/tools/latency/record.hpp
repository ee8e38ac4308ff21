// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_RECORD_HPP
#define SLICE_EXT_TOOL_LATENCY_RECORD_HPP

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace slice_ext::tool::latency
{

// A file that cannot be believed: names the file and the cause.
class RecordError : public std::runtime_error
{
	using std::runtime_error::runtime_error;
};

// What the runner measured on one kernel, as it is kept: a named run. All times are nanoseconds
// unless a name says otherwise.

// Latencies of one cyclictest thread.
struct ThreadLatencies {
	unsigned thread = 0;
	int cpu = -1;
	std::uint64_t cycles = 0;
	std::uint64_t min = 0;
	double average = 0;
	std::uint64_t max = 0; // exact even where it lies above the histogram
	// Lower edge of the bucket and its count, ascending, without empty buckets.
	std::vector<std::pair<std::uint64_t, std::uint64_t>> histogram;
	std::uint64_t bucket_width = 1000;
	std::uint64_t histogram_end = 0; // latencies from here on are in overflow
	std::uint64_t overflow = 0;      // cycles minus the sum of the buckets
};

// What ran on the CPU when the real-time wake-up came; PhaseSample::state.
enum class PhaseState : unsigned {
	other = 0,    // neither of the two fair threads, or not known
	hog = 1,      // the fair thread that does not ask
	outside = 2,  // the asking thread, outside a section
	section = 3,  // inside one: the request is set, nothing granted
	granted = 4,  // inside one, with extra time
};
const char *phase_state_name(PhaseState state);

struct PhaseSample {
	std::uint64_t phase = 0;   // of the wake-up in the period, from the tick
	std::uint64_t latency = 0; // from the programmed time to the thread's first instruction after
	PhaseState state = PhaseState::other;
};

// The enumeration: the worst sample of each phase and state.
struct PhaseScan {
	std::uint64_t period = 0;
	std::uint64_t step = 0;
	std::uint64_t first = 0; // the phases scanned are first, first + step, ... < end
	std::uint64_t end = 0;
	std::uint64_t wake_ups = 0; // all, more than samples
	std::uint64_t uncovered = 0; // phases at which no wake-up met the asking thread in a section
	std::vector<PhaseSample> samples;
};

// One line of the lock benchmark.
struct LockRow {
	std::string mode; // off, on, on-while-waiting
	unsigned threads = 0;
	unsigned cpus = 0;
	std::uint64_t section = 0;
	std::uint64_t sections = 0; // done
	double sections_per_second = 0;
	std::uint64_t wait_p50 = 0, wait_p99 = 0, wait_p999 = 0, wait_max = 0;
	std::uint64_t holder_preempted = 0;
	// Nanoseconds, which are instructions in the deterministic VM, that entering and leaving
	// add to a section nobody waits for; in rows with one thread.
	std::optional<double> uncontended_cost;
	std::map<std::string, long long> counters; // difference of /proc/preempt_delay over the row
};

struct ArmResult {
	std::string arm;        // name in the experiment
	unsigned repetition = 1; // from 1
	double seconds = 0;     // duration
	// Files written before the measurement and what they held then: sysctls and the like.
	std::map<std::string, std::string> settings;
	// Difference of the machine-wide /proc/preempt_delay over the measurement; empty without it.
	std::map<std::string, long long> counters;
	// Exactly one of these is filled, by the kind of the experiment.
	std::vector<ThreadLatencies> threads; // cyclictest
	std::optional<PhaseScan> phase;       // phase
	std::vector<LockRow> locks;           // bench
};

struct RunRecord {
	std::string name;
	// The experiment file, as it was used (short form applied).
	nlohmann::json experiment;
	bool short_form = false;
	bool complete = false; // false: interrupted, or an arm failed; never compared
	std::string why_incomplete;
	std::string started; // ISO 8601, UTC
	// kernel_kind "base" (no trace of the feature), "off" (patched, switched off at boot) or
	// "on"; preemption "PREEMPT", "PREEMPT_RT", ...; virtual_time true in the deterministic VM;
	// the rest as it was found: release, version, config_sha256, cmdline, clocksource, governor,
	// isolated, nohz_full, cpus, cpu_model, microcode, steal_ticks, load_average, rt_tests, ...
	nlohmann::json environment;
	std::vector<ArmResult> arms; // in the order in which they were measured

	std::string experiment_name() const;
	std::string kernel_kind() const;
	std::string preemption() const;
	bool virtual_time() const;
};

inline constexpr const char *kRecordSchema = "slice-ext-latency-run/1";

nlohmann::json to_json(const RunRecord &record);
// Checks the schema, types, that histograms add up and that the arms are those of the experiment.
// ORIGIN is what messages call it. Throws RecordError.
RunRecord record_from_json(const nlohmann::json &json, const std::string &origin);
// Throws RecordError: unreadable, empty, truncated (not JSON), or as record_from_json().
RunRecord read_record(const std::string &path);
// Through a temporary file beside it and rename(), so that PATH is never half written.
// Throws std::system_error.
void write_record(const RunRecord &record, const std::string &path);

} // namespace slice_ext::tool::latency

#endif
