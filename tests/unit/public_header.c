/* SPDX-License-Identifier: MIT */
/* The whole public C API from a translation unit that includes nothing else first,
 * on the kernel it runs on. Built as C and as C++. */
#include <slice_ext/slice_ext.h>

#if defined(_GNU_SOURCE) && !defined(__cplusplus)
#error "the header defines _GNU_SOURCE"
#endif

#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int condition, const char *what)
{
	if (!condition) {
		printf("FAILED: %s\n", what);
		failures++;
	}
}
#define EXPECT(condition) expect(condition, #condition)

int main(void)
{
	struct slice_ext_info info;
	enum slice_ext_reason reason;
	int enabled;

	memset(&info, 0x5a, sizeof(info));
	reason = slice_ext_query(&info);
	printf("%s: %s\n%s\n", slice_ext_reason_name(reason), slice_ext_reason_text(reason),
	       slice_ext_reason_hint(reason));
	EXPECT(info.reason == reason);
	EXPECT(info.enabled == 0);
	EXPECT(info.delay_us >= -1 && info.delay_us <= SLICE_EXT_ABI_SYSCTL_MAX_US);
	EXPECT(info.owner >= SLICE_EXT_OWNER_NONE && info.owner <= SLICE_EXT_OWNER_OTHER);
	EXPECT(!slice_ext_enabled());

	enabled = slice_ext_enable();
	EXPECT(enabled == 0 || enabled == (int)reason || reason == SLICE_EXT_NO_AREA);
	EXPECT(slice_ext_enabled() == (enabled == 0));

	slice_ext_enter();
	slice_ext_enter_call();
	EXPECT(slice_ext_leave() == (enabled == 0 ? SLICE_EXT_NESTED : SLICE_EXT_INACTIVE));
	if (enabled == 0)
		EXPECT(slice_ext_leave_call() != SLICE_EXT_INACTIVE);
	EXPECT(slice_ext_leave_call() == SLICE_EXT_INACTIVE);

	EXPECT(slice_ext_disable() == 0);
	EXPECT(!slice_ext_enabled());
	return failures != 0;
}
