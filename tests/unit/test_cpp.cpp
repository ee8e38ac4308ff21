// SPDX-License-Identifier: MIT
// slice_ext.hpp: scopes, and locks whose sections are extended.
#include "simulated.hpp"

#include <slice_ext/slice_ext.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <thread>

namespace
{

class Cpp : public testing::Test
{
      protected:
	Cpp()
	{
		kernel.libc_registers(33, 33);
		EXPECT_EQ(slice_ext::enable(), SLICE_EXT_AVAILABLE);
		kernel.calls.clear();
	}

	bool requested() const
	{
		return kernel.libc_memory.request == 1;
	}

	Simulated kernel;
};

TEST_F(Cpp, SectionLastsAsLongAsItsScope)
{
	{
		const slice_ext::section section;
		EXPECT_TRUE(requested());
		{
			const slice_ext::section inner;
		}
		EXPECT_TRUE(requested());
	}
	EXPECT_FALSE(requested());
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

TEST_F(Cpp, SectionLeftEarlyIsLeftOnce)
{
	slice_ext_enter();
	{
		slice_ext::section section;
		EXPECT_EQ(section.leave(), SLICE_EXT_NESTED);
		EXPECT_EQ(section.leave(), SLICE_EXT_INACTIVE);
	}
	EXPECT_TRUE(requested());
	EXPECT_EQ(slice_ext_leave(), SLICE_EXT_UNDISTURBED);
}

int return_from_section()
{
	const slice_ext::section section;
	return slice_ext_self.ctrl[0];
}

TEST_F(Cpp, SectionEndsOnReturn)
{
	EXPECT_EQ(return_from_section(), 1);
	EXPECT_FALSE(requested());
}

TEST_F(Cpp, SectionEndsOnExceptionAndYields)
{
	try {
		const slice_ext::section section;
		ASSERT_TRUE(kernel.grant());
		throw std::runtime_error("out of the section");
	} catch (const std::runtime_error &) {
	}
	EXPECT_EQ(kernel.yields_in_grant, 1u);
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

// Notes whether the request stood when it was called.
struct Probe {
	enum class Try { free, busy, throws };

	explicit Probe(Try behaviour = Try::free) : behaviour(behaviour)
	{
	}

	static bool asked()
	{
		return slice_ext_self.ctrl[0] == 1;
	}
	void lock()
	{
		asked_in_lock = asked();
		locks++;
		if (lock_throws)
			throw std::runtime_error("lock");
	}
	bool try_lock()
	{
		asked_in_try_lock = asked();
		if (behaviour == Try::throws)
			throw std::runtime_error("try_lock");
		return behaviour == Try::free;
	}
	void unlock()
	{
		asked_in_unlock = asked();
		unlocks++;
	}

	Try behaviour;
	bool lock_throws = false;
	unsigned locks = 0;
	unsigned unlocks = 0;
	bool asked_in_lock = false;
	bool asked_in_try_lock = false;
	bool asked_in_unlock = false;
};

TEST_F(Cpp, FreeLockIsTakenAndReleasedInsideTheSection)
{
	Probe probe;
	slice_ext::extended_lock<Probe &> lock(probe);
	{
		const std::lock_guard<slice_ext::extended_lock<Probe &>> guard(lock);
		EXPECT_TRUE(requested());
		EXPECT_EQ(slice_ext_self.depth, 1u);
	}
	EXPECT_TRUE(probe.asked_in_try_lock);
	EXPECT_TRUE(probe.asked_in_unlock);
	EXPECT_EQ(probe.locks, 0u);
	EXPECT_EQ(probe.unlocks, 1u);
	EXPECT_FALSE(requested());
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

TEST_F(Cpp, WaiterAsksForNothing)
{
	Probe probe(Probe::Try::busy);
	slice_ext::extended_lock<Probe &> lock(probe);
	{
		const std::lock_guard<slice_ext::extended_lock<Probe &>> guard(lock);
		EXPECT_TRUE(requested());
	}
	EXPECT_EQ(probe.locks, 1u);
	EXPECT_FALSE(probe.asked_in_lock);
	EXPECT_TRUE(probe.asked_in_unlock);
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

TEST_F(Cpp, UnlockYieldsAfterTheLockIsFree)
{
	Probe probe;
	slice_ext::extended_lock<Probe &> lock(probe);
	lock.lock();
	ASSERT_TRUE(kernel.grant());
	lock.unlock();
	EXPECT_EQ(probe.unlocks, 1u);
	EXPECT_EQ(kernel.yields_in_grant, 1u);
}

TEST_F(Cpp, FailedTryLockWithdrawsTheRequest)
{
	Probe probe(Probe::Try::busy);
	slice_ext::extended_lock<Probe &> lock(probe);
	const std::unique_lock<slice_ext::extended_lock<Probe &>> guard(lock, std::try_to_lock);
	EXPECT_FALSE(guard.owns_lock());
	EXPECT_FALSE(requested());
	EXPECT_EQ(slice_ext_self.depth, 0u);
}

TEST_F(Cpp, FailedTryLockInsideASectionKeepsIt)
{
	Probe probe(Probe::Try::busy);
	slice_ext::extended_lock<Probe &> lock(probe);
	const slice_ext::section section;
	EXPECT_FALSE(lock.try_lock());
	EXPECT_TRUE(requested());
}

TEST_F(Cpp, LockThatThrowsLeavesNoSection)
{
	Probe probe(Probe::Try::busy);
	probe.lock_throws = true;
	slice_ext::extended_lock<Probe &> lock(probe);
	EXPECT_THROW(lock.lock(), std::runtime_error);
	EXPECT_EQ(slice_ext_self.depth, 0u);

	probe.behaviour = Probe::Try::throws;
	EXPECT_THROW((void)lock.try_lock(), std::runtime_error);
	EXPECT_EQ(slice_ext_self.depth, 0u);
	EXPECT_FALSE(requested());
}

TEST_F(Cpp, UniqueLockUnlocksEarly)
{
	slice_ext::extended_lock<std::mutex> lock;
	std::unique_lock<slice_ext::extended_lock<std::mutex>> guard(lock);
	EXPECT_TRUE(requested());
	guard.unlock();
	EXPECT_FALSE(requested());
	guard.lock();
	EXPECT_TRUE(requested());
}

TEST_F(Cpp, ScopedLockOfTwo)
{
	slice_ext::extended_lock<std::mutex> a, b;
	{
		const std::scoped_lock<slice_ext::extended_lock<std::mutex>,
		                       slice_ext::extended_lock<std::mutex>>
			guard(a, b);
		EXPECT_EQ(slice_ext_self.depth, 2u);
		EXPECT_TRUE(requested());
	}
	EXPECT_EQ(slice_ext_self.depth, 0u);
	EXPECT_FALSE(requested());
}

TEST_F(Cpp, OwnedMutexExcludes)
{
	slice_ext::extended_lock<std::mutex> lock;
	unsigned long count = 0;
	const auto work = [&] {
		for (int i = 0; i < 20000; i++) {
			const std::lock_guard<slice_ext::extended_lock<std::mutex>> guard(lock);
			count++;
		}
	};
	std::thread other(work);
	work();
	other.join();
	EXPECT_EQ(count, 40000u);
}

TEST_F(Cpp, ThreadScopeDisablesWhatItEnabled)
{
	slice_ext::disable();
	{
		const slice_ext::thread_scope scope;
		EXPECT_TRUE(scope);
		EXPECT_EQ(scope.why(), SLICE_EXT_AVAILABLE);
		EXPECT_TRUE(slice_ext::enabled());
		{
			const slice_ext::thread_scope inner;
			EXPECT_TRUE(inner);
		}
		EXPECT_TRUE(slice_ext::enabled());
	}
	EXPECT_FALSE(slice_ext::enabled());
}

TEST_F(Cpp, ThreadScopeSaysWhyNot)
{
	slice_ext::disable();
	kernel.deny_prctl = EPERM;
	const slice_ext::thread_scope scope;
	EXPECT_FALSE(scope);
	EXPECT_EQ(scope.why(), SLICE_EXT_BLOCKED_PRCTL);
	EXPECT_EQ(slice_ext::query().reason, SLICE_EXT_BLOCKED_PRCTL);
}

} // namespace
