// SPDX-License-Identifier: MIT
#include "simulated.hpp"

#include <slice_ext/slice_ext.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace
{

Simulated *current;

// The end of user space on x86-64.
constexpr uintptr_t user_space_end = uintptr_t{1} << 47;

} // namespace

Simulated::Simulated()
{
	current = this;
	libc_memory.cpu_id = UINT32_MAX;
	other_memory.cpu_id = UINT32_MAX;

	system_.supported_arch = true;
	system_.prctl = [](unsigned long operation, unsigned long argument) {
		return current->prctl(operation, argument);
	};
	system_.rseq = [](void *area, unsigned size, int flags) {
		return current->rseq(area, size, flags);
	};
	system_.yield = [] { return current->yield(); };
	system_.auxv = [](unsigned long type) -> unsigned long {
		if (type == SLICE_EXT_ABI_AT_RSEQ_FEATURE_SIZE)
			return current->feature_size();
		return current->feature_size() == SLICE_EXT_ABI_RSEQ_END
		               ? SLICE_EXT_ABI_RSEQ_ALIGN
		               : SLICE_EXT_ABI_RSEQ_BASE_ALIGN;
	};
	system_.libc = []() -> slice_ext_internal::libc_area {
		if (current->libc_announced_ == 0)
			return {nullptr, 0};
		return {&current->libc_memory, current->libc_announced_};
	};
	system_.delay_us = [] {
		return current->kernel == Kernel::series ? current->delay_us : -1;
	};
	slice_ext_internal::current_system = &system_;
}

Simulated::~Simulated()
{
	slice_ext_disable();
	slice_ext_internal::current_system = &slice_ext_internal::real_system;
	current = nullptr;
}

unsigned Simulated::feature_size() const
{
	switch (kernel) {
	case Kernel::without:
		return SLICE_EXT_ABI_RSEQ_BASE_END;
	case Kernel::series:
		return on_at_boot ? SLICE_EXT_ABI_RSEQ_END : SLICE_EXT_ABI_RSEQ_BASE_END;
	case Kernel::linux7x:
	case Kernel::linux7x_option_off:
		return SLICE_EXT_ABI_RSEQ_END;
	}
	abort();
}

bool Simulated::take(slice_ext_abi_rseq *area, unsigned size)
{
	const bool offered = on_at_boot &&
	                     (kernel == Kernel::series ||
	                      (kernel == Kernel::linux7x && size > SLICE_EXT_ABI_RSEQ_LEGACY_SIZE));

	area_ = area;
	area_size_ = size;
	enabled = false;
	cpu_id_before = area->cpu_id;
	area->cpu_id = 0;
	area->flags = offered ? SLICE_EXT_ABI_FLAG_AVAILABLE : 0;
	return offered;
}

void Simulated::libc_registers(unsigned announced, unsigned registered)
{
	libc_announced_ = announced;
	take(&libc_memory, registered);
}

void Simulated::libc_announces_without_registering(unsigned announced)
{
	libc_announced_ = announced;
}

void Simulated::other_registers()
{
	take(&other_memory, SLICE_EXT_ABI_RSEQ_LEGACY_SIZE);
}

long Simulated::prctl(unsigned long operation, unsigned long argument)
{
	calls.push_back(operation == SLICE_EXT_ABI_PR_GET
	                        ? "prctl GET"
	                        : "prctl SET " + std::to_string(argument));
	if (deny_prctl)
		return -deny_prctl;
	if (operation == SLICE_EXT_ABI_PR_SET && deny_set)
		return -deny_set;

	if (kernel == Kernel::without)
		return -EINVAL;
	if (kernel == Kernel::linux7x_option_off)
		return -SLICE_EXT_ABI_ENOTSUPP;
	if (operation == SLICE_EXT_ABI_PR_GET)
		return argument ? -EINVAL : enabled;
	if (operation != SLICE_EXT_ABI_PR_SET || argument > SLICE_EXT_ABI_PR_ENABLE)
		return -EINVAL;
	if (!on_at_boot)
		return -SLICE_EXT_ABI_ENOTSUPP;
	if (!area_)
		return -ENXIO;
	if (!(area_->flags & SLICE_EXT_ABI_FLAG_AVAILABLE))
		return -SLICE_EXT_ABI_ENOTSUPP;
	if (argument != SLICE_EXT_ABI_PR_ENABLE)
		end_grant();
	else if (!enabled)
		area_->request = area_->granted = 0;
	enabled = argument == SLICE_EXT_ABI_PR_ENABLE;
	area_->flags = SLICE_EXT_ABI_FLAG_AVAILABLE | (enabled ? SLICE_EXT_ABI_FLAG_ENABLED : 0);
	return 0;
}

long Simulated::rseq(void *area, unsigned size, int flags)
{
	const auto address = reinterpret_cast<uintptr_t>(area);

	if (flags == SLICE_EXT_ABI_RSEQ_UNREGISTER)
		calls.push_back("rseq unregister");
	else
		calls.push_back(address < user_space_end ? "rseq register" : "rseq probe");
	if (deny_rseq)
		return -deny_rseq;

	if (flags == SLICE_EXT_ABI_RSEQ_UNREGISTER) {
		if (area != area_ || size != area_size_)
			return -EINVAL;
		area_->cpu_id = UINT32_MAX;
		area_ = nullptr;
		area_size_ = 0;
		enabled = false;
		return 0;
	}
	if (flags != 0)
		return -EINVAL;
	if (area_)
		return area == area_ && size == area_size_ ? -EBUSY : -EINVAL;
	if (size < SLICE_EXT_ABI_RSEQ_LEGACY_SIZE)
		return -EINVAL;
	if (size == SLICE_EXT_ABI_RSEQ_LEGACY_SIZE
	            ? address % SLICE_EXT_ABI_RSEQ_LEGACY_SIZE != 0
	            : address % SLICE_EXT_ABI_RSEQ_ALIGN != 0 || size < feature_size())
		return -EINVAL;
	if (address >= user_space_end)
		return -EFAULT;
	if (deny_register)
		return -deny_register;
	take(static_cast<slice_ext_abi_rseq *>(area), size);
	return 0;
}

long Simulated::yield()
{
	calls.push_back("yield");
	if (deny_yield)
		return -deny_yield;
	if (kernel == Kernel::without)
		return -ENOSYS;
	if (!granted_) {
		yields_outside++;
		return 0;
	}
	yields_in_grant++;
	end_grant();
	return 1;
}

bool Simulated::grant()
{
	if (!area_ || !enabled || !area_->request || granted_)
		return false;
	area_->request = 0;
	area_->granted = 1;
	granted_ = true;
	return true;
}

void Simulated::end_grant()
{
	granted_ = false;
	// Nobody else's bytes: allocators use them where the thread did not opt in.
	if (area_ && enabled)
		area_->request = area_->granted = 0;
}

unsigned Simulated::count(const std::string &call) const
{
	return static_cast<unsigned>(std::count(calls.begin(), calls.end(), call));
}
