// SPDX-License-Identifier: MIT
#include <slice_ext/slice_ext.hpp>

#include <cstdio>
#include <mutex>

int main()
{
	const slice_ext::thread_scope thread;
	slice_ext::extended_lock<std::mutex> lock;

	const std::lock_guard guard(lock);
	std::puts(slice_ext_reason_name(thread.why()));
}
