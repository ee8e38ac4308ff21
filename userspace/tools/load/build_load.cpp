// SPDX-License-Identifier: MIT
#include "load/build_load.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "demo/pinned_thread.hpp"
#include "demo/random.hpp"
#include "exit_status.hpp"
#include "load/spinners.hpp"
#include "parent_death.hpp"

namespace slice_ext::tool
{

namespace
{

constexpr unsigned kSources = 8;
constexpr unsigned kWordsPerSource = 6000;
// What came out of a program that could not even be started.
constexpr int kNotStarted = 126;

class TemporaryDirectory
{
      public:
	TemporaryDirectory()
	{
		const char *base = std::getenv("TMPDIR");
		std::string pattern =
			std::string(base != nullptr && *base != '\0' ? base : "/tmp") +
			"/slice-ext-build.XXXXXX";
		if (mkdtemp(pattern.data()) == nullptr)
			throw std::system_error(errno, std::generic_category(),
			                        "cannot make the directory " + pattern +
			                                "; name a writable one in TMPDIR");
		path_ = pattern;
	}
	~TemporaryDirectory()
	{
		std::error_code ignored;
		std::filesystem::remove_all(path_, ignored);
	}
	TemporaryDirectory(const TemporaryDirectory &) = delete;
	TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

	const std::string &path() const
	{
		return path_;
	}

      private:
	std::string path_;
};

void write_source(const std::string &path, std::uint64_t seed)
{
	Random random(seed);
	std::ofstream file(path);
	for (unsigned i = 0; i < kWordsPerSource; ++i)
		file << "identifier_" << random.next() % 1500 << (i % 10 == 9 ? '\n' : ' ');
	file.close();
	if (!file)
		throw std::system_error(errno, std::generic_category(), "cannot write " + path);
}

// Starts PROGRAM and waits for it. Its exit status; kNotStarted when there is no process to be had.
int run_program(const char *program, const std::string &source, const std::string &object)
{
	// Prepared here: after fork() of a process with several threads nothing may allocate.
	const char *const arguments[] = {"slice-ext",    "load",         "build", "--compile",
	                                 source.c_str(), object.c_str(), nullptr};
	const pid_t parent = getpid();
	const pid_t child = fork();
	if (child < 0)
		return kNotStarted;
	if (child == 0) {
		if (!die_with_parent(SIGKILL, parent))
			_exit(kNotStarted);
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, nullptr);
		signal(SIGPIPE, SIG_DFL);
		execv(program, const_cast<char *const *>(arguments));
		_exit(kNotStarted);
	}
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : kExitSignalBase + WTERMSIG(status);
}

struct Maker {
	std::uint64_t done = 0;
	int failure = 0;
};

} // namespace

std::uint64_t run_build(const LoadOptions &options, SignalWatcher &signals)
{
	const TemporaryDirectory directory;
	const std::string program = std::filesystem::read_symlink("/proc/self/exe");
	std::vector<std::string> sources;
	for (unsigned i = 0; i < kSources; ++i) {
		sources.push_back(directory.path() + "/" + std::to_string(i) + ".c");
		write_source(sources.back(), i);
	}

	std::atomic<bool> stop{false};
	std::vector<std::unique_ptr<Maker>> makers;
	std::vector<std::unique_ptr<PinnedThread>> threads;
	const auto make = [&](Maker &self, std::size_t index) {
		for (std::size_t i = index; !stop.load(std::memory_order_relaxed); ++i) {
			const std::string object = directory.path() + "/" + std::to_string(index) +
			                           "." + std::to_string(i % 64) + ".o";
			self.failure = run_program(program.c_str(), sources[i % kSources], object);
			if (self.failure != 0)
				return;
			++self.done;
		}
	};
	try {
		for (unsigned i = 0; i < options.threads; ++i)
			for (const int cpu : options.cpus) {
				makers.push_back(std::make_unique<Maker>());
				Maker &self = *makers.back();
				const std::size_t index = makers.size() - 1;
				threads.push_back(std::make_unique<PinnedThread>(
					cpu, 0, [&make, &self, index] { make(self, index); }));
			}
	} catch (...) {
		stop.store(true, std::memory_order_relaxed);
		throw;
	}
	wait_for_end(options, signals);
	stop.store(true, std::memory_order_relaxed);
	threads.clear();
	std::uint64_t done = 0;
	for (const auto &maker : makers) {
		if (maker->failure != 0)
			throw std::runtime_error("a program of the load failed, with status " +
			                         std::to_string(maker->failure));
		done += maker->done;
	}
	return done;
}

int compile_one(const std::string &source, const std::string &object)
{
	std::ifstream input(source);
	std::unordered_map<std::string, unsigned> words;
	std::string word;
	while (input >> word)
		++words[word];
	if (words.empty()) {
		std::fprintf(stderr, "slice-ext load: %s: empty, or cannot be read\n",
		             source.c_str());
		return kExitFailed;
	}
	std::vector<std::pair<std::string, unsigned>> sorted(words.begin(), words.end());
	std::sort(sorted.begin(), sorted.end());
	const std::string temporary = object + ".tmp";
	std::ofstream output(temporary);
	for (const auto &[name, count] : sorted)
		output << name << ' ' << count << '\n';
	output.close();
	if (!output || std::rename(temporary.c_str(), object.c_str()) != 0) {
		std::fprintf(stderr, "slice-ext load: cannot write %s\n", object.c_str());
		return kExitFailed;
	}
	return kExitOk;
}

} // namespace slice_ext::tool
