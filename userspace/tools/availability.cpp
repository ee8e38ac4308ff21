// SPDX-License-Identifier: MIT
#include "availability.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <thread>

#include "exit_status.hpp"
#include "refusal.hpp"

namespace slice_ext::tool
{

slice_ext_reason section_availability()
{
	slice_ext_info info;
	slice_ext_query(&info);
	int enabling = SLICE_EXT_AVAILABLE;
	std::thread([&enabling] { enabling = slice_ext_enable(); }).join();
	if (enabling != SLICE_EXT_AVAILABLE)
		return static_cast<slice_ext_reason>(enabling);
	if (info.delay_us == 0)
		return SLICE_EXT_SYSCTL_ZERO;
	return info.reason == SLICE_EXT_NO_AREA ? SLICE_EXT_AVAILABLE : info.reason;
}

std::unique_ptr<ScopedSysctl> set_delay(unsigned delay_us, const char *option)
{
	try {
		return std::make_unique<ScopedSysctl>(SLICE_EXT_ABI_SYSCTL, delay_us);
	} catch (const std::system_error &error) {
		const int number = error.code().value();
		if (number == ENOENT)
			return nullptr;
		const bool right = number == EACCES || number == EPERM || number == EROFS;
		throw Refusal{right ? kExitNoPermission : kExitFailed,
		              std::string(option) + ": " + error.what() +
		                      (right ? "; run it as root" : "")};
	}
}

} // namespace slice_ext::tool
