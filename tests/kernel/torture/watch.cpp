// SPDX-License-Identifier: MIT
#include "watch.hpp"

#include "timing.hpp"

#include <algorithm>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace slice_test::torture
{

namespace
{

void futex(std::atomic<std::uint32_t> &word, int operation, std::uint32_t value,
           const timespec *timeout = nullptr)
{
	syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

/** Woken up by a timer of the CPU it runs on. */
class Timed : public Watcher
{
      public:
	Timed(const std::string &name, const Policy &policy, std::int64_t period, int cpu = any_cpu)
		: Watcher(name, policy, cpu), period_(period), next_(now_ns())
	{
		start();
	}
	~Timed() override
	{
		stop();
	}

      private:
	void wait() override
	{
		next_ = std::max(next_ + period_, now_ns());
		const timespec at{static_cast<time_t>(next_ / second),
		                  static_cast<long>(next_ % second)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
	}

	const std::int64_t period_;
	std::int64_t next_;
};

/** Woken up from another CPU; each wake-up has to be answered before the next. */
class Called : public Watcher
{
      public:
	Called(const std::string &name, int cpu, int caller_cpu)
		: Watcher(name, fifo(80), cpu), caller_([this, caller_cpu] { call(caller_cpu); })
	{
		start();
	}
	~Called() override
	{
		stop();
		caller_.join();
	}

      private:
	void wait() override
	{
		answered_ = calls_.load();
		futex(answered_, FUTEX_WAKE, 1);
		while (calls_ == answered_ && !stopping())
			futex(calls_, FUTEX_WAIT, answered_);
	}
	void wake() override
	{
		++calls_;
		futex(calls_, FUTEX_WAKE, 1);
	}
	void call(int cpu)
	{
		apply(fifo(70));
		while (!stopping()) {
			pin(cpu);
			sleep_ns(4 * ms);
			wake();
			const std::uint32_t number = calls_;
			for (std::uint32_t seen; (seen = answered_) != number && !stopping();) {
				const timespec moment{0, 100 * ms};
				futex(answered_, FUTEX_WAIT, seen, &moment);
			}
		}
	}

	std::atomic<std::uint32_t> calls_{0};
	std::atomic<std::uint32_t> answered_{0};
	std::thread caller_;
};

} // namespace

Watcher::Watcher(std::string name, const Policy &policy, int cpu)
	: name_(std::move(name)), policy_(policy), cpu_(cpu)
{
}

void Watcher::start()
{
	last_ = now_ns();
	thread_ = std::thread([this] { run(); });
}

void Watcher::stop()
{
	if (!thread_.joinable())
		return;
	longest_ = std::max<std::int64_t>(longest_, now_ns() - last_);
	stop_ = true;
	wake();
	thread_.join();
}

void Watcher::return_home() const
{
	if (cpu_ != any_cpu && sched_getcpu() != cpu_)
		pin(cpu_);
}

void Watcher::run()
{
	error_ = apply(policy_);
	while (!stopping()) {
		return_home();
		wait();
		const std::int64_t now = now_ns();
		longest_ = std::max<std::int64_t>(longest_, now - last_);
		last_ = now;
		++runs_;
	}
}

std::vector<std::unique_ptr<Watcher>> watch(const std::vector<int> &cpus)
{
	std::vector<std::unique_ptr<Watcher>> watchers;
	// With a slice shorter than that of the others it preempts them when it wakes up.
	Policy with_short_slice = fair();
	with_short_slice.runtime = 100 * us;
	for (std::size_t i = 0; i < cpus.size(); ++i) {
		const std::string suffix = "/" + std::to_string(cpus[i]);
		const int other = cpus[(i + 1) % cpus.size()];
		watchers.push_back(
			std::make_unique<Timed>("timer" + suffix, fifo(90), 4993 * us, cpus[i]));
		watchers.push_back(std::make_unique<Called>("called" + suffix, cpus[i], other));
		watchers.push_back(std::make_unique<Timed>("deadline" + suffix,
		                                           deadline(2 * ms, 20 * ms), 19'997 * us));
		for (const std::int64_t period : {1997 * us, 2999 * us})
			watchers.push_back(std::make_unique<Timed>(
				"ordinary" + suffix, with_short_slice, period, cpus[i]));
	}
	return watchers;
}

} // namespace slice_test::torture
