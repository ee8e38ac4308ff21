// SPDX-License-Identifier: MIT
#include "cpu_list.hpp"

#include <cerrno>
#include <charconv>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>

namespace slice_ext::tool
{

namespace
{

int parse_cpu(std::string_view list, std::string_view text)
{
	int cpu = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
	if (text.empty() || error == std::errc::invalid_argument ||
	    end != text.data() + text.size() || cpu < 0)
		throw std::invalid_argument("'" + std::string(list) +
		                            "' is not a CPU list; write it like 0-3,8");
	if (error == std::errc::result_out_of_range || cpu >= kMaxCpus)
		throw std::invalid_argument("CPU " + std::string(text) +
		                            " is beyond the highest number, " +
		                            std::to_string(kMaxCpus - 1));
	return cpu;
}

} // namespace

std::vector<int> parse_cpu_list(std::string_view text)
{
	std::set<int> cpus;
	std::size_t begin = 0;
	while (begin <= text.size()) {
		std::size_t end = text.find(',', begin);
		if (end == std::string_view::npos)
			end = text.size();
		const std::string_view item = text.substr(begin, end - begin);
		const std::size_t dash = item.find('-', 1);
		const int first = parse_cpu(text, item.substr(0, dash));
		const int last = dash == std::string_view::npos
		                         ? first
		                         : parse_cpu(text, item.substr(dash + 1));
		if (last < first)
			throw std::invalid_argument("the range '" + std::string(item) +
			                            "' runs backwards");
		for (int cpu = first; cpu <= last; ++cpu)
			cpus.insert(cpu);
		begin = end + 1;
	}
	return {cpus.begin(), cpus.end()};
}

std::string format_cpu_list(const std::vector<int> &cpus)
{
	std::string text;
	for (std::size_t i = 0; i < cpus.size();) {
		std::size_t last = i;
		while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1)
			++last;
		if (!text.empty())
			text += ',';
		text += std::to_string(cpus[i]);
		if (last > i)
			text += '-' + std::to_string(cpus[last]);
		i = last + 1;
	}
	return text;
}

std::vector<int> allowed_cpus()
{
	cpu_set_t *set = CPU_ALLOC(kMaxCpus);
	if (set == nullptr)
		throw std::bad_alloc();
	const std::size_t size = CPU_ALLOC_SIZE(kMaxCpus);
	CPU_ZERO_S(size, set);
	if (::sched_getaffinity(0, size, set) != 0) {
		const int error = errno;
		CPU_FREE(set);
		throw std::system_error(error, std::generic_category(), "sched_getaffinity");
	}
	std::vector<int> cpus;
	for (int cpu = 0; cpu < kMaxCpus; ++cpu)
		if (CPU_ISSET_S(cpu, size, set))
			cpus.push_back(cpu);
	CPU_FREE(set);
	return cpus;
}

SingleCpuSet::SingleCpuSet(int cpu) : set_(CPU_ALLOC(kMaxCpus))
{
	if (set_ == nullptr)
		throw std::bad_alloc();
	CPU_ZERO_S(size(), set_);
	CPU_SET_S(cpu, size(), set_);
}

} // namespace slice_ext::tool
