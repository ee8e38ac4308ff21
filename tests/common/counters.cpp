// SPDX-License-Identifier: MIT
#include "counters.hpp"

#include "numbers.hpp"

#include <fstream>
#include <ostream>
#include <sstream>

namespace slice_test
{

Counters Counters::of_this_thread()
{
	return from_sched("/proc/thread-self/sched");
}

Counters Counters::of_thread(pid_t tid)
{
	return from_sched("/proc/" + std::to_string(tid) + "/sched");
}

Counters Counters::from_sched(const std::string &path)
{
	static const std::string prefix = "preempt_delay.";
	Counters result;
	std::ifstream file(path);
	for (std::string line; std::getline(file, line);) {
		const auto start = line.find(prefix);
		const auto colon = line.find(':');
		if (start == std::string::npos || colon == std::string::npos)
			continue;
		std::string name =
			line.substr(start + prefix.size(), colon - start - prefix.size());
		name.erase(name.find_last_not_of(" \t") + 1);
		std::istringstream(line.substr(colon + 1)) >> result.values_[name];
	}
	return result;
}

Counters Counters::of_machine(int cpu)
{
	Counters result;
	std::ifstream file(path_counters);
	std::string line;
	std::getline(file, line);
	int column_of_cpu = -1;
	{
		std::istringstream header(line);
		std::string title;
		for (int column = 0; header >> title; ++column)
			if (title == "CPU" + std::to_string(cpu))
				column_of_cpu = column;
	}
	while (std::getline(file, line)) {
		std::istringstream row(line);
		std::string name;
		if (!(row >> name) || name.back() != ':')
			continue;
		name.pop_back();
		std::int64_t total = 0;
		std::int64_t value = 0;
		for (int column = 0; row >> value; ++column)
			if (cpu < 0 || column == column_of_cpu)
				total += value;
		result.values_[name] = total;
	}
	return result;
}

std::int64_t Counters::operator[](const std::string &name) const
{
	const auto found = values_.find(name);
	return found == values_.end() ? -1 : found->second;
}

std::int64_t Counters::sum(const char *prefix) const
{
	std::int64_t total = 0;
	for (const auto &[name, value] : values_)
		if (name.rfind(prefix, 0) == 0)
			total += value;
	return total;
}

Counters Counters::operator-(const Counters &before) const
{
	Counters result;
	for (const auto &[name, value] : values_)
		result.values_[name] = value - (before.missing(name) ? 0 : before[name]);
	return result;
}

Counters Counters::operator+(const Counters &other) const
{
	Counters result = *this;
	for (const auto &[name, value] : other.values_)
		result.values_[name] += value;
	return result;
}

std::ostream &operator<<(std::ostream &out, const Counters &counters)
{
	const char *separator = "";
	for (const char *name : counter_names)
		if (counters[name] != 0) {
			out << separator << name << ' ' << counters[name];
			separator = ", ";
		}
	if (*separator == '\0')
		out << (counters.empty() ? "no counters" : "all counters 0");
	return out;
}

} // namespace slice_test
