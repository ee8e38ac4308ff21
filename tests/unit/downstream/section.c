/* SPDX-License-Identifier: MIT */
#include <slice_ext/slice_ext.h>

#include <stdio.h>

int main(void)
{
	int reason = slice_ext_enable();

	slice_ext_enter();
	slice_ext_leave();
	puts(slice_ext_reason_name((enum slice_ext_reason)reason));
	return 0;
}
