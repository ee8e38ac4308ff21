// SPDX-License-Identifier: MIT
// The memory of the area, and words that the protocol does not know.
#include "edge.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int rounds = 20;
constexpr int children = 10;
constexpr std::size_t page = 4096;

/** Pages of the test's own. */
class Pages
{
      public:
	explicit Pages(std::size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
		: size_(count * page),
		  base_(static_cast<unsigned char *>(
			  mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, fd, 0)))
	{
	}
	~Pages()
	{
		munmap(base_, size_);
	}
	Pages(const Pages &) = delete;
	Pages &operator=(const Pages &) = delete;

	unsigned char *at(std::size_t offset) const
	{
		return base_ + offset;
	}
	std::size_t size() const
	{
		return size_;
	}

      private:
	std::size_t size_;
	unsigned char *base_;
};

/** Registers and opts in. @return 0 or the errno value */
int opt_in_at(void *address, std::uint32_t length = 64)
{
	if (const int error = sys_rseq(address, length, 0))
		return error;
	return set_enabled(true);
}

class EdgeMemory : public Edge
{
      protected:
	/** Runs @p spoil in children that have had one grant and request the next, and
	 * then spin: the next switch has to kill them. @return what the machine counted */
	Counters killed_after(const std::function<void(void *area)> &spoil)
	{
		const Counters before = Counters::of_machine();
		for (int i = 0; i < children; ++i)
			EXPECT_EQ(checked_child([&] {
					  const Pages pages(1);
					  RseqView area(pages.at(0));
					  ASSERT_EQ(opt_in_at(area.base()), 0);
					  ASSERT_TRUE(get_grant(area));
					  leave(area);
					  area.set_request(1);
					  spoil(area.base());
					  spin(1 * second);
				  }),
			          -SIGSEGV);
		return Counters::of_machine() - before;
	}
};

// A word that cannot be read holds no request.
TEST_F(EdgeMemory, AnUnmappedAreaKillsAtTheNextSwitch)
{
	const Counters counters = killed_after([](void *area) { munmap(area, page); });
	expect_about(counters, "granted", children);
	EXPECT_EQ(counters["denied_fault"], 0);
	EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
	EXPECT_EQ(counters["granted"], counters.ended());
}

TEST_F(EdgeMemory, AReadOnlyAreaIsDeniedAndKillsAtTheNextSwitch)
{
	const Counters counters =
		killed_after([](void *area) { EXPECT_EQ(mprotect(area, page, PROT_READ), 0); });
	expect_about(counters, "granted", children);
	EXPECT_GE(counters["denied_fault"], at_least(children)) << counters;
	EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());
	EXPECT_EQ(counters["granted"], counters.ended());
}

// The system call that takes the memory away ends the grant, and cannot write the word.
TEST_F(EdgeMemory, UnmappingItInsideAGrantEndsTheGrantFirst)
{
	const Counters before = Counters::of_machine();
	for (int i = 0; i < children; ++i)
		EXPECT_EQ(checked_child([&] {
				  const Pages pages(1);
				  RseqView area(pages.at(0));
				  ASSERT_EQ(opt_in_at(area.base()), 0);
				  ASSERT_TRUE(get_grant(area));
				  munmap(area.base(), page);
				  spin(1 * second);
			  }),
		          -SIGSEGV);
	const Counters counters = Counters::of_machine() - before;
	expect_about(counters, "granted", children);
	expect_about(counters, "ended_syscall", children);
	EXPECT_EQ(counters["granted"], counters.ended());
}

TEST_F(EdgeMemory, ADroppedPageDropsTheRequest)
{
	in_thread([&] {
		const Pages pages(1);
		RseqView area(pages.at(0));
		ASSERT_EQ(opt_in_at(area.base()), 0);
		for (int i = 0; i < rounds; ++i) {
			const Counters before = Counters::of_this_thread();
			area.set_request(1);
			ASSERT_EQ(madvise(pages.at(0), page, MADV_DONTNEED), 0);
			const std::uint64_t wakeups = other_->wakeups();
			while (other_->wakeups() < wakeups + 2) {
			}
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			// Elsewhere one may be met before it is dropped.
			EXPECT_LE((Counters::of_this_thread() - before)["requests"],
			          deterministic() ? 0 : 1);
			ASSERT_TRUE(get_grant(area));
			EXPECT_TRUE(leave(area) == 1 || !deterministic());
		}
		expect_about(Counters::of_this_thread(), "ended_yield", rounds);
		ASSERT_EQ(sys_rseq(area.base(), 64, rseq_unregister), 0);
	});
}

// The file below the page holds a request, so the kernel is the first to write to the
// page. Its write faults, and with a reschedule pending the way through the fault gives
// up the CPU: there is nothing left to grant.
TEST_F(EdgeMemory, APageThatHasToBeCopiedTakesTheGrantsPlace)
{
	const int fd = memfd_create("area", MFD_CLOEXEC);
	ASSERT_GE(fd, 0);
	const unsigned char request = 1;
	ASSERT_EQ(ftruncate(fd, page), 0);
	ASSERT_EQ(pwrite(fd, &request, 1, off_request), 1);
	in_thread([&] {
		const Pages pages(1, MAP_PRIVATE, fd);
		RseqView area(pages.at(0));
		ASSERT_EQ(opt_in_at(area.base()), 0);
		const Counters before = Counters::of_this_thread();
		int taken = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_EQ(madvise(pages.at(0), page, MADV_DONTNEED), 0);
			const std::uint64_t until = patience();
			taken += area.ctrl() == ctrl_requested;
			while (area.ctrl() == ctrl_requested && ticks() < until) {
			}
			EXPECT_TRUE(area.ctrl() == ctrl_idle || area.ctrl() == ctrl_granted);
			leave(area);
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("copied", taken, counters);
		EXPECT_GE(taken, at_least(rounds));
		EXPECT_EQ(counters["denied_fault"], 0);
		EXPECT_EQ(counters["requests"], counters["granted"] + counters.denied());

		ASSERT_TRUE(get_grant(area)) << "once the page is there";
		leave(area);
		ASSERT_EQ(sys_rseq(area.base(), 64, rseq_unregister), 0);
	});
	unsigned char in_file = 0;
	EXPECT_EQ(pread(fd, &in_file, 1, off_request), 1);
	EXPECT_EQ(in_file, 1);
	close(fd);
}

class EdgeMemoryEnd : public Edge, public testing::WithParamInterface<std::uint32_t>
{
};

TEST_P(EdgeMemoryEnd, AnAreaAtTheEndOfItsPageIsServed)
{
	const std::uint32_t length = GetParam();
	in_thread([&] {
		const Pages pages(2);
		ASSERT_EQ(munmap(pages.at(page), page), 0);
		RseqView area(pages.at(page - (length > legacy_size ? 64 : legacy_size)));
		ASSERT_EQ(opt_in_at(area.base(), length), 0);
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			leave(area);
		}
		expect_about(Counters::of_this_thread(), "ended_yield", rounds);
		ASSERT_EQ(sys_rseq(area.base(), length, rseq_unregister), 0);
	});
}

INSTANTIATE_TEST_SUITE_P(Length, EdgeMemoryEnd, testing::Values(32U, 33U, 64U),
                         [](const auto &info) { return std::to_string(info.param); });

/** A page whose faults this process serves. */
class FaultedPage
{
      public:
	/** @param mode UFFDIO_REGISTER_MODE_MISSING or _WP */
	explicit FaultedPage(std::uint64_t mode) : mode_(mode)
	{
		fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
		uffdio_api api{};
		api.api = UFFD_API;
		api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EXACT_ADDRESS;
		if (fd_ < 0 || ioctl(fd_, UFFDIO_API, &api) != 0)
			return;
		std::memset(pages_.at(0), 0, page);
		uffdio_register request{};
		request.range = range();
		request.mode = mode;
		ready_ = ioctl(fd_, UFFDIO_REGISTER, &request) == 0;
	}
	~FaultedPage()
	{
		stop();
		close(fd_);
	}
	FaultedPage(const FaultedPage &) = delete;
	FaultedPage &operator=(const FaultedPage &) = delete;

	bool ready() const
	{
		return ready_;
	}
	RseqView area() const
	{
		return RseqView(pages_.at(0));
	}

	/** Makes the next access (MISSING) or write (WP) fault. */
	void arm()
	{
		armed_ = true;
		if (mode_ == UFFDIO_REGISTER_MODE_WP)
			protect(UFFDIO_WRITEPROTECT_MODE_WP);
		else
			madvise(pages_.at(0), page, MADV_DONTNEED);
	}
	/** The fault has come and is done with. Makes no system call. */
	bool served() const
	{
		return !armed_;
	}
	/** Faults that were met at the control word: on the way to a grant. */
	int on_the_word() const
	{
		return on_the_word_;
	}

	/** Starts the thread that serves them. A missing page comes with a request set. */
	void serve()
	{
		wake_ = eventfd(0, EFD_CLOEXEC);
		thread_ = std::thread([this] {
			alignas(page) static unsigned char content[page];
			content[off_request] = 1;
			for (;;) {
				pollfd fds[] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
				poll(fds, 2, -1);
				if (fds[1].revents)
					return;
				uffd_msg message{};
				if (read(fd_, &message, sizeof message) != sizeof message)
					continue;
				const auto offset = message.arg.pagefault.address -
				                    reinterpret_cast<std::uint64_t>(pages_.at(0));
				on_the_word_ +=
					offset >= off_slice_ctrl && offset < off_slice_ctrl + 4;
				armed_ = false;
				if (mode_ == UFFDIO_REGISTER_MODE_WP) {
					protect(0);
					continue;
				}
				uffdio_copy copy{};
				copy.dst = range().start;
				copy.src = reinterpret_cast<std::uint64_t>(content);
				copy.len = page;
				ioctl(fd_, UFFDIO_COPY, &copy);
			}
		});
	}
	void stop()
	{
		if (!thread_.joinable())
			return;
		eventfd_write(wake_, 1);
		thread_.join();
		close(wake_);
	}

      private:
	uffdio_range range() const
	{
		return {reinterpret_cast<std::uint64_t>(pages_.at(0)), page};
	}
	void protect(std::uint64_t mode)
	{
		uffdio_writeprotect request{};
		request.range = range();
		request.mode = mode;
		ioctl(fd_, UFFDIO_WRITEPROTECT, &request);
	}

	Pages pages_{1};
	std::uint64_t mode_;
	int fd_ = -1;
	int wake_ = -1;
	bool ready_ = false;
	std::atomic<bool> armed_{false};
	std::atomic<int> on_the_word_{0};
	std::thread thread_;
};

class EdgeMemoryFault : public Edge, public testing::WithParamInterface<std::uint64_t>
{
};

// Reading the request, or writing the answer, sleeps until another thread has served the
// fault. By then the CPU was given up, so there is nothing left to grant.
TEST_P(EdgeMemoryFault, AFaultThatSleepsTakesTheGrantsPlace)
{
	FaultedPage faulted(GetParam());
	if (!faulted.ready())
		GTEST_SKIP() << "no userfaultfd of this kind: " << std::strerror(errno);
	faulted.serve();
	in_thread([&] {
		RseqView area = faulted.area();
		ASSERT_EQ(opt_in_at(area.base()), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			area.set_request(1);
			faulted.arm();
			const std::uint64_t until = patience();
			while (!faulted.served() && ticks() < until) {
			}
			ASSERT_TRUE(faulted.served());
			EXPECT_EQ(area.ctrl(), ctrl_idle);
			EXPECT_EQ(sys_yield(), 0);
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("faults on the word", faulted.on_the_word(), counters);
		EXPECT_GE(faulted.on_the_word(), at_least(rounds));
		EXPECT_EQ(counters["granted"], 0);
		EXPECT_EQ(counters["denied_fault"], 0);

		ASSERT_TRUE(get_grant(area)) << "after the page has come back";
		EXPECT_TRUE(leave(area) == 1 || !deterministic());
		ASSERT_EQ(sys_rseq(area.base(), 64, rseq_unregister), 0);
	});
}

TEST_P(EdgeMemoryFault, AThreadThatNobodyServesCanBeKilled)
{
	const std::uint64_t mode = GetParam();
	for (int i = 0; i < 3; ++i) {
		std::fflush(nullptr);
		const pid_t pid = fork();
		if (pid == 0) {
			pin(test_cpu());
			FaultedPage faulted(mode);
			RseqView area = faulted.area();
			if (!faulted.ready())
				_exit(77);
			if (opt_in_at(area.base()) != 0 || !get_grant(area))
				_exit(1);
			leave(area);
			area.set_request(1);
			faulted.arm();
			spin(60 * second);
			_exit(2);
		}
		const std::string channel = "/proc/" + std::to_string(pid) + "/wchan";
		const std::string place = "handle_userfault";
		const std::int64_t end = now_ns() + 20 * second;
		while (read_line(channel) != place && now_ns() < end)
			sleep_ns(ms);
		EXPECT_EQ(read_line(channel).value_or("?"), place);
		kill(pid, SIGKILL);
		int status = 0;
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			GTEST_SKIP() << "no userfaultfd of this kind";
		ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
		EXPECT_EQ(WTERMSIG(status), SIGKILL);
	}
	const Counters counters = machine();
	expect_about(counters, "ended_yield", 3);
	// The write gives up when the thread is killed; a request that is not read is none.
	expect_about(counters, "denied_fault", mode == UFFDIO_REGISTER_MODE_WP ? 3 : 0);
}

INSTANTIATE_TEST_SUITE_P(Mode, EdgeMemoryFault,
                         testing::Values(UFFDIO_REGISTER_MODE_MISSING, UFFDIO_REGISTER_MODE_WP),
                         [](const auto &info) {
				 return info.param == UFFDIO_REGISTER_MODE_WP ? "WriteProtected"
	                                                                      : "Missing";
			 });

class EdgeWord : public Edge
{
};

TEST_F(EdgeWord, AGrantThatTheUserMadeUpIsNone)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		for (int i = 0; i < rounds; ++i) {
			const Counters before = Counters::of_this_thread();
			area.set_u8(off_granted, 1);
			EXPECT_EQ(sys_yield(), 0);
			area.set_u32(off_slice_ctrl, ctrl_granted);
			const std::uint64_t wakeups = other_->wakeups();
			while (other_->wakeups() < wakeups + 2) {
			}
			EXPECT_EQ(area.ctrl(), ctrl_idle) << "zeroed by the switch";
			EXPECT_EQ((Counters::of_this_thread() - before)["requests"], 0);
		}
		ASSERT_TRUE(get_grant(area));
		EXPECT_TRUE(leave(area) == 1 || !deterministic());
	});
}

TEST_F(EdgeWord, AGrantThatTheUserClearedIsStillOne)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		int yielded = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			area.set_u8(off_granted, 0);
			yielded += sys_yield() == 1;
			EXPECT_EQ(area.ctrl(), ctrl_idle);
		}
		const Counters counters = Counters::of_this_thread() - before;
		EXPECT_GE(yielded, at_least(rounds));
		EXPECT_EQ(counters["ended_yield"], yielded);
	});
}

TEST_F(EdgeWord, ClearingAndAskingAgainBuysNoTime)
{
	std::vector<std::int64_t> used;
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		for (int i = 0; i < rounds; ++i) {
			const Wait wait = until_granted(area, patience());
			ASSERT_TRUE(wait.granted);
			// The switch zeroes it.
			area.set_u32(off_slice_ctrl, ctrl_requested);
			std::uint64_t last = wait.seen;
			const std::uint64_t until = patience();
			for (std::uint64_t now = last; area.request() && now < until; now = ticks())
				last = now;
			// Elsewhere it may have been over, and this a request like any other.
			EXPECT_TRUE(area.ctrl() == ctrl_idle || !deterministic());
			leave(area);
			used.push_back(to_ns(last - wait.seen));
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("cleared", rounds, counters);
		expect_about(counters, "granted", rounds);
		expect_about(counters, "ended_expired", rounds);
	});
	std::printf("used: median %.1f us\n", static_cast<double>(median(used)) / us);
	if (deterministic()) {
		EXPECT_GT(median(used), 90 * us);
		EXPECT_LT(median(used), 110 * us);
	}
}

TEST_F(EdgeWord, ARequestIsAnyFirstByteButZero)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		int granted = 0;
		const std::uint32_t requests[] = {0x0000'0002, 0x0000'0080, 0x0000'0101,
		                                  0xffff'0001, 0xffff'ffff, 0x0001'0103};
		for (const std::uint32_t word : requests)
			for (int i = 0; i < 5; ++i) {
				SCOPED_TRACE(word);
				area.set_u32(off_slice_ctrl, word);
				const std::uint64_t until = patience();
				while (area.ctrl() == word && ticks() < until) {
				}
				// All of it is the kernel's: not a bit of the old word is left.
				granted += area.ctrl() == ctrl_granted;
				EXPECT_TRUE(area.ctrl() == ctrl_granted || area.ctrl() == ctrl_idle)
					<< area.ctrl();
				leave(area);
			}
		EXPECT_GE(granted, at_least(5 * static_cast<std::int64_t>(std::size(requests))))
			<< Counters::of_this_thread();

		const Counters before = Counters::of_this_thread();
		for (const std::uint32_t word : {0xffff'ff00U, 0x0000'0100U, 0x0001'0000U}) {
			area.set_u32(off_slice_ctrl, word);
			const std::uint64_t wakeups = other_->wakeups();
			while (other_->wakeups() < wakeups + 3) {
			}
			EXPECT_EQ(area.ctrl(), ctrl_idle);
		}
		EXPECT_EQ((Counters::of_this_thread() - before)["requests"], 0);
	});
}

TEST_F(EdgeWord, GarbageInsideAGrantChangesNothing)
{
	in_thread([&] {
		RseqArea area;
		ASSERT_EQ(opt_in(area), 0);
		const Counters before = Counters::of_this_thread();
		int yielded = 0;
		for (int i = 0; i < rounds; ++i) {
			ASSERT_TRUE(get_grant(area));
			area.set_u32(off_slice_ctrl, 0xffff'ffff);
			if (i % 2) {
				yielded += sys_yield() == 1;
			} else {
				const std::uint64_t until = patience();
				while (area.ctrl() == 0xffff'ffff && ticks() < until) {
				}
			}
			EXPECT_EQ(area.ctrl(), ctrl_idle);
		}
		const Counters counters = Counters::of_this_thread() - before;
		report("garbage", rounds, counters);
		expect_about(counters, "granted", rounds);
		expect_about(counters, "ended_expired", rounds / 2);
		EXPECT_GE(yielded, at_least(rounds / 2));
		EXPECT_EQ(counters["ended_yield"], yielded);
	});
}

} // namespace
} // namespace slice_test
