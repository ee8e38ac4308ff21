// SPDX-License-Identifier: MIT
// Everything the library asks of the world around it. The unit tests put a
// simulated kernel and a simulated libc in its place.
#ifndef SLICE_EXT_LIB_SYSTEM_HPP
#define SLICE_EXT_LIB_SYSTEM_HPP

#include <slice_ext/abi.h>

namespace slice_ext_internal
{

// The rseq area libc keeps for the calling thread.
struct libc_area {
	slice_ext_abi_rseq *rseq; // null: this libc has none, or it is switched off
	unsigned size;            // bytes, as __rseq_size says
};

// System calls return what the kernel returns: a negative errno on failure.
struct system {
	bool supported_arch;
	long (*prctl)(unsigned long operation, unsigned long argument);
	long (*rseq)(void *area, unsigned size, int flags);
	long (*yield)();
	unsigned long (*auxv)(unsigned long type);
	libc_area (*libc)();
	int (*delay_us)(); // the sysctl; -1: not there or not readable
};

extern const system real_system;

// What the library uses; only tests change it.
extern const system *current_system;

} // namespace slice_ext_internal

#endif
