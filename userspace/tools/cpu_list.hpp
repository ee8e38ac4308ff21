// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_CPU_LIST_HPP
#define SLICE_EXT_TOOL_CPU_LIST_HPP

#include <sched.h>

#include <string>
#include <string_view>
#include <vector>

namespace slice_ext::tool
{

// Highest CPU number + 1 that the tool handles: the kernel's own upper limit on x86-64.
constexpr int kMaxCpus = 8192;

// CPU numbers of a list such as "0-3,8", sorted, each once.
// Throws std::invalid_argument, with a text fit for the user, when TEXT is not such a list.
std::vector<int> parse_cpu_list(std::string_view text);

// The inverse: ranges where they are possible. "" for no CPU.
std::string format_cpu_list(const std::vector<int> &cpus);

// CPUs the calling thread may run on. Throws std::system_error.
std::vector<int> allowed_cpus();

// A dynamically sized cpu_set_t with one CPU in it, for the *_S interfaces.
class SingleCpuSet
{
      public:
	explicit SingleCpuSet(int cpu);
	~SingleCpuSet()
	{
		CPU_FREE(set_);
	}
	SingleCpuSet(const SingleCpuSet &) = delete;
	SingleCpuSet &operator=(const SingleCpuSet &) = delete;

	const cpu_set_t *get() const
	{
		return set_;
	}
	std::size_t size() const
	{
		return CPU_ALLOC_SIZE(kMaxCpus);
	}

      private:
	cpu_set_t *set_;
};

} // namespace slice_ext::tool

#endif
