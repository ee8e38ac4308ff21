// SPDX-License-Identifier: MIT
// std::lock_guard on a std::mutex whose holder asks for an extension.
//
//     c++ -std=c++17 lock_guard.cpp $(pkg-config --cflags --libs slice-ext) -pthread
#include <slice_ext/slice_ext.hpp>

#include <iostream>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace
{

class Histogram
{
      public:
	void add(int value)
	{
		const std::lock_guard guard(mutex_);
		counts_[value]++;
	}

	unsigned long total() const
	{
		const std::lock_guard guard(mutex_);
		unsigned long sum = 0;
		for (const auto &[value, count] : counts_)
			sum += count;
		return sum;
	}

      private:
	mutable slice_ext::extended_lock<std::mutex> mutex_;
	std::map<int, unsigned long> counts_;
};

} // namespace

int main()
{
	constexpr int threads = 4;
	constexpr int additions = 20000;

	const slice_ext::reason reason = slice_ext::query().reason;
	std::cout << slice_ext_reason_text(reason) << '\n' << slice_ext_reason_hint(reason) << '\n';

	Histogram histogram;
	std::vector<std::thread> workers;
	for (int t = 0; t < threads; t++) {
		workers.emplace_back([&histogram] {
			const slice_ext::thread_scope enabled; // this thread, until it returns
			for (int i = 0; i < additions; i++)
				histogram.add(i % 10);
		});
	}
	for (std::thread &worker : workers)
		worker.join();

	std::cout << histogram.total() << " additions\n";
	return histogram.total() == 1ul * threads * additions ? 0 : 1;
}
