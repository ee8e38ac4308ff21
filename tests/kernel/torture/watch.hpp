// SPDX-License-Identifier: MIT
/**
 * @file watch.hpp
 * Well-behaved threads that have to keep going whatever the others do.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_TORTURE_WATCH_HPP
#define SLICE_EXT_TESTS_KERNEL_TORTURE_WATCH_HPP

#include "system.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace slice_test::torture
{

/** A thread that runs again and again, and keeps account of when it did. */
class Watcher
{
      public:
	Watcher(std::string name, const Policy &policy, int cpu);
	virtual ~Watcher() = default;
	Watcher(const Watcher &) = delete;
	Watcher &operator=(const Watcher &) = delete;

	void stop();

	const std::string &name() const
	{
		return name_;
	}
	/** errno of what could not be set up; 0 when all could. After stop(). */
	int error() const
	{
		return error_;
	}
	std::uint64_t runs() const
	{
		return runs_;
	}
	/** The longest time between two runs, or from the last one to stop(), ns. */
	std::int64_t longest_gap() const
	{
		return longest_;
	}

      protected:
	static constexpr int any_cpu = -1;

	/** For constructors of derived classes. */
	void start();
	/** Waits for whatever makes it run. */
	virtual void wait() = 0;
	virtual void wake()
	{
	}
	/** Puts the thread back on its CPU after that was taken down. */
	void return_home() const;
	bool stopping() const
	{
		return stop_;
	}

      private:
	void run();

	const std::string name_;
	const Policy policy_;
	const int cpu_;
	std::atomic<bool> stop_{false};
	std::atomic<std::uint64_t> runs_{0};
	std::atomic<std::int64_t> last_{0};
	std::atomic<std::int64_t> longest_{0};
	int error_ = 0;
	std::thread thread_;
};

/** For each CPU real-time threads that its timer and that another CPU wakes up, and ordinary
 * ones that preempt others when they wake up; and deadline threads, which choose their CPU. */
std::vector<std::unique_ptr<Watcher>> watch(const std::vector<int> &cpus);

} // namespace slice_test::torture

#endif
