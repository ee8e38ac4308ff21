/* SPDX-License-Identifier: MIT */
/* A spinlock whose holder asks for an extension, and what became of its sections.
 *
 *     cc -std=c99 spinlock.c $(pkg-config --cflags --libs slice-ext) -pthread
 */
#include <slice_ext/slice_ext.h>

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, SECTIONS = 50000 };

static char lock_word;
static unsigned long counter;

static unsigned long outcomes[THREADS][SLICE_EXT_ENDED + 1];

static void lock(void)
{
	for (;;) {
		/* Ask first, so that not even the instruction after the lock
		 * was taken is without the request. */
		slice_ext_enter();
		if (!__atomic_test_and_set(&lock_word, __ATOMIC_ACQUIRE))
			return;

		/* A waiter has no claim to more time: the holder needs a CPU. */
		slice_ext_leave();
		while (__atomic_load_n(&lock_word, __ATOMIC_RELAXED))
			;
	}
}

static enum slice_ext_outcome unlock(void)
{
	/* Free the lock first: leaving may give the CPU away. */
	__atomic_clear(&lock_word, __ATOMIC_RELEASE);
	return slice_ext_leave();
}

static void *work(void *arg)
{
	unsigned long *mine = (unsigned long *)arg;
	int i;

	/* Per thread. A refusal changes nothing but the speed. */
	slice_ext_enable();

	for (i = 0; i < SECTIONS; i++) {
		lock();
		counter++;
		mine[unlock()]++;
	}
	return NULL;
}

int main(void)
{
	static const char *const names[] = {"inactive", "nested", "undisturbed", "yielded",
	                                    "ended"};
	enum slice_ext_reason reason = slice_ext_query(NULL);
	pthread_t threads[THREADS];
	int i, o;

	printf("%s\n%s\n", slice_ext_reason_text(reason), slice_ext_reason_hint(reason));

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, outcomes[i]) != 0)
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);

	for (o = SLICE_EXT_INACTIVE; o <= SLICE_EXT_ENDED; o++) {
		unsigned long sum = 0;

		for (i = 0; i < THREADS; i++)
			sum += outcomes[i][o];
		printf("%-12s %lu\n", names[o], sum);
	}
	return counter == (unsigned long)THREADS * SECTIONS ? 0 : 1;
}
