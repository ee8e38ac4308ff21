// SPDX-License-Identifier: MIT
#include "latency/runner.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <memory>
#include <system_error>

#include "bench/rows.hpp"
#include "cpu_list.hpp"
#include "demo/pinned_thread.hpp"
#include "exit_status.hpp"
#include "kernel_counters.hpp"
#include "latency/child.hpp"
#include "latency/cyclictest.hpp"
#include "latency/environment.hpp"
#include "latency/experiment.hpp"
#include "latency/guardian.hpp"
#include "latency/phase.hpp"
#include "latency/record.hpp"
#include "signal_watcher.hpp"
#include "text_file.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

// The run cannot begin: nothing has been touched.
struct Refusal {
	int exit_status;
	std::string text;
};

// The run cannot go on.
struct Failure {
	std::string text;
};

// How often the runner looks after its children. Rare, because each look is a wake-up on a CPU
// that is measured.
constexpr std::chrono::milliseconds kLook(250);

double now_seconds()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::string utc_now()
{
	const std::time_t now = std::time(nullptr);
	std::tm parts;
	char text[32];
	gmtime_r(&now, &parts);
	std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return text;
}

std::string own_path()
{
	char path[4096];
	const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length <= 0)
		return "slice-ext";
	return std::string(path, static_cast<std::size_t>(length));
}

bool is_program(const std::string &name)
{
	std::string path = std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin";
	for (std::size_t start = 0; start <= path.size();) {
		const std::size_t end = std::min(path.find(':', start), path.size());
		if (access((path.substr(start, end - start) + "/" + name).c_str(), X_OK) == 0)
			return true;
		start = end + 1;
	}
	return false;
}

std::string with_placeholders(std::string word, const std::vector<int> &cpus)
{
	const std::pair<const char *, std::string> values[] = {
		{"{cpu}", std::to_string(cpus.front())},
		{"{cpus}", format_cpu_list(cpus)},
		{"{self}", own_path()},
	};
	for (const auto &[name, value] : values)
		for (std::size_t at; (at = word.find(name)) != std::string::npos;)
			word.replace(at, std::string(name).size(), value);
	return word;
}

std::string hint_for_setting(const std::string &path)
{
	if (path.find("sched_preempt_delay_us") != std::string::npos)
		return "a kernel with CONFIG_SCHED_PREEMPT_DELAY has it";
	if (path.find("preempt_delay_unguarded") != std::string::npos)
		return "it needs CONFIG_SCHED_PREEMPT_DELAY_UNGUARDED and debugfs mounted on "
		       "/sys/kernel/debug; --arms leaves arms out";
	if (path.find("/sys/kernel/debug/") == 0)
		return "is debugfs mounted on /sys/kernel/debug?";
	return "the experiment names it";
}

void check_setting(const std::string &path)
{
	if (access(path.c_str(), F_OK) != 0)
		throw Refusal{errno == EACCES ? kExitNoPermission : kExitUnavailable,
		              path + ": " + std::generic_category().message(errno) + "; " +
		                      (errno == EACCES ? "run it as root" : hint_for_setting(path))};
	if (access(path.c_str(), W_OK) != 0)
		throw Refusal{kExitNoPermission, path + " cannot be written; run it as root"};
}

// RT_GROUP_SCHED gives no group any real-time time of its own at first.
bool real_time_group_without_time()
{
	for (const char *path : {"/sys/fs/cgroup/cpu/cpu.rt_runtime_us",
	                         "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us"})
		if (access(path, F_OK) == 0)
			return true;
	return false;
}

void check_real_time(int cpu)
{
	try {
		PinnedThread trial(cpu, 95, [] {});
	} catch (const std::system_error &error) {
		if (error.code().value() != EPERM)
			throw Refusal{kExitFailed, error.what()};
		if (geteuid() == 0 && real_time_group_without_time())
			throw Refusal{kExitNoPermission,
			              "no right to SCHED_FIFO although this is root: the kernel has "
			              "RT_GROUP_SCHED and the control group of this process has no "
			              "real-time time; write to its cpu.rt_runtime_us, or move the "
			              "shell to the root group"};
		throw Refusal{kExitNoPermission,
		              "no right to SCHED_FIFO priority 95; run it as root, with CAP_SYS_NICE, "
		              "or raise the limit with 'ulimit -r'"};
	}
}

// Held for the life of the process: two runs at once would measure each other.
void lock_machine()
{
	const char *runtime = std::getenv("XDG_RUNTIME_DIR");
	const std::string directory =
		access("/run", W_OK) == 0 ? "/run" : (runtime && *runtime ? runtime : "/tmp");
	const std::string path = directory + "/slice-ext-latency.lock";
	const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (lock < 0)
		return; // nowhere to keep it
	if (flock(lock, LOCK_EX | LOCK_NB) != 0)
		throw Refusal{kExitFailed, "another run is going on (" + path +
		                                   " is locked); wait for its end"};
}

class Run
{
      public:
	explicit Run(const RunOptions &options);

	int go();

      private:
	void prepare();
	void check_arm(const Arm &arm) const;
	void measure_all(Guardian &guardian, SignalWatcher &signals);
	ArmResult run_arm(const Arm &arm, unsigned repetition, Guardian &guardian,
	                  SignalWatcher &signals);
	void measure(const Arm &arm, ArmResult &result, Guardian &guardian, SignalWatcher &signals);
	void pause(std::chrono::milliseconds time, const Guardian &guardian, SignalWatcher &signals);
	void look(std::chrono::milliseconds time, const Guardian &guardian, SignalWatcher &signals);
	void wait_for(Child &child, const Guardian &guardian, SignalWatcher &signals);
	std::string raw_path(const ArmResult &result, const char *what) const;
	void say(const std::string &text) const;

	const RunOptions options_;
	Experiment experiment_;
	std::vector<const Arm *> arms_;
	std::vector<int> cpus_;
	RunRecord record_;
	int caught_ = 0;
	unsigned done_ = 0;
};

Run::Run(const RunOptions &options) : options_(options)
{
	experiment_ = load_experiment(options.experiment, options.short_form);
}

void Run::say(const std::string &text) const
{
	if (!options_.quiet)
		std::fprintf(stderr, "slice-ext latency: %s\n", text.c_str());
}

void Run::check_arm(const Arm &arm) const
{
	for (const auto &setting : arm.settings)
		check_setting(setting.first);
	for (const Load &load : arm.load) {
		const std::string program = with_placeholders(load.command.front(), cpus_);
		if (program.find('/') == std::string::npos && !is_program(program))
			throw Refusal{kExitFailed, "arm " + arm.name + " needs the program " + program +
			                                   ", which is not on PATH"};
	}
}

void Run::prepare()
{
	record_.environment = read_environment(options_.virtual_time);
	if (!options_.kernel_kind.empty())
		record_.environment["kernel_kind"] = options_.kernel_kind;
	const std::string kind = record_.kernel_kind();
	for (const std::string &name : options_.arms)
		if (!experiment_.find(name))
			throw Refusal{kExitUsage, "there is no arm " + name + " in experiment " +
			                                  experiment_.name};
	std::string others;
	for (const Arm &arm : experiment_.arms) {
		const bool wanted = options_.arms.empty() ||
		                    std::count(options_.arms.begin(), options_.arms.end(), arm.name);
		if (wanted && arm.kernel == kind)
			arms_.push_back(&arm);
		else if (wanted)
			others += " " + arm.name + " (" + arm.kernel + ")";
	}
	if (arms_.empty())
		throw Refusal{kExitUnavailable,
		              "this kernel is \"" + kind + "\", which none of the arms is for:" +
		                      others + "; boot another one"};
	if (!others.empty())
		say("not for this kernel, which is \"" + kind + "\":" + others);

	cpus_ = options_.cpus.empty() ? allowed_cpus() : options_.cpus;
	if (experiment_.kind != Kind::bench)
		check_real_time(cpus_.front());
	if (experiment_.kind == Kind::cyclictest && !is_program("cyclictest"))
		throw Refusal{kExitFailed, "cyclictest is not on PATH; it is in the package rt-tests"};
	for (const Arm *arm : arms_)
		check_arm(*arm);

	record_.name = options_.name;
	if (record_.name.empty()) {
		record_.name = experiment_.name + "-" + record_.preemption() + "-" + kind;
		std::replace(record_.name.begin(), record_.name.end(), ' ', '-');
	}
	if (record_.name.find('/') != std::string::npos)
		throw Refusal{kExitUsage, "--name " + record_.name + ": no slash in it, --output is "
		                                                     "for the directory"};
	if (mkdir(options_.output.c_str(), 0755) != 0 && errno != EEXIST)
		throw Refusal{kExitFailed,
		              options_.output + ": " + std::generic_category().message(errno)};
	if (access(options_.output.c_str(), W_OK | X_OK) != 0)
		throw Refusal{kExitNoPermission, options_.output + ": " +
		                                         std::generic_category().message(errno)};
	const std::string path = options_.output + "/" + record_.name + ".json";
	if (access(path.c_str(), F_OK) == 0 && !options_.force)
		throw Refusal{kExitFailed, path + " is there already; give the run another --name, or "
		                                  "--force to replace it"};
	lock_machine();
}

// Sleeps; throws when the run has to end.
void Run::look(std::chrono::milliseconds time, const Guardian &guardian, SignalWatcher &signals)
{
	if (signals.wait(time)) {
		caught_ = signals.caught();
		throw Failure{"interrupted by signal " + std::to_string(caught_)};
	}
	if (!guardian.alive())
		throw Failure{"the process that guards the settings was killed"};
}

void Run::pause(std::chrono::milliseconds time, const Guardian &guardian, SignalWatcher &signals)
{
	for (; time > kLook; time -= kLook)
		look(kLook, guardian, signals);
	look(time, guardian, signals);
}

void Run::wait_for(Child &child, const Guardian &guardian, SignalWatcher &signals)
{
	while (!child.ended())
		look(kLook, guardian, signals);
}

std::string Run::raw_path(const ArmResult &result, const char *what) const
{
	return options_.output + "/" + record_.name + "." + result.arm + "." +
	       std::to_string(result.repetition) + "." + what;
}

void Run::measure(const Arm &arm, ArmResult &result, Guardian &guardian, SignalWatcher &signals)
{
	const auto watch = [&](pid_t group) { guardian.watch(group); };
	const auto words = [&](const char *key) {
		std::vector<std::string> made;
		for (const json &word : arm.measure.value(key, json::array()))
			made.push_back(with_placeholders(word.get<std::string>(), cpus_));
		return made;
	};

	if (experiment_.kind == Kind::cyclictest) {
		CyclictestRun run;
		run.cpus = cpus_;
		run.priority = arm.measure.value("priority", run.priority);
		run.interval_us = arm.measure.value("interval_us", run.interval_us);
		run.loops = arm.measure.value("loops", run.loops);
		run.histogram_us = arm.measure.value("histogram_us", run.histogram_us);
		run.more = words("arguments");
		const std::string path = raw_path(result, "cyclictest.json");
		const std::string log = raw_path(result, "cyclictest.log");
		unlink(path.c_str());
		Child cyclictest(cyclictest_command(run, path), {"", log}, watch);
		wait_for(cyclictest, guardian, signals);
		if (cyclictest.status() != 0)
			throw Failure{"cyclictest ended with " + describe_status(cyclictest.status()) +
			              ": " + std::string(trimmed(read_text(log).value_or("")))};
		unlink(log.c_str());
		result.threads = read_cyclictest(path, run);
	} else if (experiment_.kind == Kind::phase) {
		PhaseOptions phase = phase_options_from_json(arm.measure);
		phase.cpu = cpus_.front();
		std::atomic<bool> stop{false};
		auto scan = std::async(std::launch::async,
		                       [&] { return measure_phase(phase, stop); });
		try {
			while (scan.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
				look(kLook, guardian, signals);
		} catch (...) {
			stop = true;
			scan.wait();
			throw;
		}
		result.phase = scan.get();
	} else {
		const std::string path = raw_path(result, "bench.json");
		std::vector<std::string> command = {own_path(), "bench", "--json", "--quiet", "--cpus",
		                                    format_cpu_list(cpus_)};
		for (const std::string &word : words("arguments"))
			command.push_back(word);
		Child bench(command, {"", path}, watch);
		wait_for(bench, guardian, signals);
		const std::string said = read_text(path).value_or("");
		if (bench.status() != 0)
			throw Failure{"slice-ext bench ended with " + describe_status(bench.status()) +
			              ": " + std::string(trimmed(said.substr(0, 500)))};
		const json report = json::parse(said, nullptr, false);
		if (report.is_discarded())
			throw Failure{path + ": slice-ext bench left no JSON"};
		result.locks = lock_rows_from_json(report);
	}
}

ArmResult Run::run_arm(const Arm &arm, unsigned repetition, Guardian &guardian,
                       SignalWatcher &signals)
{
	ArmResult result;
	result.arm = arm.name;
	result.repetition = repetition;
	for (const auto &[path, value] : arm.settings) {
		guardian.set(path, value);
		result.settings[path] = value;
	}

	std::vector<std::unique_ptr<Child>> load;
	if (!arm.load.empty()) {
		const std::string cgroup = guardian.make_cgroup();
		for (const Load &part : arm.load) {
			std::vector<std::string> command;
			for (const std::string &word : part.command)
				command.push_back(with_placeholders(word, cpus_));
			load.push_back(std::make_unique<Child>(
				command,
				Child::Places{cgroup, raw_path(result, "load.log")},
				[&](pid_t group) { guardian.watch(group); }));
			pause(std::chrono::milliseconds(part.warmup_ms), guardian, signals);
		}
	}
	const auto check_load = [&](const char *when) {
		for (std::size_t i = 0; i < load.size(); ++i)
			if (load[i]->ended())
				throw Failure{"the load " + arm.load[i].command.front() + " had ended " +
				              when + " the measurement, with " +
				              describe_status(load[i]->status()) + ": " +
				              std::string(trimmed(
					              read_text(raw_path(result, "load.log")).value_or("")))};
	};
	check_load("before");

	const Parsed<Counters> before = read_machine_counters();
	const double start = now_seconds();
	measure(arm, result, guardian, signals);
	result.seconds = now_seconds() - start;
	const Parsed<Counters> after = read_machine_counters();
	check_load("during");
	unlink(raw_path(result, "load.log").c_str());
	if (before.value && after.value)
		for (const auto &[name, value] : *after.value - *before.value)
			result.counters[name] = static_cast<long long>(value);
	return result;
}

void Run::measure_all(Guardian &guardian, SignalWatcher &signals)
{
	const unsigned repetitions =
		options_.repetitions ? options_.repetitions : experiment_.repetitions;
	const auto total = static_cast<unsigned>(repetitions * arms_.size());
	const double start = now_seconds();
	if (options_.ktap)
		std::printf("KTAP version 1\n1..%u\n", total);
	// In turns, so that whatever drifts drifts through all arms.
	for (unsigned repetition = 1; repetition <= repetitions; ++repetition) {
		for (const Arm *arm : arms_) {
			const std::string what =
				experiment_.name + " " + arm->name +
				(repetitions > 1 ? " " + std::to_string(repetition) : "");
			const double spent = now_seconds() - start;
			char rest[64] = "";
			if (done_ > 0)
				std::snprintf(rest, sizeof(rest), ", about %.0f s to go",
				              spent / done_ * (total - done_));
			say("arm " + std::to_string(done_ + 1) + " of " + std::to_string(total) + ": " +
			    arm->name + rest);
			std::string trouble;
			try {
				record_.arms.push_back(
					run_arm(*arm, repetition, guardian, signals));
			} catch (const Failure &failure) {
				trouble = failure.text;
			} catch (const std::exception &error) {
				trouble = error.what();
			}
			const std::string left = guardian.restore();
			if (trouble.empty() && !left.empty())
				trouble = left;
			++done_;
			if (options_.ktap)
				std::printf("%sok %u %s%s%s\n", trouble.empty() ? "" : "not ", done_,
				            what.c_str(), trouble.empty() ? "" : " # ",
				            trouble.c_str());
			std::fflush(stdout);
			if (!trouble.empty())
				throw Failure{"arm " + arm->name + ": " + trouble};
		}
	}
}

int Run::go()
{
	prepare();
	const std::string path = options_.output + "/" + record_.name + ".json";
	record_.experiment = experiment_.effective;
	record_.short_form = options_.short_form;
	record_.started = utc_now();
	int status = kExitOk;
	{
		Guardian guardian;
		SignalWatcher signals;
		try {
			measure_all(guardian, signals);
			record_.complete = true;
		} catch (const Failure &failure) {
			record_.why_incomplete = failure.text;
			status = caught_ ? kExitSignalBase + caught_ : kExitFailed;
			std::fprintf(stderr, "slice-ext latency: %s\n", failure.text.c_str());
			if (options_.ktap)
				std::printf("Bail out! %s\n", failure.text.c_str());
		}
	}
	record_.environment["steal_ticks_after"] = steal_ticks();
	write_record(record_, path);
	say(std::string(record_.complete ? "wrote " : "what there is of it is in ") + path);
	return status;
}

} // namespace

int run_experiment(const RunOptions &options)
{
	const auto refuse = [&](const std::string &text, int status) {
		std::fprintf(stderr, "slice-ext latency: %s\n", text.c_str());
		if (options.ktap)
			std::printf("Bail out! %s\n", text.c_str());
		return status;
	};
	try {
		return Run(options).go();
	} catch (const Refusal &refusal) {
		return refuse(refusal.text, refusal.exit_status);
	} catch (const ExperimentError &error) {
		return refuse(error.what(), kExitUsage);
	} catch (const std::exception &error) {
		return refuse(error.what(), kExitFailed);
	}
}

} // namespace slice_ext::tool::latency
