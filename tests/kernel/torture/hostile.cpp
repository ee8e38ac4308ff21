// SPDX-License-Identifier: MIT
#include "hostile.hpp"

#include "child.hpp"
#include "dice.hpp"
#include "requester.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <new>
#include <string>
#include <thread>

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test::torture
{

namespace
{

constexpr const char *descriptor_variable = "SLICE_EXT_TORTURE_FD";
constexpr const char *exec_mode = "torture-after-exec";
constexpr std::size_t page = 4096;
constexpr unsigned deepest = 2;
constexpr std::array handled{SIGUSR1, SIGUSR2, SIGALRM};

Shared *map_shared(int fd)
{
	void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? nullptr : static_cast<Shared *>(memory);
}

/** What the threads of a process fight for. */
std::atomic<std::uint32_t> pi_lock;

/** The area of the calling thread, for its signal handlers. */
thread_local unsigned char *own_area;

/** A section of the handler's own, left properly or not. */
void on_signal(int number)
{
	if (!own_area)
		return;
	RseqView area(own_area);
	area.set_request(1);
	if (number == SIGUSR1)
		leave(area);
	else if (number == SIGUSR2)
		area.set_request(0);
}

void raw_futex(std::atomic<std::uint32_t> &word, int operation, const timespec *timeout)
{
	syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, 0, timeout, nullptr, 0);
}

/** One thread of a hostile process. */
class Hostile
{
      public:
	Hostile(Shared &shared, std::uint64_t seed, unsigned depth)
		: shared_(shared), dice_(seed), depth_(depth),
		  memory_(static_cast<unsigned char *>(mmap(nullptr, page, PROT_READ | PROT_WRITE,
	                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
	{
		if (memory_ == MAP_FAILED)
			_exit(EXIT_FAILURE);
		own_area = memory_;
	}
	~Hostile()
	{
		own_area = nullptr;
		sys_rseq(area_.base(), length_, rseq_unregister);
		munmap(memory_, page);
	}
	Hostile(const Hostile &) = delete;
	Hostile &operator=(const Hostile &) = delete;

	void act(std::uint64_t times);

      private:
	struct Act {
		unsigned weight;
		void (Hostile::*what)();
	};
	static const std::array<Act, 19> acts;

	std::int64_t up_to(std::int64_t ns)
	{
		return static_cast<std::int64_t>(dice_.below(static_cast<std::uint64_t>(ns)));
	}
	std::uint64_t soon(std::int64_t ns)
	{
		return ticks() + to_ticks(up_to(ns));
	}
	void ask_for(std::int64_t ns)
	{
		const std::uint64_t end = soon(ns);
		while (ticks() < end)
			area_.set_request(1);
	}
	void yield()
	{
		const long answer = sys_yield();
		if (answer != 0 && answer != 1)
			shared_.report("471 returned", answer);
		shared_.yields += answer == 1;
	}
	void some_syscall();

	// Each is an act.
	void section();
	void section_with_syscall();
	void section_with_faults();
	void greed();
	void garbage_word();
	void garbage_flags();
	void opt();
	void registration();
	void memory();
	void policy();
	void idle();
	void affinity();
	void alarm();
	void inherit_priority();
	void fork_child();
	void vfork_child();
	void exec_child();
	void thread();
	void die();

	Shared &shared_;
	Dice dice_;
	unsigned depth_;
	unsigned char *memory_;
	RseqView area_{memory_};
	std::uint32_t length_ = 0;
};

const std::array<Hostile::Act, 19> Hostile::acts{{
	{12, &Hostile::section},
	{12, &Hostile::section_with_syscall},
	{16, &Hostile::section_with_faults},
	{20, &Hostile::greed},
	{6, &Hostile::garbage_word},
	{4, &Hostile::garbage_flags},
	{4, &Hostile::opt},
	{4, &Hostile::registration},
	{2, &Hostile::memory},
	{6, &Hostile::policy},
	{3, &Hostile::idle},
	{6, &Hostile::affinity},
	{6, &Hostile::alarm},
	{6, &Hostile::inherit_priority},
	{3, &Hostile::fork_child},
	{1, &Hostile::vfork_child},
	{3, &Hostile::exec_child},
	{3, &Hostile::thread},
	{1, &Hostile::die},
}};

void Hostile::act(std::uint64_t times)
{
	static const unsigned all = [] {
		unsigned sum = 0;
		for (const Act &one : acts)
			sum += one.weight;
		return sum;
	}();
	registration();
	while (times-- && !shared_.stop) {
		std::uint64_t draw = dice_.below(all);
		const Act *chosen = acts.data();
		while (draw >= chosen->weight)
			draw -= chosen++->weight;
		(this->*chosen->what)();
		++shared_.acts;
	}
}

void Hostile::some_syscall()
{
	const timespec moment{0, static_cast<long>(dice_.below(50'000))};
	std::atomic<std::uint32_t> nobody{0};
	switch (dice_.below(8)) {
	case 0:
		sched_yield();
		break;
	case 1:
		nanosleep(&moment, nullptr);
		break;
	case 2:
		raw_futex(nobody, FUTEX_WAIT, &moment);
		break;
	case 3:
		madvise(memory_, page, MADV_DONTNEED);
		break;
	case 4:
		raise(dice_.one_in(2) ? SIGUSR1 : SIGUSR2);
		break;
	case 5: {
		const int state = get_enabled();
		if (state != 0 && state != 1)
			shared_.report("PR_RSEQ_SLICE_EXTENSION_GET returned", state);
		break;
	}
	case 6:
		close(open("/proc/preempt_delay", O_RDONLY | O_CLOEXEC));
		break;
	default:
		syscall(SYS_getppid);
	}
}

void Hostile::section()
{
	if (dice_.one_in(2)) {
		until_granted(area_, soon(4 * ms));
	} else {
		area_.set_request(1);
		spin(up_to(200 * us));
	}
	area_.set_request(0);
	if (area_.granted() || dice_.one_in(4))
		yield();
}

void Hostile::section_with_syscall()
{
	until_granted(area_, soon(4 * ms));
	some_syscall();
	if (dice_.one_in(2))
		yield();
}

// A switch inside the page fault is one that the extension did not see coming.
void Hostile::section_with_faults()
{
	constexpr std::size_t pages = 64;
	auto *fresh = static_cast<unsigned char *>(mmap(
		nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (fresh == MAP_FAILED)
		return;
	until_granted(area_, soon(4 * ms));
	for (std::size_t i = 0; i < pages; ++i)
		fresh[i * page] = 1;
	munmap(fresh, pages * page);
}

void Hostile::greed()
{
	ask_for(4 * ms);
}

void Hostile::garbage_word()
{
	const std::uint64_t end = soon(2 * ms);
	do {
		area_.set_u32(off_slice_ctrl, static_cast<std::uint32_t>(dice_.next()));
		spin(up_to(50 * us));
	} while (ticks() < end);
}

void Hostile::garbage_flags()
{
	const std::array<std::uint32_t, 5> values{0, flag_available, flag_enabled,
	                                          flag_available | flag_enabled,
	                                          static_cast<std::uint32_t>(dice_.next())};
	area_.set_u32(off_flags, dice_.pick(values));
	ask_for(2 * ms);
}

void Hostile::opt()
{
	set_enabled(dice_.one_in(2));
	ask_for(1 * ms);
	set_enabled(true);
}

void Hostile::registration()
{
	sys_rseq(area_.base(), length_, rseq_unregister);
	constexpr std::array<std::uint32_t, 6> lengths{32, 33, 64, 64, 31, 4096};
	constexpr std::array<std::size_t, 5> offsets{0, 32, 64, 1024, 4};
	own_area = memory_ + dice_.pick(offsets);
	area_ = RseqView(own_area);
	length_ = dice_.pick(lengths);
	if (sys_rseq(area_.base(), length_, dice_.one_in(2) ? rseq_default_on : 0) == 0) {
		set_enabled(true);
		return;
	}
	own_area = memory_;
	area_ = RseqView(own_area);
	length_ = 64;
	sys_rseq(area_.base(), length_, 0);
	set_enabled(true);
}

// A thread that is switched out while the area cannot be written is killed.
void Hostile::memory()
{
	area_.set_request(1);
	switch (dice_.below(4)) {
	case 0:
		mprotect(memory_, page, PROT_READ);
		spin(up_to(3 * ms));
		break;
	case 1:
		mprotect(memory_, page, PROT_NONE);
		set_enabled(dice_.one_in(2));
		break;
	case 2:
		munmap(memory_, page);
		mmap(memory_, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
		break;
	default:
		madvise(memory_, page, MADV_DONTNEED);
	}
	mprotect(memory_, page, PROT_READ | PROT_WRITE);
}

void Hostile::policy()
{
	constexpr std::array<int, 5> levels{-20, -1, 0, 5, 19};
	Policy own = fair();
	switch (dice_.below(4)) {
	case 0:
		own = fifo(1 + static_cast<int>(dice_.below(10)));
		break;
	case 1:
		if (shared_.deadline)
			own = deadline(200 * us, 20 * ms);
		break;
	case 2:
		own = batch();
		break;
	default:
		own.nice = dice_.pick(levels);
		own.runtime = dice_.one_in(2) ? 100 * us : 0;
	}
	apply(own);
	ask_for(2 * ms);
	if (own.priority || own.period)
		apply(fair());
}

void Hostile::idle()
{
	apply(idle_policy());
	ask_for(4 * ms);
	apply(fair());
}

void Hostile::affinity()
{
	cpu_set_t set;
	CPU_ZERO(&set);
	const std::uint64_t mask = dice_.next();
	for (unsigned cpu = 0; cpu < 8; ++cpu)
		if (mask >> cpu & 1)
			CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	ask_for(1 * ms);
}

void Hostile::alarm()
{
	const itimerval once{{0, 0}, {0, static_cast<suseconds_t>(1 + dice_.below(2000))}};
	setitimer(ITIMER_REAL, &once, nullptr);
	ask_for(3 * ms);
}

void Hostile::inherit_priority()
{
	timespec until{};
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 5 * ms;
	if (until.tv_nsec >= second) {
		until.tv_nsec -= second;
		++until.tv_sec;
	}
	const bool urgent = dice_.one_in(3);
	if (urgent)
		apply(fifo(5));
	raw_futex(pi_lock, FUTEX_LOCK_PI, &until);
	ask_for(1 * ms);
	raw_futex(pi_lock, FUTEX_UNLOCK_PI, nullptr);
	if (urgent)
		apply(fair());
}

void Hostile::fork_child()
{
	if (depth_ >= deepest)
		return;
	if (dice_.one_in(2))
		until_granted(area_, soon(2 * ms));
	const std::uint64_t seed = dice_.next();
	const pid_t pid = fork();
	if (pid == 0) {
		++depth_;
		dice_ = Dice(seed);
		ask_for(2 * ms);
		act(dice_.below(20));
		_exit(EXIT_SUCCESS);
	}
	if (pid < 0)
		return;
	ask_for(4 * ms);
	switch (dice_.below(3)) {
	case 0:
		kill(pid, SIGKILL);
		[[fallthrough]];
	case 1:
		waitpid(pid, nullptr, 0);
		break;
	default:
		break;
	}
}

// The child has the memory, and for a moment the stack, of the parent.
void Hostile::vfork_child()
{
	area_.set_request(1);
	const pid_t pid = vfork();
	if (pid == 0) {
		syscall(nr_yield);
		_exit(EXIT_SUCCESS);
	}
	if (pid > 0)
		waitpid(pid, nullptr, 0);
}

void Hostile::exec_child()
{
	if (depth_ >= deepest)
		return;
	until_granted(area_, soon(2 * ms));
	const pid_t pid = fork();
	if (pid == 0) {
		// There will be no handlers.
		for (const int number : handled)
			std::signal(number, SIG_IGN);
		set_enabled(true);
		until_granted(area_, soon(2 * ms));
		execl("/proc/self/exe", "kernel-torture", "--slice-ext-child", exec_mode,
		      static_cast<char *>(nullptr));
		_exit(EXIT_FAILURE);
	}
	if (pid > 0)
		waitpid(pid, nullptr, 0);
}

void Hostile::thread()
{
	if (depth_ >= deepest)
		return;
	const std::uint64_t seed = dice_.next();
	std::thread other([this, seed] { Hostile(shared_, seed, depth_ + 1).act(10); });
	act(3);
	other.join();
}

void Hostile::die()
{
	if (!dice_.one_in(3))
		return;
	until_granted(area_, soon(4 * ms));
	switch (dice_.below(4)) {
	case 0:
		_exit(EXIT_SUCCESS);
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		area_.set_u64(off_rseq_cs, dice_.next() >> 1);
		ask_for(100 * ms);
		break;
	default:
		RseqView(reinterpret_cast<void *>(page)).set_u8(0, 0);
	}
	_exit(EXIT_FAILURE);
}

int after_exec()
{
	Shared *shared = Shared::inherited();
	if (!shared)
		return EXIT_FAILURE;
	if (const int state = get_enabled())
		shared->report("PR_RSEQ_SLICE_EXTENSION_GET after exec returned", state);
	++shared->execs;
	Hostile(*shared, static_cast<std::uint64_t>(now_ns()), deepest).act(10);
	return EXIT_SUCCESS;
}

const ChildMode after_exec_mode(exec_mode, after_exec);

} // namespace

Shared *Shared::create()
{
	const int fd = memfd_create("torture", 0);
	if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0)
		return nullptr;
	setenv(descriptor_variable, std::to_string(fd).c_str(), 1);
	Shared *shared = map_shared(fd);
	return shared ? new (shared) Shared : nullptr;
}

Shared *Shared::inherited()
{
	const char *fd = std::getenv(descriptor_variable);
	return fd ? map_shared(std::atoi(fd)) : nullptr;
}

void Shared::report(const char *what, long value)
{
	if (violations++ == 0)
		std::snprintf(violation, sizeof violation, "%s %ld", what, value);
}

void live(Shared &shared, std::uint64_t seed)
{
	const rlimit none{0, 0};
	setrlimit(RLIMIT_CORE, &none);
	struct sigaction action = {};
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	for (const int number : handled)
		sigaction(number, &action, nullptr);
	++shared.lives;
	Dice dice(seed);
	// Somebody to fight with for the lock of the process.
	std::thread other([&shared, seed = dice.next()] { Hostile(shared, seed, 1).act(200); });
	Hostile(shared, dice.next(), 0).act(20 + dice.below(200));
	_exit(EXIT_SUCCESS);
}

} // namespace slice_test::torture
