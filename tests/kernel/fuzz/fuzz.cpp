// SPDX-License-Identifier: MIT
//
// Random sequences of everything a thread can do to the interface, and an oracle that knows
// after each step what the kernel may have answered and what the memory may hold.
//
// Environment:
//   SLICE_EXT_SEED   of the choices made (default 1)
//   SLICE_EXT_STEPS  how many (default 2500)
// In a deterministic guest both give the same run again; a failure names them.
#include "child.hpp"
#include "dice.hpp"
#include "needs.hpp"
#include "oracle.hpp"
#include "periodic.hpp"
#include "requester.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test::fuzz
{
namespace
{

constexpr std::uint64_t steps_per_life = 60;
constexpr const char *exec_mode = "fuzz-after-exec";

template <typename Type> Type *shared_memory()
{
	void *memory = mmap(nullptr, sizeof(Type), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		throw std::bad_alloc();
	return new (memory) Type;
}

/** What processes tell each other. One runs at a time. */
struct Journal {
	static constexpr std::size_t remembered = 12;

	std::uint64_t step = 0;
	char steps[remembered][160]{};
	char violation[400]{};
	/** Of all threads that ended. */
	std::array<std::int64_t, counter_names.size()> counters{};
	/** Times the two other threads of the CPU ran. */
	std::atomic<std::uint64_t> runs{0};

	void note(const char *format, ...) __attribute__((format(printf, 2, 3)))
	{
		va_list arguments;
		va_start(arguments, format);
		std::vsnprintf(steps[step++ % remembered], sizeof steps[0], format, arguments);
		va_end(arguments);
	}
	std::string last_steps() const
	{
		std::string text;
		for (std::uint64_t i = step > remembered ? step - remembered : 0; i < step; ++i)
			text += "\n  step " + std::to_string(i + 1) + ": " + steps[i % remembered];
		return text;
	}
};

/** A thread that takes the CPU every now and then, which the journal tells. */
class Neighbour
{
      public:
	Neighbour(Journal &journal, const Policy &policy, std::int64_t period, int cpu)
	{
		thread_ = std::thread([this, &journal, policy, period, cpu] {
			pin(cpu);
			apply(policy);
			for (std::int64_t next = now_ns(); !stop_;) {
				next = std::max(next + period, now_ns());
				const timespec at{static_cast<time_t>(next / second),
				                  static_cast<long>(next % second)};
				clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
				++journal.runs;
			}
		});
	}
	~Neighbour()
	{
		stop_ = true;
		thread_.join();
	}
	Neighbour(const Neighbour &) = delete;
	Neighbour &operator=(const Neighbour &) = delete;

      private:
	std::atomic<bool> stop_{false};
	std::thread thread_;
};

/** What a handler does, and has done. */
struct Handler {
	enum Manner { nothing, withdraw, ask, yield, manners };

	Manner manner = nothing;
	std::uint8_t *request = nullptr;
	int calls = 0;
	long answer = 0;
};
thread_local Handler handler;

void on_signal(int)
{
	++handler.calls;
	RseqView word(handler.request - off_request);
	if (handler.manner == Handler::withdraw || handler.manner == Handler::yield)
		word.set_request(0);
	else if (handler.manner == Handler::ask)
		word.set_request(1);
	if (handler.manner == Handler::yield)
		handler.answer = sys_yield();
}

/** A program that has just been started: whether it is opted in, and can opt in. */
int state_as_exit_code(long get, long set)
{
	const int set_code = set == 0 ? 0 : set == -ENXIO ? 1 : set == -EINVAL ? 2 : 3;
	return static_cast<int>(get < 0 ? 2 : get) + 3 * set_code;
}

int after_exec()
{
	const int get = get_enabled();
	return state_as_exit_code(get, sys_prctl(pr_set, pr_enable));
}

const ChildMode after_exec_mode(exec_mode, after_exec);

struct Violation {
	std::string text;
};

/** One thread, its memory, and the oracle that watches it. */
class Fuzzer
{
      public:
	Fuzzer(Journal &journal, Offer offer, const Promises &promises, std::uint64_t seed)
		: Fuzzer(journal, offer, seed, new_arena())
	{
		oracle_ = std::make_unique<Oracle>(offer, promises, arena_,
		                                   static_cast<unsigned>(test_cpu()));
	}
	Fuzzer(const Fuzzer &) = delete;
	Fuzzer &operator=(const Fuzzer &) = delete;

	/** Throws Violation. */
	void run(std::uint64_t steps)
	{
		while (steps--)
			step();
		settle();
	}

      private:
	struct Step {
		unsigned weight;
		void (Fuzzer::*what)();
	};

	Fuzzer(Journal &journal, Offer offer, std::uint64_t seed, std::uint8_t *arena)
		: journal_(journal), offer_(offer), dice_(seed), arena_(arena)
	{
		handler = {};
		handler.request = arena;
	}

	/** For as long as the process lives: where the oracle is wrong nobody knows whether the
	 * kernel still writes there. */
	static std::uint8_t *new_arena()
	{
		void *arena = mmap(nullptr, Oracle::arena_size, PROT_READ | PROT_WRITE,
		                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (arena == MAP_FAILED)
			throw std::bad_alloc();
		std::fill_n(static_cast<std::uint8_t *>(arena), Oracle::arena_size, 0xa5);
		return static_cast<std::uint8_t *>(arena);
	}

	void step();
	void check();
	void settle();
	template <typename Answer> void require(Answer is, Answer should)
	{
		if (is != should)
			throw Violation{"answered " + std::to_string(is) + ", should have " +
			                std::to_string(should)};
	}

	/** The area, or where one could be. */
	std::size_t some_base()
	{
		constexpr std::array<std::size_t, 3> bases{0, 512, 2048};
		return oracle_->registered() && !dice_.one_in(8)
		               ? oracle_->area() - reinterpret_cast<std::uintptr_t>(arena_)
		               : dice_.pick(bases);
	}
	RseqView at(std::size_t base)
	{
		return RseqView(arena_ + base);
	}
	void store_word(std::size_t base, std::uint32_t word);
	void watch_word(std::size_t base, std::uint32_t word, std::int64_t at_most);
	void call_rseq(std::uintptr_t address, std::uint32_t length, int flags,
	               std::uint32_t signature);
	void call_yield();
	void call_prctl(unsigned long operation, unsigned long argument, unsigned long arg4 = 0,
	                unsigned long arg5 = 0);
	void in_forked_child(const char *what, const std::function<void()> &function,
	                     bool may_be_killed = false);

	// Each is a step.
	void enroll();
	void enroll_wrongly();
	void withdraw();
	void withdraw_wrongly();
	void opt();
	void prctl_wrongly();
	void ask();
	void section();
	void garbage_word();
	void garbage_flags();
	void yield();
	void other_syscall();
	void sleep();
	void spin_undisturbed();
	void signal_raised();
	void signal_from_timer();
	void set_policy();
	void set_sysctl();
	void account();
	void fork_child();
	void protect();
	void thread();
	void exec();

	static const std::array<Step, 23> all_steps;

	Journal &journal_;
	Offer offer_;
	Dice dice_;
	std::uint8_t *arena_;
	std::unique_ptr<Oracle> oracle_;
	bool nested_ = false;
	bool sysctl_on_ = true;
	bool policy_fair_ = true;
};

const std::array<Fuzzer::Step, 23> Fuzzer::all_steps{{
	{8, &Fuzzer::enroll},        {4, &Fuzzer::enroll_wrongly},
	{1, &Fuzzer::withdraw},      {3, &Fuzzer::withdraw_wrongly},
	{8, &Fuzzer::opt},           {4, &Fuzzer::prctl_wrongly},
	{10, &Fuzzer::ask},          {16, &Fuzzer::section},
	{5, &Fuzzer::garbage_word},  {3, &Fuzzer::garbage_flags},
	{6, &Fuzzer::yield},         {6, &Fuzzer::other_syscall},
	{2, &Fuzzer::sleep},         {10, &Fuzzer::spin_undisturbed},
	{4, &Fuzzer::signal_raised}, {3, &Fuzzer::signal_from_timer},
	{2, &Fuzzer::set_policy},    {2, &Fuzzer::set_sysctl},
	{4, &Fuzzer::account},       {1, &Fuzzer::fork_child},
	{1, &Fuzzer::protect},       {1, &Fuzzer::thread},
	{1, &Fuzzer::exec},
}};

void Fuzzer::step()
{
	static const unsigned all = [] {
		unsigned sum = 0;
		for (const Step &one : all_steps)
			sum += one.weight;
		return sum;
	}();
	std::uint64_t draw = dice_.below(all);
	const Step *chosen = all_steps.data();
	while (draw >= chosen->weight)
		draw -= chosen++->weight;
	(this->*chosen->what)();
	check();
}

void Fuzzer::check()
{
	if (const std::string wrong = oracle_->see_arena(); !wrong.empty())
		throw Violation{wrong};
}

/** The end of a thread. */
void Fuzzer::settle()
{
	account();
	if (offer_ == Offer::all) {
		const Counters counters = Counters::of_this_thread();
		for (std::size_t i = 0; i < counter_names.size(); ++i)
			journal_.counters[i] += counters[counter_names[i]];
	}
	if (oracle_->registered())
		sys_rseq(reinterpret_cast<void *>(oracle_->area()), oracle_->length(),
		         rseq_unregister, oracle_->signature());
}

void Fuzzer::call_rseq(std::uintptr_t address, std::uint32_t length, int flags,
                       std::uint32_t signature)
{
	journal_.note(
		"rseq(%s%+ld, %u, %#x, %#x)", oracle_->registered() ? "area" : "arena",
		static_cast<long>(address - (oracle_->registered()
	                                             ? oracle_->area()
	                                             : reinterpret_cast<std::uintptr_t>(arena_))),
		length, flags, signature);
	const int should = oracle_->rseq(address, length, flags, signature);
	require(sys_rseq(reinterpret_cast<void *>(address), length, flags, signature), should);
}

void Fuzzer::call_prctl(unsigned long operation, unsigned long argument, unsigned long arg4,
                        unsigned long arg5)
{
	journal_.note("prctl(79, %#lx, %#lx, %lu, %lu)", operation, argument, arg4, arg5);
	const long should = oracle_->prctl(operation, argument, arg4, arg5);
	require<long>(sys_prctl(operation, argument, arg4, arg5), should);
}

void Fuzzer::call_yield()
{
	const long answer = sys_yield();
	if (!oracle_->yield(answer))
		throw Violation{"471 answered " + std::to_string(answer)};
}

void Fuzzer::enroll()
{
	constexpr std::array<std::uint32_t, 6> lengths{32, 32, 33, 64, 64, 128};
	constexpr std::array<int, 4> flags{0, 0, 0, rseq_default_on};
	if (oracle_->registered() && dice_.one_in(4))
		withdraw();
	const std::size_t base = some_base() + (dice_.one_in(4) ? 64 : 0);
	call_rseq(reinterpret_cast<std::uintptr_t>(arena_) + base, dice_.pick(lengths),
	          dice_.pick(flags), rseq_signature);
}

void Fuzzer::enroll_wrongly()
{
	constexpr std::array<std::uint32_t, 8> lengths{0, 16, 27, 31, 32, 33, 48, 64};
	constexpr std::array<std::uintptr_t, 6> offsets{0, 1, 8, 16, 32, 96};
	const std::array<int, 6> flags{0,       rseq_default_on,
	                               1 << 2,  rseq_default_on | 1 << 3,
	                               1 << 31, static_cast<int>(dice_.next()) & ~rseq_unregister};
	const std::array<std::uintptr_t, 3> elsewhere{0xffff'8000'0000'0000UL, 0x1000, 0};
	std::uintptr_t address =
		reinterpret_cast<std::uintptr_t>(arena_) + some_base() + dice_.pick(offsets);
	if (dice_.one_in(4))
		address = dice_.pick(elsewhere);
	const std::uint32_t signature = rseq_signature + (dice_.one_in(4) ? 1 : 0);
	call_rseq(address, dice_.pick(lengths), dice_.pick(flags), signature);
}

void Fuzzer::withdraw()
{
	call_rseq(oracle_->registered() ? oracle_->area()
	                                : reinterpret_cast<std::uintptr_t>(arena_),
	          oracle_->length(), rseq_unregister, oracle_->signature());
}

void Fuzzer::withdraw_wrongly()
{
	constexpr std::array<std::uint32_t, 3> lengths{32, 33, 64};
	constexpr std::array<int, 3> flags{rseq_unregister, rseq_unregister | rseq_default_on,
	                                   rseq_unregister | 1 << 4};
	call_rseq(reinterpret_cast<std::uintptr_t>(arena_) + some_base(), dice_.pick(lengths),
	          dice_.pick(flags), oracle_->signature() + (dice_.one_in(2) ? 1 : 0));
}

void Fuzzer::opt()
{
	call_prctl(pr_set, dice_.one_in(4) ? 0 : pr_enable);
	call_prctl(pr_get, 0);
}

void Fuzzer::prctl_wrongly()
{
	constexpr std::array<unsigned long, 8> operations{
		0, pr_get, pr_set, pr_set, pr_set, 3, 1UL << 32 | pr_set, ~0UL};
	constexpr std::array<unsigned long, 6> arguments{
		0, pr_enable, 2, 3, 1UL << 32 | pr_enable, ~0UL};
	call_prctl(dice_.pick(operations), dice_.pick(arguments), dice_.one_in(8) ? 1 : 0,
	           dice_.one_in(8) ? 1UL << 40 : 0);
}

void Fuzzer::store_word(std::size_t base, std::uint32_t word)
{
	// The oracle first: what it is told late it takes for the kernel's doing.
	oracle_->store32(base + off_slice_ctrl, word);
	at(base).set_u32(off_slice_ctrl, word);
}

void Fuzzer::ask()
{
	const std::size_t base = some_base();
	const std::uint8_t request = dice_.one_in(4) ? 0 : 1;
	journal_.note("request = %u at %zu", request, base);
	oracle_->store8(base + off_request, request);
	at(base).set_request(request);
}

void Fuzzer::garbage_word()
{
	const std::array<std::uint32_t, 5> words{ctrl_granted, 0x0101, 0xff00, 0xffff'0000U,
	                                         static_cast<std::uint32_t>(dice_.next())};
	const std::size_t base = some_base();
	const std::uint32_t word = dice_.pick(words);
	journal_.note("word = %#x at %zu", word, base);
	store_word(base, word);
}

void Fuzzer::garbage_flags()
{
	const std::array<std::uint32_t, 4> values{0, flag_enabled, flag_available | flag_enabled,
	                                          static_cast<std::uint32_t>(dice_.next())};
	const std::size_t base = some_base();
	const std::uint32_t value = dice_.pick(values);
	journal_.note("flags = %#x at %zu", value, base);
	oracle_->store32(base + off_flags, value);
	at(base).set_u32(off_flags, value);
}

void Fuzzer::yield()
{
	journal_.note("471");
	call_yield();
}

void Fuzzer::other_syscall()
{
	const std::uint64_t which = dice_.below(3);
	journal_.note("system call %zu", static_cast<std::size_t>(which));
	oracle_->syscall();
	if (which == 0)
		syscall(SYS_getppid);
	else if (which == 1)
		sched_yield();
	else
		syscall(600);
}

void Fuzzer::sleep()
{
	journal_.note("sleep");
	const timespec moment{0, 50 * us};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, nullptr);
	oracle_->syscall();
	oracle_->switched_out();
}

/** Looks at the word while others take the CPU, and makes no system call. */
void Fuzzer::spin_undisturbed()
{
	const std::int64_t length = static_cast<std::int64_t>(dice_.below(1500 * us));
	journal_.note("spin for %ld us", static_cast<long>(length / us));
	const std::uint64_t end = ticks() + to_ticks(length);
	const RseqView area(reinterpret_cast<void *>(oracle_->area()));
	const std::uint64_t runs = journal_.runs;
	while (ticks() < end) {
		// In this order: the word is zero once another thread has run.
		const bool switched = journal_.runs != runs;
		if (!oracle_->registered())
			continue;
		if (switched)
			oracle_->switched_out();
		const std::uint32_t word = area.ctrl();
		if (!oracle_->see_word(word))
			throw Violation{"the word became " + std::to_string(word)};
	}
}

/** Until the word is no longer @p word. */
void Fuzzer::watch_word(std::size_t base, std::uint32_t word, std::int64_t at_most)
{
	const std::uint64_t end = ticks() + to_ticks(at_most);
	while (ticks() < end && at(base).ctrl() == word) {
	}
	const std::uint32_t now = at(base).ctrl();
	if (!oracle_->see_word(now))
		throw Violation{"the word became " + std::to_string(now)};
}

/** As it should be: ask, wait for the grant, leave; in time or not. */
void Fuzzer::section()
{
	if (!oracle_->registered())
		return ask();
	const std::size_t base = oracle_->area() - reinterpret_cast<std::uintptr_t>(arena_);
	journal_.note("section");
	store_word(base, ctrl_requested);
	watch_word(base, ctrl_requested, 1500 * us);
	if (dice_.one_in(2))
		watch_word(base, ctrl_granted, 300 * us);
	oracle_->store8(base + off_request, 0);
	at(base).set_request(0);
	if (at(base).granted())
		call_yield();
}

void Fuzzer::signal_raised()
{
	const std::size_t base = some_base();
	handler.manner = static_cast<Handler::Manner>(dice_.below(Handler::manners));
	handler.request = arena_ + base + off_request;
	journal_.note("signal, handler %d at %zu", handler.manner, base);
	oracle_->syscall();
	const int calls = handler.calls;
	const std::uint8_t request = handler.manner == Handler::ask ? 1 : 0;
	if (handler.manner != Handler::nothing)
		oracle_->store8(base + off_request, request);
	raise(SIGUSR1);
	require(handler.calls, calls + 1);
	if (handler.manner == Handler::yield && !oracle_->yield(handler.answer))
		throw Violation{"471 in the handler answered " + std::to_string(handler.answer)};
	oracle_->syscall();
}

/** A signal that meets user code, and perhaps a grant. The handler returns by a system call. */
void Fuzzer::signal_from_timer()
{
	// It is the process that gets it, and another thread may be the one to take it.
	// And on PREEMPT_RT the timer waits for an ordinary thread.
	if (thread_id() != getpid() || !policy_fair_)
		return;
	handler.manner = Handler::nothing;
	journal_.note("signal from a timer");
	const itimerval once{{0, 0}, {0, static_cast<suseconds_t>(1 + dice_.below(1000))}};
	const int calls = handler.calls;
	oracle_->syscall();
	setitimer(ITIMER_REAL, &once, nullptr);
	const std::uint64_t late = ticks() + to_ticks(second);
	while (__atomic_load_n(&handler.calls, __ATOMIC_RELAXED) == calls && ticks() < late) {
	}
	require(handler.calls, calls + 1);
	oracle_->syscall();
}

void Fuzzer::set_policy()
{
	const std::uint64_t which = dice_.below(5);
	const Policy policy = which == 0   ? fifo(5)
	                      : which == 1 ? idle_policy()
	                      : which == 2 ? batch()
	                                   : fair();
	journal_.note("policy %d", policy.policy);
	oracle_->grants_are_possible(sysctl_on_, policy_fair_ || which >= 2);
	oracle_->syscall();
	require(apply(policy), 0);
	policy_fair_ = which >= 2;
	oracle_->grants_are_possible(sysctl_on_, policy_fair_);
}

void Fuzzer::set_sysctl()
{
	if (nested_ || offer_ != Offer::all)
		return;
	constexpr std::array values{"0", "1", "30", "100", "100"};
	const std::string value = dice_.pick(values);
	journal_.note("sysctl %s", value.c_str());
	const bool on = value != "0";
	oracle_->syscall();
	require(write_file(path_sysctl, value), 0);
	sysctl_on_ = on;
	oracle_->grants_are_possible(sysctl_on_, policy_fair_);
}

void Fuzzer::account()
{
	if (offer_ != Offer::all)
		return;
	journal_.note("counters");
	oracle_->syscall();
	const Counters counters = Counters::of_this_thread();
	if (const std::string wrong = oracle_->see_counters(counters); !wrong.empty()) {
		std::ostringstream text;
		text << wrong << ": " << counters;
		throw Violation{text.str()};
	}
}

void Fuzzer::in_forked_child(const char *what, const std::function<void()> &function,
                             bool may_be_killed)
{
	journal_.note("%s", what);
	oracle_->syscall();
	const pid_t pid = fork();
	if (pid == 0) {
		try {
			*oracle_ = oracle_->after_fork();
			nested_ = true;
			call_prctl(pr_get, 0);
			function();
			_exit(EXIT_SUCCESS);
		} catch (const Violation &violation) {
			std::snprintf(journal_.violation, sizeof journal_.violation, "%s",
			              violation.text.c_str());
			_exit(EXIT_FAILURE);
		}
	}
	int status = 0;
	require(waitpid(pid, &status, 0), pid);
	if (may_be_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
		status = 0;
	if (status != 0)
		throw Violation{std::string(what) + ": " +
		                (WIFSIGNALED(status)
		                         ? "killed by signal " + std::to_string(WTERMSIG(status))
		                         : journal_.violation)};
	oracle_->syscall();
	oracle_->switched_out();
}

void Fuzzer::fork_child()
{
	if (nested_)
		return;
	const std::uint64_t seed = dice_.next();
	in_forked_child("fork", [this, seed] {
		dice_ = Dice(seed);
		run(seed % 8);
	});
}

// Who is switched out while the area cannot be written is killed, which is the base kernel's
// rule and says nothing here.
void Fuzzer::protect()
{
	if (nested_ || offer_ != Offer::all)
		return;
	in_forked_child(
		"fork and protect",
		[this] {
			oracle_->syscall();
			mprotect(arena_, Oracle::arena_size, PROT_READ);
			oracle_->protect(false);
			call_prctl(pr_set, 1);
			call_prctl(pr_set, 0);
			withdraw();
			enroll();
			oracle_->syscall();
			mprotect(arena_, Oracle::arena_size, PROT_READ | PROT_WRITE);
			oracle_->protect(true);
			check();
			run(4);
		},
		true);
}

void Fuzzer::thread()
{
	if (nested_)
		return;
	journal_.note("thread");
	oracle_->syscall();
	const std::uint64_t seed = dice_.next();
	std::string violation;
	std::thread other([&] {
		Fuzzer fuzzer(journal_, offer_, seed, new_arena());
		fuzzer.oracle_ = std::make_unique<Oracle>(oracle_->after_clone(fuzzer.arena_));
		fuzzer.nested_ = true;
		fuzzer.sysctl_on_ = sysctl_on_;
		fuzzer.policy_fair_ = policy_fair_;
		try {
			fuzzer.call_prctl(pr_get, 0);
			fuzzer.run(seed % 12);
		} catch (const Violation &one) {
			violation = one.text;
		}
	});
	other.join();
	if (!violation.empty())
		throw Violation{violation};
	oracle_->syscall();
	oracle_->switched_out();
}

void Fuzzer::exec()
{
	if (nested_)
		return;
	journal_.note("fork and exec");
	oracle_->syscall();
	Oracle other = oracle_->after_fork().after_exec();
	const long get = other.prctl(pr_get, 0);
	const long set = other.prctl(pr_set, pr_enable);
	const Outcome outcome = exec_self(exec_mode, false);
	require(outcome, state_as_exit_code(get, set));
	oracle_->syscall();
	oracle_->switched_out();
}

struct Result {
	std::string violation;
	std::uint64_t steps = 0;
	/** Of all threads, in the order of counter_names. */
	std::array<std::int64_t, counter_names.size()> counters{};

	std::int64_t operator[](const std::string &name) const
	{
		const auto *found = std::find(counter_names.begin(), counter_names.end(), name);
		return counters.at(static_cast<std::size_t>(found - counter_names.begin()));
	}
};

/** Life after life, each in a process of its own, until something is wrong. */
Result fuzz(Offer offer, const Promises &promises, std::uint64_t seed, std::uint64_t steps)
{
	auto *journal = shared_memory<Journal>();
	Result result;
	{
		Neighbour ordinary(*journal, eager(), 397 * us, test_cpu());
		Neighbour urgent(*journal, fifo(50), 997 * us, test_cpu());
		for (std::uint64_t life = 0; journal->step < steps && result.violation.empty();
		     ++life) {
			if (offer == Offer::all)
				write_file(path_sysctl, "100");
			const Outcome outcome = in_child([&] {
				pin(test_cpu());
				struct sigaction action = {};
				action.sa_handler = on_signal;
				sigaction(SIGUSR1, &action, nullptr);
				sigaction(SIGALRM, &action, nullptr);
				try {
					Fuzzer(*journal, offer, promises, seed + life)
						.run(std::min(steps_per_life,
					                      steps - journal->step));
				} catch (const Violation &violation) {
					std::snprintf(journal->violation, sizeof journal->violation,
					              "%s", violation.text.c_str());
					return 1;
				}
				return 0;
			});
			if (outcome != 0)
				result.violation = (outcome < 0 ? "killed by signal " +
				                                          std::to_string(-outcome)
				                                : journal->violation) +
				                   journal->last_steps();
		}
	}
	result.steps = journal->step;
	result.counters = journal->counters;
	munmap(journal, sizeof *journal);
	return result;
}

Offer offered()
{
	if (get_enabled() == -EINVAL)
		return Offer::none;
	return getauxval(at_feature_size) < feature_size ? Offer::off_at_boot : Offer::all;
}

class Fuzz : public testing::Test
{
      protected:
	void SetUp() override
	{
		ticks_per_ns();
		SLICE_EXT_NEEDS(need::real_time());
		if (offer == Offer::all)
			SLICE_EXT_NEEDS(need::control());
	}

	const Offer offer = offered();
	const std::uint64_t seed = number_from_environment("SLICE_EXT_SEED", 1);
	const std::uint64_t steps = number_from_environment("SLICE_EXT_STEPS", 2500);
};

TEST_F(Fuzz, TheOracleIsRight)
{
	std::unique_ptr<FileGuard> sysctl;
	if (offer == Offer::all)
		sysctl = std::make_unique<FileGuard>(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	const Result result = fuzz(offer, Promises(), seed, steps);
	std::cout << "SLICE_EXT_SEED=" << seed << ": " << result.steps << " steps; kernel:";
	for (const char *name : counter_names)
		std::cout << ' ' << name << ' ' << result[name];
	std::cout << std::endl;
	ASSERT_EQ(result.violation, "")
		<< "at step " << result.steps << "; again with SLICE_EXT_SEED=" << seed
		<< " SLICE_EXT_STEPS=" << steps;
	EXPECT_GE(result.steps, steps);
	if (offer != Offer::all)
		return;
	for (const char *name :
	     {"granted", "denied_off", "denied_class", "ended_yield", "ended_expired"})
		EXPECT_GT(result[name], 0) << name;
	EXPECT_GT(result["denied_nonfair"] + result["ended_nonfair"], 0);
}

struct Mistake {
	const char *name;
	bool Promises::*promise;
};

std::ostream &operator<<(std::ostream &out, const Mistake &mistake)
{
	return out << mistake.name;
}

class WrongOracle : public Fuzz, public testing::WithParamInterface<Mistake>
{
};

TEST_P(WrongOracle, IsFoundOut)
{
	if (offer != Offer::all)
		GTEST_SKIP() << "there is nothing to be wrong about";
	const FileGuard sysctl(path_sysctl, "100");
	const EagerSoftirq softirq(test_cpu());
	Promises promises;
	promises.*GetParam().promise = false;
	const Result result = fuzz(offer, promises, seed, steps);
	EXPECT_NE(result.violation, "") << "not noticed in " << result.steps << " steps";
	std::cout << GetParam().name << ": step " << result.steps << ": "
		  << result.violation.substr(0, result.violation.find('\n')) << std::endl;
}

INSTANTIATE_TEST_SUITE_P(
	, WrongOracle,
	testing::Values(Mistake{"EnabledSurvivesExec", &Promises::exec_disables},
                        Mistake{"ForkResets", &Promises::fork_copies},
                        Mistake{"NewThreadInherits", &Promises::new_thread_starts_disabled},
                        Mistake{"EnabledSurvivesUnregistering", &Promises::unregistering_disables},
                        Mistake{"AreaOf32BytesIsTooSmall", &Promises::area_of_32_bytes_will_do},
                        Mistake{"RefusedCallEnables", &Promises::refused_call_changes_nothing},
                        Mistake{"AnyWordIsZeroed", &Promises::word_is_left_alone_unless_opted_in},
                        Mistake{"GrantKeepsTheRequest", &Promises::grant_takes_the_request},
                        Mistake{"RequestSurvivesASwitch", &Promises::switch_zeroes_the_word},
                        Mistake{"YieldIsAlways0", &Promises::yield_tells_whether_a_grant_ended}),
	[](const auto &info) { return info.param.name; });

} // namespace
} // namespace slice_test::fuzz
