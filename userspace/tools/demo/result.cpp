// SPDX-License-Identifier: MIT
#include "demo/result.hpp"

namespace slice_ext::tool
{

namespace
{

// What one phase could not see, the sum does not know either.
template <typename T> void add(std::optional<T> &sum, const std::optional<T> &more)
{
	if (sum && more)
		*sum += *more;
	else
		sum.reset();
}

} // namespace

ArmResult &ArmResult::operator+=(const ArmResult &more)
{
	seconds += more.seconds;
	sections += more.sections;
	exclusive = exclusive && more.exclusive;
	wait.merge(more.wait);
	hold.merge(more.hold);
	add(switches, more.switches);
	outcomes += more.outcomes;
	add(own_counters, more.own_counters);
	add(machine_counters, more.machine_counters);
	rt_latency.merge(more.rt_latency);
	return *this;
}

} // namespace slice_ext::tool
