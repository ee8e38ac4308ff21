// SPDX-License-Identifier: MIT
#include "demo/options.hpp"

#include <algorithm>
#include <stdexcept>

#include "cpu_list.hpp"
#include "text_file.hpp"

namespace slice_ext::tool
{

std::pair<unsigned, unsigned> parse_hold(std::string_view text)
{
	const std::size_t dash = text.find('-', 1);
	const auto low = parse_integer(text.substr(0, dash));
	const auto high =
		dash == std::string_view::npos ? low : parse_integer(text.substr(dash + 1));
	if (!low || !high)
		throw std::invalid_argument("'" + std::string(text) +
		                            "' is not a time; write it like 20 or 15-50");
	if (*low < 1 || *high > DemoOptions::kMaxHoldUs || *low > *high)
		throw std::invalid_argument("the lock can be held from 1 to " +
		                            std::to_string(DemoOptions::kMaxHoldUs) + " us, not " +
		                            std::string(text));
	return {static_cast<unsigned>(*low), static_cast<unsigned>(*high)};
}

std::vector<int> choose_cpus(std::string_view list, const std::vector<int> &allowed)
{
	if (list.empty())
		return allowed;
	const std::vector<int> cpus = parse_cpu_list(list);
	for (const int cpu : cpus)
		if (!std::binary_search(allowed.begin(), allowed.end(), cpu))
			throw std::invalid_argument("CPU " + std::to_string(cpu) +
			                            " is not one this process may run on (" +
			                            format_cpu_list(allowed) + ")");
	return cpus;
}

} // namespace slice_ext::tool
