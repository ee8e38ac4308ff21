// SPDX-License-Identifier: MIT
// A program that knows nothing of the library loads a plug-in that uses it, from a
// thread that outlives the plug-in.
#include <gtest/gtest.h>

#include <thread>

#include <dlfcn.h>

namespace
{

TEST(Dlopen, ThreadOutlivesThePlugin)
{
	std::thread([] {
		void *plugin = dlopen(SLICE_EXT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
		ASSERT_NE(plugin, nullptr) << dlerror();
		auto run = reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_run"));
		ASSERT_NE(run, nullptr);
		EXPECT_EQ(run(), 1);
		EXPECT_EQ(dlclose(plugin), 0);
		// The code of its thread exit handler must not go away.
		EXPECT_NE(dlopen("libslice-ext.so.0", RTLD_NOW | RTLD_NOLOAD), nullptr);
	}).join();
}

} // namespace
