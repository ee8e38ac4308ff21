// SPDX-License-Identifier: MIT
#include "edge.hpp"

#include <csignal>
#include <utility>

namespace slice_test
{

namespace
{

std::function<void()> at_trap;
struct sigaction before_trap;

} // namespace

TrapHandler::TrapHandler(std::function<void()> function, int flags)
{
	at_trap = std::move(function);
	struct sigaction action = {};
	action.sa_handler = [](int) { at_trap(); };
	action.sa_flags = flags;
	sigaction(SIGTRAP, &action, &before_trap);
}

TrapHandler::~TrapHandler()
{
	sigaction(SIGTRAP, &before_trap, nullptr);
	at_trap = nullptr;
}

Outcome checked_child(const std::function<void()> &function)
{
	ticks_per_ns();
	return in_child([&function] {
		pin(test_cpu());
		function();
		return testing::Test::HasFailure() ? 1 : 0;
	});
}

void Edge::SetUp()
{
	prepare("100");
	if (IsSkipped() || HasFatalFailure())
		return;
	ticks_per_ns();
	machine_before_ = Counters::of_machine();
	other_ = std::make_unique<Periodic>(Periodic::Setup{});
	ASSERT_EQ(other_->error(), 0);
}

void Edge::TearDown()
{
	if (!other_)
		return;
	other_.reset();
	const Counters all = machine();
	report("all threads: granted", all["granted"], all);
	if (IsSkipped())
		return;
	EXPECT_GT(all["granted"], 0) << "without a grant the test says nothing";
	EXPECT_EQ(all["requests"], all["granted"] + all.denied());
	EXPECT_EQ(all["granted"], all.ended());
}

void Edge::expect_about(const Counters &counters, const char *name, std::int64_t count)
{
	if (deterministic()) {
		EXPECT_NEAR(static_cast<double>(counters[name]), static_cast<double>(count),
		            static_cast<double>((count + 3) / 4))
			<< name << ": " << counters;
	} else {
		EXPECT_GE(counters[name], at_least(count)) << name << ": " << counters;
	}
}

} // namespace slice_test
