/* SPDX-License-Identifier: MIT */
/**
 * @file slice_ext.h
 * A thread tells the kernel that it is inside a short critical section, and an
 * ordinary thread that would preempt it there waits some microseconds longer.
 *
 *     slice_ext_enable();          // once per thread, see slice_ext_query()
 *     ...
 *     slice_ext_enter();
 *     spin_lock(&lock);
 *     ...                          // microseconds, no system call
 *     spin_unlock(&lock);
 *     slice_ext_leave();
 *
 * The extension is a request: the kernel may refuse it, and never lets it delay
 * a real-time thread (slice-ext series; Linux 7.x makes no such promise).
 * Without a kernel that has the feature all of this runs and does nothing.
 *
 * Everything acts on the calling thread. The state is per copy of the library:
 * shared objects that open sections in one process should all link the shared
 * library.
 *
 * C99 and C++17; defines no feature test macro and needs none. Linux only.
 */
#ifndef SLICE_EXT_SLICE_EXT_H
#define SLICE_EXT_SLICE_EXT_H

#include <slice_ext/abi.h>

/* For users and for the library itself when built with -fvisibility=hidden. */
#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

#define SLICE_EXT_VERSION_MAJOR 0
#define SLICE_EXT_VERSION_MINOR 1
#define SLICE_EXT_VERSION_PATCH 0

/** Whether sections of the calling thread can be extended, and if not, why. */
enum slice_ext_reason {
	/** They can, once slice_ext_enable() was called. */
	SLICE_EXT_AVAILABLE = 0,
	/** The running kernel was built without the feature. */
	SLICE_EXT_KERNEL_WITHOUT,
	/** The kernel has it, but it was switched off on the kernel command line. */
	SLICE_EXT_OFF_AT_BOOT,
	/** Nobody registered an rseq area in this thread. slice_ext_enable() does. */
	SLICE_EXT_NO_AREA,
	/** Other code than libc or this library registered the thread's rseq area. */
	SLICE_EXT_OTHER_OWNER,
	/** Linux 7.x does not take the 32-byte area that glibc 2.35..2.40 registers. */
	SLICE_EXT_AREA_TOO_SMALL,
	/** A sandbox refuses rseq(2). */
	SLICE_EXT_BLOCKED_RSEQ,
	/** A sandbox refuses prctl(2) operation 79. */
	SLICE_EXT_BLOCKED_PRCTL,
	/** A sandbox refuses system call 471, rseq_slice_yield. */
	SLICE_EXT_BLOCKED_YIELD,
	/** kernel.sched_preempt_delay_us is 0: every request is refused. */
	SLICE_EXT_SYSCTL_ZERO,
	/** No kernel has the feature on this architecture. */
	SLICE_EXT_UNSUPPORTED_ARCH
};

/** Who registered the calling thread's rseq area. */
enum slice_ext_owner {
	SLICE_EXT_OWNER_NONE = 0, /**< nobody */
	SLICE_EXT_OWNER_LIBC,     /**< the C library, glibc 2.35 or newer */
	SLICE_EXT_OWNER_SELF,     /**< slice_ext_enable() */
	SLICE_EXT_OWNER_OTHER     /**< somebody else */
};

/** What slice_ext_query() found. */
struct slice_ext_info {
	enum slice_ext_reason reason;
	enum slice_ext_owner owner;
	unsigned area_size;     /**< bytes of the rseq area; 0: none or not ours to know */
	unsigned feature_size;  /**< AT_RSEQ_FEATURE_SIZE, bytes; 0: kernel older than 6.3 */
	unsigned feature_align; /**< AT_RSEQ_ALIGN, bytes; 0: kernel older than 6.3 */
	int delay_us;           /**< longest extension, microseconds 0..100; -1: unknown */
	int enabled;            /**< 1 if the kernel has this thread enabled, else 0 */
	int error;              /**< errno of the system call that gave the reason, or 0 */
};

/** What became of a section, told by slice_ext_leave(). */
enum slice_ext_outcome {
	/** The thread is not enabled, or has no section open. */
	SLICE_EXT_INACTIVE = 0,
	/** An enclosing section is still open; its end decides. */
	SLICE_EXT_NESTED,
	/** The kernel did not want the CPU back during the section. */
	SLICE_EXT_UNDISTURBED,
	/** The section was extended; the CPU was given back just now. */
	SLICE_EXT_YIELDED,
	/** The section lost the CPU: an extension ended before the section did
	 * (time over, a system call, a real-time thread), or was refused. */
	SLICE_EXT_ENDED
};

/**
 * Find out whether sections of the calling thread can be extended.
 *
 * Changes nothing about the thread: neither enables it nor registers an area.
 * Asks the kernel by prctl GET, by a call of rseq_slice_yield, which outside a
 * section does nothing (only where the prctl is known), and, where no area is
 * known, by an rseq(2) call that cannot succeed. A seccomp filter that kills
 * on one of these three kills here.
 *
 * A filter that answers EINVAL to the prctl cannot be told from a kernel built
 * without the feature, unless the auxiliary vector advertises it. On Linux 7.x
 * a thread with a 32-byte area gives SLICE_EXT_AREA_TOO_SMALL also where the
 * feature is off at boot.
 *
 * @param[out] info  filled in completely; may be NULL
 * @return info->reason
 *
 * Any thread. Not async-signal-safe. Keeps errno.
 */
enum slice_ext_reason slice_ext_query(struct slice_ext_info *info);

/** Short lower-case name of a reason, for logs: "kernel-without". Never NULL.
 * Async-signal-safe. */
const char *slice_ext_reason_name(enum slice_ext_reason reason);

/** One sentence: what is the cause. Never NULL. Async-signal-safe. */
const char *slice_ext_reason_text(enum slice_ext_reason reason);

/** One sentence: what to do about it. Never NULL. Async-signal-safe. */
const char *slice_ext_reason_hint(enum slice_ext_reason reason);

/**
 * Enable the calling thread.
 *
 * A new thread and a new program start disabled; the child of fork(2) inherits.
 * Uses the rseq area libc registered. Where there is none, registers one, which
 * is given back by slice_ext_disable() or at thread exit.
 *
 * Does not look at kernel.sched_preempt_delay_us: a thread enabled while it is
 * 0 gets extensions as soon as it is raised.
 *
 * @return 0, also if already enabled; or the reason (> 0), and the thread is as
 *         it was. SLICE_EXT_NO_AREA: there was no memory for an area, or the
 *         kernel refused it.
 *
 * Any thread. Not async-signal-safe. Keeps errno.
 */
int slice_ext_enable(void);

/**
 * Disable the calling thread. Sections it has open end here; leaving them later
 * is harmless.
 *
 * @return 0, also if not enabled; or SLICE_EXT_BLOCKED_PRCTL when a sandbox
 *         installed meanwhile refuses, and then too no section has any effect
 *
 * Any thread. Not async-signal-safe. Keeps errno.
 */
int slice_ext_disable(void);

/** 1 if sections of the calling thread are requests to the kernel, that is
 * between slice_ext_enable() and slice_ext_disable(); else 0.
 * Async-signal-safe. */
int slice_ext_enabled(void);

/** @cond internal
 * State of a thread, part of the library's ABI because the inlines use it. Only
 * the thread itself and its signal handlers touch it. */
struct slice_ext_thread {
	/** `request` and `granted` of the thread's rseq area; NULL: not enabled */
	unsigned char *volatile ctrl;
	/** sections open; 0 while not enabled */
	volatile unsigned depth;
};

/* One slot of static TLS: no call of __tls_get_addr() and hence no allocation
 * in a signal handler. A dlopen()ed library takes it from the surplus the
 * dynamic loader keeps for this model (16 bytes of it). */
extern __thread struct slice_ext_thread slice_ext_self __attribute__((tls_model("initial-exec")));

/* Give the CPU back; the kernel has marked the section as extended. */
enum slice_ext_outcome slice_ext_yield_granted(void) __attribute__((cold));
/** @endcond */

/**
 * Open a section: from here until the matching slice_ext_leave() the thread asks
 * for an extension if it is to be preempted.
 *
 * Sections nest, the outermost counts. Does nothing in a thread that is not
 * enabled. A system call inside a section costs a running extension.
 *
 * Async-signal-safe; a handler that interrupts a section may use sections of
 * its own, which are then nested ones. A handler that leaves a section by
 * siglongjmp(3), or a longjmp(3) out of one, must close what it skips.
 * Compiler barrier, no memory barrier.
 */
static inline void slice_ext_enter(void)
{
	struct slice_ext_thread *self = &slice_ext_self;
	volatile unsigned char *ctrl = self->ctrl;
	unsigned depth;

	if (!ctrl)
		return;

	/* Count first: a handler that comes between the two stores is nested
	 * and leaves the request byte alone. */
	depth = self->depth;
	self->depth = depth + 1;
	if (depth == 0)
		ctrl[0] = 1;

	/* The critical section stays behind the request. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/**
 * Close the section opened last. If the outermost one was extended, give the
 * CPU back.
 *
 * A call without an open section is harmless.
 *
 * Async-signal-safe, keeps errno. Compiler barrier, no memory barrier.
 */
static inline enum slice_ext_outcome slice_ext_leave(void)
{
	struct slice_ext_thread *self = &slice_ext_self;
	unsigned char *area = self->ctrl;
	volatile unsigned char *ctrl = area;
	unsigned depth = self->depth;
	unsigned char requested;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);

	if (depth != 1) {
		if (depth == 0)
			return SLICE_EXT_INACTIVE;
		self->depth = depth - 1;
		return SLICE_EXT_NESTED;
	}

	/* Not volatile: the load goes away where the outcome is not used. */
	requested = area[0];

	ctrl[0] = 0;
	if (__builtin_expect(ctrl[1], 0))
		return slice_ext_yield_granted();

	/* Last: up to here a handler's section is a nested one. */
	self->depth = 0;
	return requested ? SLICE_EXT_UNDISTURBED : SLICE_EXT_ENDED;
}

/** @name Exported twins
 * The inlines as functions, for languages that cannot use a C header. @{
 */
void slice_ext_enter_call(void);                   /**< slice_ext_enter() */
enum slice_ext_outcome slice_ext_leave_call(void); /**< slice_ext_leave() */
/** @} */

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif
