// SPDX-License-Identifier: MIT
/**
 * @file oracle.hpp
 * What the kernel has to answer to one thread, and what its memory may hold.
 *
 * Written from the pages of the documentation (rseq-slice-extension.rst, rseq(2)), to be read
 * beside them. It is told each thing the thread does, before or after the thread does it, and
 * knows the answer.
 */
#ifndef SLICE_EXT_TESTS_KERNEL_FUZZ_ORACLE_HPP
#define SLICE_EXT_TESTS_KERNEL_FUZZ_ORACLE_HPP

#include "counters.hpp"
#include "numbers.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <string>

namespace slice_test::fuzz
{

enum class Offer {
	all,         /**< the kernel has the extension */
	off_at_boot, /**< rseq_slice_ext=0 */
	none,        /**< the base kernel */
};

/** Sentences of the documentation that a test can take back, to see that it would notice. */
struct Promises {
	bool exec_disables = true;
	bool fork_copies = true;
	bool new_thread_starts_disabled = true;
	bool unregistering_disables = true;
	bool area_of_32_bytes_will_do = true;
	bool refused_call_changes_nothing = true;
	bool word_is_left_alone_unless_opted_in = true;
	bool grant_takes_the_request = true;
	bool switch_zeroes_the_word = true;
	bool yield_tells_whether_a_grant_ended = true;
};

class Oracle
{
      public:
	static constexpr std::size_t arena_size = 4096;
	using Arena = std::array<std::uint8_t, arena_size>;

	/** A thread without an area. @param arena the memory that all its areas will lie in
	 *  @param cpu the only CPU it runs on */
	Oracle(Offer offer, const Promises &promises, std::uint8_t *arena, unsigned cpu);

	/** What it would be for a child of fork(2), which has a copy of the arena. */
	Oracle after_fork() const;
	/** For a new thread, with an arena of its own. */
	Oracle after_clone(std::uint8_t *arena) const;
	/** For the same thread in a new program. */
	Oracle after_exec() const;

	/** rseq(2). @return 0 or the errno value */
	int rseq(std::uintptr_t address, std::uint32_t length, int flags, std::uint32_t signature);
	/** prctl(79). @return the result or the negated errno value */
	long prctl(unsigned long operation, unsigned long argument, unsigned long arg4 = 0,
	           unsigned long arg5 = 0);
	/** System call 471 gave @p answer. @return whether that can be */
	bool yield(long answer);
	/** Any system call; those above include it. */
	void syscall();
	/** The thread has been switched out since its last store. */
	void switched_out();

	/** The thread stores to its arena. */
	void store8(std::size_t offset, std::uint8_t value);
	void store32(std::size_t offset, std::uint32_t value);
	/** mprotect(2) of the arena. */
	void protect(bool writable)
	{
		writable_ = writable;
		ever_protected_ = true;
	}
	/** Of the sysctl and the thread's policy. */
	void grants_are_possible(bool by_sysctl, bool by_policy);

	/** The control word of the registered area holds @p word. @return whether it may */
	bool see_word(std::uint32_t word);
	/** The arena as it is. @return what is wrong with it, or nothing */
	std::string see_arena();
	/** The thread's counters, all of its life. @return what is wrong with them, or nothing */
	std::string see_counters(const Counters &counters);

	bool registered() const
	{
		return area_ != 0;
	}
	bool enabled() const
	{
		return enabled_;
	}
	/** Of the registration, for who wants to undo it. */
	std::uintptr_t area() const
	{
		return area_;
	}
	std::uint32_t length() const
	{
		return length_;
	}
	std::uint32_t signature() const
	{
		return signature_;
	}
	bool writable() const
	{
		return writable_;
	}

      private:
	std::uint32_t expected32(std::size_t offset) const;
	std::size_t base() const
	{
		return area_ - reinterpret_cast<std::uintptr_t>(arena_);
	}
	bool inside(std::uintptr_t address) const;
	void set_enabled(bool on);
	/** The word of an area that is opted in. */
	bool is_the_word(std::size_t offset) const
	{
		return enabled_ && registered() && offset == base() + off_slice_ctrl;
	}
	/** What the kernel may have made of the words unseen. */
	std::set<std::uint32_t> possible_words() const;
	void requested();

	Offer offer_;
	Promises promises_;
	std::uint8_t *arena_;
	Arena expected_{};
	unsigned cpu_;
	bool writable_ = true;
	bool ever_protected_ = false;

	std::uintptr_t area_ = 0;
	std::uint32_t length_ = 0;
	std::uint32_t signature_ = 0;
	bool enabled_ = false;

	/** What the control word may be, as far as the thread's own doing goes. Only while opted
	 * in: otherwise it is like any other memory. */
	std::set<std::uint32_t> words_;
	/** A grant was seen and neither ended nor overwritten since. */
	bool granted_ = false;
	/** A grant may have begun since the last system call. */
	bool may_be_granted_ = false;

	std::int64_t yields_ = 0;
	bool sysctl_on_ = true;
	bool policy_fair_ = true;
	/** Since the counters were seen last: was there a time at which this could happen? */
	struct Possible {
		bool request = false;
		bool grant = false;
		bool denied_off = false;
		bool denied_class = false;
	} possible_;
	std::int64_t seen_requests_ = 0;
	std::int64_t seen_granted_ = 0;
	std::int64_t seen_off_ = 0;
	std::int64_t seen_class_ = 0;
};

} // namespace slice_test::fuzz

#endif
