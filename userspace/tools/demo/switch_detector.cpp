// SPDX-License-Identifier: MIT
#include "demo/switch_detector.hpp"

#include <slice_ext/slice_ext.h>
#include <sys/resource.h>

#include <cstddef>

#if defined(__x86_64__)

// A restartable sequence that is never run, and the abort handler its descriptor must name: the
// kernel wants the signature in front of that.
asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl slice_ext_tool_never_run\n"
    ".hidden slice_ext_tool_never_run\n"
    "slice_ext_tool_never_run:\n"
    "    ud2\n"
    ".globl slice_ext_tool_never_run_end\n"
    ".hidden slice_ext_tool_never_run_end\n"
    "slice_ext_tool_never_run_end:\n"
    "    .long 0x53053053\n"
    ".globl slice_ext_tool_never_abort\n"
    ".hidden slice_ext_tool_never_abort\n"
    "slice_ext_tool_never_abort:\n"
    "    ud2\n"
    ".popsection\n");

extern "C" {
extern const char slice_ext_tool_never_run[] __attribute__((visibility("hidden")));
extern const char slice_ext_tool_never_run_end[] __attribute__((visibility("hidden")));
extern const char slice_ext_tool_never_abort[] __attribute__((visibility("hidden")));
// glibc 2.35 and newer; absent from others.
extern const std::ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
}

#endif

namespace slice_ext::tool
{

namespace
{

#if defined(__x86_64__)

static_assert(SLICE_EXT_ABI_RSEQ_SIGNATURE == 0x53053053u, "the assembly above spells it out");

struct alignas(32) SequenceDescriptor {
	std::uint32_t version;
	std::uint32_t flags;
	std::uint64_t start;
	std::uint64_t length;
	std::uint64_t abort;
};

const SequenceDescriptor never_run = {
	0,
	0,
	reinterpret_cast<std::uintptr_t>(slice_ext_tool_never_run),
	static_cast<std::uint64_t>(slice_ext_tool_never_run_end - slice_ext_tool_never_run),
	reinterpret_cast<std::uintptr_t>(slice_ext_tool_never_abort),
};

slice_ext_abi_rseq *area_of_this_thread()
{
	if (slice_ext_self.ctrl != nullptr)
		return reinterpret_cast<slice_ext_abi_rseq *>(
			const_cast<unsigned char *>(slice_ext_self.ctrl) -
			SLICE_EXT_ABI_RSEQ_REQUEST);
	if (&__rseq_size == nullptr || &__rseq_offset == nullptr || __rseq_size == 0)
		return nullptr;
	auto *area = reinterpret_cast<slice_ext_abi_rseq *>(
		static_cast<char *>(__builtin_thread_pointer()) + __rseq_offset);
	return static_cast<std::int32_t>(*static_cast<volatile std::uint32_t *>(&area->cpu_id)) >= 0
	               ? area
	               : nullptr;
}

#endif

} // namespace

SwitchDetector::SwitchDetector() : pointer_(nullptr)
{
#if defined(__x86_64__)
	if (slice_ext_abi_rseq *area = area_of_this_thread())
		pointer_ = &area->rseq_cs;
#endif
}

SwitchDetector::~SwitchDetector()
{
	if (pointer_ != nullptr)
		*pointer_ = 0;
}

std::uint64_t SwitchDetector::involuntary_switches()
{
	rusage usage = {};
	getrusage(RUSAGE_THREAD, &usage);
	return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

void SwitchDetector::arm()
{
	count();
}

std::uint64_t SwitchDetector::count()
{
	if (pointer_ == nullptr)
		return 0;
#if defined(__x86_64__)
	// Armed before the count is read: a switch between the two is seen twice rather than never,
	// and count() then finds no difference.
	*pointer_ = reinterpret_cast<std::uintptr_t>(&never_run);
#endif
	const std::uint64_t now = involuntary_switches();
	const std::uint64_t difference = now - switches_;
	switches_ = now;
	return difference;
}

} // namespace slice_ext::tool
