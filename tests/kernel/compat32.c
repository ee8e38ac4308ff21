/* SPDX-License-Identifier: MIT */
/*
 * A 32-bit program without any library: registers an area, opts in, is granted and yields.
 *
 * Ends with 0, or with the number of the check that failed.
 *
 * Needs somebody who asks for the CPU now and then.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
	nr_exit = 1,
	nr_getpid = 20,
	nr_prctl = 172,
	nr_rseq = 386,
	nr_yield = 471,

	pr_slice = 79,
	pr_get = 1,
	pr_set = 2,
	pr_enable = 1,

	rounds = 20,
	tries = 500,
};

static long call(long number, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
	                 : "memory");
	return result;
}

static u64 ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static volatile u8 area[64] __attribute__((aligned(64)));
#define request area[28]
#define granted area[29]

/* Some seconds of any machine. */
static const u64 patience = 10000000000;

static int get_grant(void)
{
	const u64 until = ticks() + patience;

	do {
		if (granted)
			return 1;
		if (!request)
			request = 1;
	} while (ticks() < until);
	return 0;
}

static int check(void)
{
	int yielded = 0, ended = 0, i;
	volatile u32 *const flags = (volatile u32 *)(area + 16);

	if (call(nr_prctl, pr_slice, pr_get, 0, 0, 0) != 0)
		return 2;
	if (call(nr_rseq, (long)area, sizeof(area), 0, 0x53053053, 0) != 0)
		return 3;
	if (*flags != 0x10)
		return 4;
	if (call(nr_prctl, pr_slice, pr_set, pr_enable, 0, 0) != 0)
		return 5;
	if (*flags != 0x30 || call(nr_prctl, pr_slice, pr_get, 0, 0, 0) != 1)
		return 6;
	if (call(nr_yield, 0, 0, 0, 0, 0) != 0)
		return 7;

	/* Left by the call made for it. */
	for (i = 0; i < tries && yielded < rounds; i++) {
		if (!get_grant())
			return 8;
		request = 0;
		yielded += call(nr_yield, 0, 0, 0, 0, 0) == 1;
		if (request || granted)
			return 9;
	}
	/* Ended by another one. */
	for (i = 0; i < tries && ended < rounds; i++) {
		if (!get_grant())
			return 10;
		request = 0;
		if (call(nr_getpid, 0, 0, 0, 0, 0) <= 0)
			return 11;
		if (request || granted)
			return 12;
		if (call(nr_yield, 0, 0, 0, 0, 0) != 0)
			return 13;
		ended++;
	}
	return yielded == rounds && ended == rounds ? 0 : 14;
}

/* The stack may not be aligned as the compiler expects it. */
__attribute__((force_align_arg_pointer, noreturn, used)) void _start(void)
{
	call(nr_exit, check(), 0, 0, 0, 0);
	__builtin_unreachable();
}
