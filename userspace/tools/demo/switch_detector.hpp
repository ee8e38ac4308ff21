// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_SWITCH_DETECTOR_HPP
#define SLICE_EXT_TOOL_DEMO_SWITCH_DETECTOR_HPP

#include <slice_ext/abi.h>

#include <cstdint>

namespace slice_ext::tool
{

// Tells how often the calling thread was switched out between two moments, without a system call
// between them (one would end the extension it is to observe), and in the same way for a thread
// that uses extensions and one that does not.
//
// Two facts together:
//  - the kernel clears rseq->rseq_cs of a thread that was switched out and whose instruction
//    pointer is outside the sequence it points to. The sequence used here is never executed, so a
//    cleared pointer means: switched out since arm(), or a signal, or other work of the kernel for
//    this thread (the periodic scan of its concurrency ids does that some ten times a second);
//  - ru_nivcsw of getrusage(RUSAGE_THREAD) is exact, and is read only when the pointer was cleared
//    and never inside a section.
//
// One object per thread, used by that thread only. Works on x86-64 where the thread has an rseq
// area, from the C library or from slice_ext_enable(); available() is false elsewhere.
class SwitchDetector
{
      public:
	SwitchDetector();
	~SwitchDetector();
	SwitchDetector(const SwitchDetector &) = delete;
	SwitchDetector &operator=(const SwitchDetector &) = delete;

	bool available() const
	{
		return pointer_ != nullptr;
	}

	// Starts an observation. System call.
	void arm();

	// False: for certain not switched out since arm(). No system call.
	bool touched() const
	{
		return pointer_ != nullptr && *pointer_ == 0;
	}

	// Involuntary switches since the last arm() or count(); starts a new observation. System
	// call.
	std::uint64_t count();

      private:
	static std::uint64_t involuntary_switches();

	volatile std::uint64_t *pointer_;
	std::uint64_t switches_ = 0;
};

} // namespace slice_ext::tool

#endif
