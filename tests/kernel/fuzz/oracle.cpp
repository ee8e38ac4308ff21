// SPDX-License-Identifier: MIT
#include "oracle.hpp"

#include "rseq_area.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace slice_test::fuzz
{

namespace
{

constexpr std::uintptr_t end_of_user_space = 1UL << 47;
constexpr std::uint32_t cpu_id_none = ~0U;
constexpr std::uint32_t ids_end = 1024;

} // namespace

Oracle::Oracle(Offer offer, const Promises &promises, std::uint8_t *arena, unsigned cpu)
	: offer_(offer), promises_(promises), arena_(arena), cpu_(cpu)
{
	std::memcpy(expected_.data(), arena, arena_size);
}

Oracle Oracle::after_fork() const
{
	Oracle child = *this;
	child.yields_ = 0;
	child.seen_requests_ = child.seen_granted_ = child.seen_off_ = child.seen_class_ = 0;
	if (!promises_.fork_copies)
		child.enabled_ = false;
	child.possible_ = {};
	child.requested();
	return child;
}

Oracle Oracle::after_clone(std::uint8_t *arena) const
{
	Oracle other(offer_, promises_, arena, cpu_);
	other.sysctl_on_ = sysctl_on_;
	other.policy_fair_ = policy_fair_;
	if (!promises_.new_thread_starts_disabled)
		other.enabled_ = enabled_;
	return other;
}

Oracle Oracle::after_exec() const
{
	Oracle other(offer_, promises_, arena_, cpu_);
	if (!promises_.exec_disables)
		other.enabled_ = enabled_;
	return other;
}

int Oracle::rseq(std::uintptr_t address, std::uint32_t length, int flags, std::uint32_t signature)
{
	syscall();
	const bool known = registered() && address == area_ && length == length_;
	if (flags & rseq_unregister) {
		if (flags != rseq_unregister || !known)
			return EINVAL;
		if (signature != signature_)
			return EPERM;
		if (!writable_)
			return EFAULT;
		store32(base() + off_cpu_id_start, 0);
		store32(base() + off_cpu_id, cpu_id_none);
		store32(base() + off_node_id, 0);
		store32(base() + off_mm_cid, 0);
		if (enabled_ && promises_.unregistering_disables)
			set_enabled(false);
		if (offer_ == Offer::all)
			store32(base() + off_flags, 0);
		area_ = 0;
		return 0;
	}

	if (flags & ~(offer_ == Offer::none ? 0 : rseq_default_on))
		return EINVAL;
	if (registered())
		return !known ? EINVAL : signature != signature_ ? EPERM : EBUSY;

	const bool legacy = length == legacy_size;
	const unsigned align = offer_ == Offer::all && !legacy ? feature_align : base_feature_align;
	if (length < legacy_size || address % align ||
	    (offer_ == Offer::all && !legacy && length < feature_size))
		return EINVAL;
	if (!inside(address) || !writable_)
		return EFAULT;

	area_ = address;
	length_ = length;
	signature_ = signature;
	store32(base() + off_rseq_cs, 0);
	store32(base() + off_rseq_cs + 4, 0);
	if (offer_ == Offer::all) {
		store32(base() + off_flags, flag_available);
		if (flags & rseq_default_on)
			set_enabled(true);
	}
	return 0;
}

long Oracle::prctl(unsigned long operation, unsigned long argument, unsigned long arg4,
                   unsigned long arg5)
{
	syscall();
	if (offer_ == Offer::none || arg4 || arg5)
		return -EINVAL;
	if (operation == pr_get)
		return argument ? -EINVAL : enabled_;
	if (operation != pr_set)
		return -EINVAL;
	if (argument & ~pr_enable) {
		if (!promises_.refused_call_changes_nothing && registered())
			set_enabled(argument & pr_enable);
		return -EINVAL;
	}
	if (offer_ == Offer::off_at_boot)
		return -error_off_at_boot;
	if (!registered())
		return -ENXIO;
	const bool on = argument;
	if (on && length_ == legacy_size && !promises_.area_of_32_bytes_will_do)
		return -ENXIO;
	if (on != enabled_) {
		if (!writable_)
			return -EFAULT;
		set_enabled(on);
	}
	return 0;
}

bool Oracle::yield(long answer)
{
	const bool may_be = may_be_granted_ && promises_.yield_tells_whether_a_grant_ended;
	syscall();
	if (offer_ == Offer::none)
		return answer == -ENOSYS;
	if (answer != 1)
		return answer == 0;
	++yields_;
	switched_out();
	return may_be;
}

void Oracle::syscall()
{
	if (granted_)
		words_ = {ctrl_idle};
	granted_ = false;
	may_be_granted_ = false;
	requested();
}

void Oracle::switched_out()
{
	if (registered() && (enabled_ || !promises_.word_is_left_alone_unless_opted_in))
		store32(base() + off_slice_ctrl, ctrl_idle);
}

void Oracle::grants_are_possible(bool by_sysctl, bool by_policy)
{
	sysctl_on_ = by_sysctl;
	policy_fair_ = by_policy;
	requested();
}

void Oracle::store8(std::size_t offset, std::uint8_t value)
{
	if (is_the_word(offset)) {
		std::set<std::uint32_t> words;
		for (const std::uint32_t word : possible_words())
			words.insert((word & ~0xffU) | value);
		words_ = words;
		granted_ = false;
	} else {
		expected_[offset] = value;
	}
	requested();
}

void Oracle::store32(std::size_t offset, std::uint32_t value)
{
	if (is_the_word(offset)) {
		words_ = {value};
		granted_ = false;
	} else {
		std::memcpy(&expected_[offset], &value, sizeof value);
	}
	requested();
}

std::set<std::uint32_t> Oracle::possible_words() const
{
	std::set<std::uint32_t> words = words_;
	for (const std::uint32_t word : words_)
		if ((word & 0xff) && possible_.grant)
			words.insert(promises_.grant_takes_the_request
			                     ? ctrl_granted
			                     : ctrl_granted | ctrl_requested);
	// The end of a grant, or a switch.
	if (promises_.switch_zeroes_the_word)
		words.insert(ctrl_idle);
	return words;
}

bool Oracle::see_word(std::uint32_t word)
{
	if (!enabled_)
		return word == expected32(base() + off_slice_ctrl);
	const bool known = possible_words().count(word) != 0;
	if (words_.count(word) == 0)
		granted_ = word == ctrl_granted;
	may_be_granted_ |= granted_;
	words_ = {word};
	return known;
}

std::string Oracle::see_arena()
{
	char text[120];
	const auto complain = [&text](const char *what, std::size_t offset, std::uint32_t is,
	                              std::uint32_t should) {
		std::snprintf(text, sizeof text, "%s: byte %zu is %#x, should be %#x", what, offset,
		              is, should);
		return std::string(text);
	};
	// The thread can be switched out anywhere in here: each word is looked at once.
	const std::uint32_t word =
		registered() ? RseqView(arena_ + base()).ctrl() : std::uint32_t{ctrl_idle};
	Arena actual;
	std::memcpy(actual.data(), arena_, arena_size);
	if (registered()) {
		std::memcpy(&actual[base() + off_slice_ctrl], &word, sizeof word);
		const auto member = [&](unsigned offset) {
			std::uint32_t value = 0;
			std::memcpy(&value, &actual[base() + offset], sizeof value);
			return value;
		};
		// The kernel writes these each time the thread was switched out.
		for (const unsigned offset : {off_cpu_id_start, off_cpu_id})
			if (member(offset) != cpu_)
				return complain("not the CPU", offset, member(offset), cpu_);
		for (const unsigned offset : {off_node_id, off_mm_cid})
			if (member(offset) >= ids_end)
				return complain("no node or mm_cid", offset, member(offset), 0);
		std::memcpy(&expected_[base()], &actual[base()], off_rseq_cs);
		std::memcpy(&expected_[base() + off_node_id], &actual[base() + off_node_id], 8);
		const std::uint32_t before =
			enabled_ ? *words_.rbegin() : expected32(base() + off_slice_ctrl);
		if (!see_word(word))
			return complain("the control word", off_slice_ctrl, word, before);
		std::memcpy(&expected_[base() + off_slice_ctrl], &word, sizeof word);
	}
	for (std::size_t i = 0; i < arena_size; ++i)
		if (actual[i] != expected_[i])
			return complain("the memory", i, actual[i], expected_[i]) +
			       (registered() ? ", area at " + std::to_string(base()) : "");
	return {};
}

std::string Oracle::see_counters(const Counters &counters)
{
	const Possible possible = possible_;
	possible_ = {};
	requested();
	const std::int64_t requests = counters["requests"];
	const std::int64_t granted = counters["granted"];
	const std::int64_t off = counters["denied_off"];
	const std::int64_t unfair = counters["denied_class"];
	std::string wrong;
	const auto require = [&wrong](bool condition, const char *sentence) {
		if (!condition && wrong.empty())
			wrong = sentence;
	};
	require(!counters.missing("ended_work") && !counters.missing("denied_nonfair"),
	        "counters are missing");
	require(requests == granted + counters.denied(), "requests != granted + denied");
	require(granted == counters.ended(), "granted != ended");
	require(counters["ended_yield"] == yields_, "ended_yield != calls that returned 1");
	require(possible.request || requests == seen_requests_, "a request that nobody made");
	require(possible.grant || granted == seen_granted_, "a grant that was not possible");
	require(possible.denied_off || off == seen_off_, "denied_off with the sysctl on");
	require(possible.denied_class || unfair == seen_class_, "denied_class of a fair thread");
	require(counters["denied_core"] == 0, "denied_core without core scheduling");
	require(counters["denied_hres"] == 0, "denied_hres with high resolution timers");
	require(counters["denied_bandwidth"] == 0, "denied_bandwidth without a quota");
	require(counters["denied_fault"] == 0 || ever_protected_,
	        "denied_fault of memory that can be written");
	seen_requests_ = requests;
	seen_granted_ = granted;
	seen_off_ = off;
	seen_class_ = unfair;
	return wrong;
}

std::uint32_t Oracle::expected32(std::size_t offset) const
{
	std::uint32_t value = 0;
	std::memcpy(&value, &expected_[offset], sizeof value);
	return value;
}

bool Oracle::inside(std::uintptr_t address) const
{
	const auto start = reinterpret_cast<std::uintptr_t>(arena_);
	return address >= start && address < start + arena_size && address < end_of_user_space;
}

void Oracle::set_enabled(bool on)
{
	enabled_ = on;
	words_ = {ctrl_idle};
	granted_ = false;
	store32(base() + off_slice_ctrl, ctrl_idle);
	store32(base() + off_flags, flag_available | (on ? flag_enabled : 0));
}

void Oracle::requested()
{
	const auto asks = [](std::uint32_t word) { return (word & 0xff) != 0; };
	if (!registered() || !enabled_ || std::none_of(words_.begin(), words_.end(), asks))
		return;
	may_be_granted_ = true;
	possible_.request = true;
	possible_.grant |= sysctl_on_ && policy_fair_;
	possible_.denied_off |= !sysctl_on_;
	possible_.denied_class |= !policy_fair_;
}

} // namespace slice_test::fuzz
