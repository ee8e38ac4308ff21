/* SPDX-License-Identifier: MIT */
/**
 * @file abi.h
 * The numbers of the kernel interface, the only place that has them.
 *
 * The interface is the one of Linux 7.x (CONFIG_RSEQ_SLICE_EXTENSION); the
 * slice-ext series brings it to the long-term kernels. Where the two differ,
 * the comment says so. Nothing here depends on the kernel or libc headers
 * installed at build time.
 *
 * C99 and C++17.
 */
#ifndef SLICE_EXT_ABI_H
#define SLICE_EXT_ABI_H

#include <stddef.h>
#include <stdint.h>

/** @name struct rseq
 * Offsets and sizes in bytes. @{
 */
#define SLICE_EXT_ABI_RSEQ_CPU_ID 4       /**< u32, negative as int32_t: not registered */
#define SLICE_EXT_ABI_RSEQ_FLAGS 16       /**< u32, written by the kernel only */
#define SLICE_EXT_ABI_RSEQ_SLICE_CTRL 28  /**< u32 holding the bytes below */
#define SLICE_EXT_ABI_RSEQ_REQUEST 28     /**< u8, user writes 1 and 0; kernel writes 0 */
#define SLICE_EXT_ABI_RSEQ_GRANTED 29     /**< u8, kernel writes, user reads */
#define SLICE_EXT_ABI_RSEQ_RESERVED 32    /**< u8, place holder */
#define SLICE_EXT_ABI_RSEQ_END 33         /**< feature size of a kernel that has it on */
#define SLICE_EXT_ABI_RSEQ_ALIGN 64       /**< alignment of areas longer than the legacy one */
#define SLICE_EXT_ABI_RSEQ_LEGACY_SIZE 32 /**< area of glibc 2.35..2.40 */
#define SLICE_EXT_ABI_RSEQ_BASE_END 28    /**< feature size of 6.12 and 6.18 without it */
#define SLICE_EXT_ABI_RSEQ_BASE_ALIGN 32  /**< alignment they ask for */
/** @} */

/** @name struct rseq, flags word
 * Status for user space, written at registration and by the prctl. @{
 */
#define SLICE_EXT_ABI_FLAG_AVAILABLE (1u << 4)
#define SLICE_EXT_ABI_FLAG_ENABLED (1u << 5)
/** @} */

/** @name rseq(2)
 * @{
 */
#define SLICE_EXT_ABI_RSEQ_UNREGISTER (1 << 0)
#define SLICE_EXT_ABI_RSEQ_SLICE_EXT_DEFAULT_ON (1 << 1) /**< register enabled */
/** The value glibc uses on x86. An area is unregistered with the signature it
 * was registered with; nothing else depends on it as long as no restartable
 * sequence runs on the area. */
#define SLICE_EXT_ABI_RSEQ_SIGNATURE 0x53053053u
/** @} */

/** @name Auxiliary vector
 * getauxval(3) types; the value is 0 where the kernel does not tell. @{
 */
#define SLICE_EXT_ABI_AT_RSEQ_FEATURE_SIZE 27
#define SLICE_EXT_ABI_AT_RSEQ_ALIGN 28
/** @} */

/** @name prctl(2)
 * `prctl(PR, GET, 0, 0, 0)` gives 1 or 0; `prctl(PR, SET, ENABLE or 0, 0, 0)`.
 * Both act on the calling thread. @{
 */
#define SLICE_EXT_ABI_PR 79
#define SLICE_EXT_ABI_PR_GET 1
#define SLICE_EXT_ABI_PR_SET 2
#define SLICE_EXT_ABI_PR_ENABLE 1
/** @} */

/** Kernel-internal ENOTSUPP, which no libc has a name for: SET where the
 * feature is switched off at boot; on 7.x also SET with a legacy area, and SET
 * or GET in a kernel built without the option. */
#define SLICE_EXT_ABI_ENOTSUPP 524

/** rseq_slice_yield(2): no arguments; 1 if the thread gave up its CPU inside a
 * live grant, else 0. */
#if defined(__alpha__)
#define SLICE_EXT_ABI_NR_YIELD 581
#elif defined(__x86_64__) && defined(__ILP32__)
#define SLICE_EXT_ABI_NR_YIELD (0x40000000 + 471)
#else
#define SLICE_EXT_ABI_NR_YIELD 471
#endif

/** rseq(2), for C libraries whose <sys/syscall.h> has no SYS_rseq. */
#if defined(__x86_64__) && !defined(__ILP32__)
#define SLICE_EXT_ABI_NR_RSEQ 334
#elif defined(__i386__)
#define SLICE_EXT_ABI_NR_RSEQ 386
#endif

/** Architectures on which a kernel with the interface exists: x86 (this
 * project's series and Linux 7.x), riscv, s390 and loongarch (7.x). */
#if defined(__linux__) && (defined(__x86_64__) || defined(__i386__) || defined(__riscv) ||         \
                           defined(__s390__) || defined(__loongarch__))
#define SLICE_EXT_ABI_ARCH 1
#else
#define SLICE_EXT_ABI_ARCH 0
#endif

/** @name Files
 * The first three are the slice-ext series'; 7.x has the last one. @{
 */
#define SLICE_EXT_ABI_SYSCTL "/proc/sys/kernel/sched_preempt_delay_us"
#define SLICE_EXT_ABI_SYSCTL_MAX_US 100
#define SLICE_EXT_ABI_PROC_COUNTERS "/proc/preempt_delay"
#define SLICE_EXT_ABI_DEBUGFS_UNGUARDED "/sys/kernel/debug/sched/preempt_delay_unguarded"
#define SLICE_EXT_ABI_DEBUGFS_7X_NSEC "/sys/kernel/debug/rseq/slice_ext_nsec"
/** @} */

/** The user area of rseq(2) up to its feature size.
 *
 * All fields but `rseq_cs` and `request` are the kernel's to write. Before
 * registration `cpu_id` must read as RSEQ_CPU_ID_UNINITIALIZED, that is -1. */
struct slice_ext_abi_rseq {
	uint32_t cpu_id_start;
	uint32_t cpu_id;
	uint64_t rseq_cs;
	uint32_t flags;
	uint32_t node_id;
	uint32_t mm_cid;
	uint8_t request; /**< user: 1 asks for an extension, 0 withdraws it */
	uint8_t granted; /**< kernel: 1 while an extension runs */
	uint16_t slice_reserved;
	uint8_t reserved;
	uint8_t end[31];
};

#if defined(__cplusplus)
#define SLICE_EXT_ABI_ASSERT(name, condition) static_assert(condition, #name)
#else
/* C99 has no _Static_assert: a false condition makes the array size negative. */
#define SLICE_EXT_ABI_ASSERT(name, condition)                                                      \
	typedef char slice_ext_abi_assert_##name[(condition) ? 1 : -1]
#endif

SLICE_EXT_ABI_ASSERT(cpu_id,
                     offsetof(struct slice_ext_abi_rseq, cpu_id) == SLICE_EXT_ABI_RSEQ_CPU_ID);
SLICE_EXT_ABI_ASSERT(rseq_cs, offsetof(struct slice_ext_abi_rseq, rseq_cs) == 8);
SLICE_EXT_ABI_ASSERT(flags, offsetof(struct slice_ext_abi_rseq, flags) == SLICE_EXT_ABI_RSEQ_FLAGS);
SLICE_EXT_ABI_ASSERT(node_id, offsetof(struct slice_ext_abi_rseq, node_id) == 20);
SLICE_EXT_ABI_ASSERT(mm_cid, offsetof(struct slice_ext_abi_rseq, mm_cid) == 24);
SLICE_EXT_ABI_ASSERT(request,
                     offsetof(struct slice_ext_abi_rseq, request) == SLICE_EXT_ABI_RSEQ_REQUEST);
SLICE_EXT_ABI_ASSERT(granted,
                     offsetof(struct slice_ext_abi_rseq, granted) == SLICE_EXT_ABI_RSEQ_GRANTED);
SLICE_EXT_ABI_ASSERT(reserved,
                     offsetof(struct slice_ext_abi_rseq, reserved) == SLICE_EXT_ABI_RSEQ_RESERVED);
SLICE_EXT_ABI_ASSERT(end, offsetof(struct slice_ext_abi_rseq, end) == SLICE_EXT_ABI_RSEQ_END);
SLICE_EXT_ABI_ASSERT(size, sizeof(struct slice_ext_abi_rseq) == SLICE_EXT_ABI_RSEQ_ALIGN);
SLICE_EXT_ABI_ASSERT(ctrl,
                     SLICE_EXT_ABI_RSEQ_REQUEST == SLICE_EXT_ABI_RSEQ_SLICE_CTRL &&
                             SLICE_EXT_ABI_RSEQ_SLICE_CTRL + 4 == SLICE_EXT_ABI_RSEQ_LEGACY_SIZE);

#undef SLICE_EXT_ABI_ASSERT

#endif
