// SPDX-License-Identifier: MIT
#include "contest.hpp"

#include "requester.hpp"

#include <cstdio>
#include <sstream>

namespace slice_test
{

Contest contest(Demand demand, const Periodic::Setup &setup, std::int64_t duration,
                const Policy &own)
{
	Contest result;
	constexpr std::size_t most_grants = 10'000;
	result.used.reserve(most_grants);
	result.away.reserve(most_grants);
	Periodic other(setup);
	result.error = other.error();
	in_thread(
		[&] {
			RseqArea area;
			if (!result.error)
				result.error = opt_in(area);
			if (!result.error)
				result.error = apply(own);
			if (result.error)
				return;
			const std::uint8_t request = demand == Demand::always ? 1 : 0;
			const Counters before = Counters::of_this_thread();
			const std::uint64_t end = ticks() + to_ticks(duration);
			while (ticks() < end) {
				area.set_request(request);
				if (!area.granted())
					continue;
				const Stay stay = until_ended(area, ticks(), to_ticks(second));
				if (result.used.size() < most_grants) {
					result.used.push_back(stay.used);
					result.away.push_back(stay.away);
				}
			}
			area.set_request(0);
			result.counters = Counters::of_this_thread() - before;
		},
		setup.cpu);
	other.stop();
	result.lateness = other.lateness();
	return result;
}

void describe(const char *what, const Contest &result)
{
	std::ostringstream counters;
	counters << result.counters;
	std::printf(
		"%-28s late: median %6.2f worst %6.2f us (%zu), used: median %6.2f us (%zu); %s\n",
		what, static_cast<double>(result.median_lateness()) / us,
		static_cast<double>(result.worst_lateness()) / us, result.lateness.size(),
		static_cast<double>(median(result.used)) / us, result.used.size(),
		counters.str().c_str());
}

} // namespace slice_test
