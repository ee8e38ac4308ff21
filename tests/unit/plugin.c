/* SPDX-License-Identifier: MIT */
/* Loaded by dlopen: its sections, with the inlines compiled into it. */
#include <slice_ext/slice_ext.h>

int plugin_run(void);

int plugin_run(void)
{
	int i;

	slice_ext_enable();
	for (i = 0; i < 1000; i++) {
		slice_ext_enter();
		slice_ext_leave();
	}
	return slice_ext_query(NULL) <= SLICE_EXT_UNSUPPORTED_ARCH;
}
