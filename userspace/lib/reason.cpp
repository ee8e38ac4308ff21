// SPDX-License-Identifier: MIT
#include <slice_ext/slice_ext.h>

namespace
{

struct description {
	const char *name;
	const char *text;
	const char *hint;
};

description describe(slice_ext_reason reason)
{
	// No default: the compiler names an enumerator that is missing here.
	switch (reason) {
	case SLICE_EXT_AVAILABLE:
		return {"available", "The kernel extends the sections of this thread.",
		        "Nothing to do: call slice_ext_enable() in each thread that has sections."};
	case SLICE_EXT_KERNEL_WITHOUT:
		return {"kernel-without", "This kernel was built without time slice extension.",
		        "Boot a kernel with the slice-ext series and CONFIG_SCHED_PREEMPT_DELAY=y, "
		        "or Linux 7.0 or newer with CONFIG_RSEQ_SLICE_EXTENSION=y."};
	case SLICE_EXT_OFF_AT_BOOT:
		return {"off-at-boot",
		        "The kernel has time slice extension, but it was switched off at boot.",
		        "Remove rseq_slice_ext=0 from the kernel command line and reboot."};
	case SLICE_EXT_NO_AREA:
		return {"no-area", "Nobody has registered an rseq area for this thread.",
		        "Call slice_ext_enable(): it registers one."};
	case SLICE_EXT_OTHER_OWNER:
		return {"other-owner",
		        "Other code than the C library registered the rseq area of this thread.",
		        "Stop that code (often an allocator) from registering rseq, or let glibc be "
		        "first: do not set glibc.pthread.rseq=0 in GLIBC_TUNABLES."};
	case SLICE_EXT_AREA_TOO_SMALL:
		return {"area-too-small",
		        "This kernel (Linux 7.x) does not extend threads with the 32-byte rseq area "
		        "that the C library registered.",
		        "Start the program with GLIBC_TUNABLES=glibc.pthread.rseq=0, so that "
		        "slice_ext_enable() registers a larger one, or use glibc 2.41 or newer."};
	case SLICE_EXT_BLOCKED_RSEQ:
		return {"blocked-rseq", "A sandbox (seccomp filter) refuses the system call rseq.",
		        "Allow rseq in the seccomp profile, or let glibc register the area: do not "
		        "set glibc.pthread.rseq=0 in GLIBC_TUNABLES."};
	case SLICE_EXT_BLOCKED_PRCTL:
		return {"blocked-prctl", "A sandbox (seccomp filter) refuses prctl operation 79.",
		        "Allow prctl with first argument 79 in the seccomp profile. It helps only on "
		        "a kernel that advertises an rseq feature size of 33 or more."};
	case SLICE_EXT_BLOCKED_YIELD:
		return {"blocked-yield",
		        "A sandbox (seccomp filter) refuses system call 471, rseq_slice_yield.",
		        "Allow system call 471 in the seccomp profile, by number where the profile "
		        "compiler does not know the name."};
	case SLICE_EXT_SYSCTL_ZERO:
		return {"sysctl-zero",
		        "kernel.sched_preempt_delay_us is 0: no section is extended.",
		        "Set it to 1..100 microseconds: sysctl -w kernel.sched_preempt_delay_us=30"};
	case SLICE_EXT_UNSUPPORTED_ARCH:
		return {"unsupported-arch",
		        "No kernel has time slice extension on this architecture.",
		        "Run on x86-64. Here sections do nothing."};
	}
	return {"unknown", "This is not a reason the library knows.",
	        "Use the library the program was built for, or a newer one."};
}

} // namespace

extern "C" {

const char *slice_ext_reason_name(slice_ext_reason reason)
{
	return describe(reason).name;
}

const char *slice_ext_reason_text(slice_ext_reason reason)
{
	return describe(reason).text;
}

const char *slice_ext_reason_hint(slice_ext_reason reason)
{
	return describe(reason).hint;
}

} // extern "C"
