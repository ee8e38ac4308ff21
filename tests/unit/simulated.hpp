// SPDX-License-Identifier: MIT
// A kernel and a libc as the library sees them, for one thread, with the rules of
// the real ones. A test sets the public members to what it needs, uses the
// library, and plays the kernel's part by grant(), switch_out() and the like.
#ifndef SLICE_EXT_UNIT_SIMULATED_HPP
#define SLICE_EXT_UNIT_SIMULATED_HPP

#include "lib/system.hpp"

#include <string>
#include <vector>

class Simulated
{
      public:
	// Installs itself as the library's surroundings. One at a time.
	Simulated();
	~Simulated();
	Simulated(const Simulated &) = delete;
	Simulated &operator=(const Simulated &) = delete;

	enum class Kernel {
		without, // stock 6.12 or 6.18
		series,  // the slice-ext series
		linux7x, // Linux 7.x: no legacy areas
		linux7x_option_off
	};
	Kernel kernel = Kernel::series;
	bool on_at_boot = true;
	int delay_us = 30; // the series' sysctl
	void unsupported_arch()
	{
		system_.supported_arch = false;
	}

	// What a sandbox answers instead of the kernel: an errno, 0 lets through.
	int deny_prctl = 0;
	int deny_rseq = 0;
	int deny_yield = 0;
	// The same, for SET or for the registration itself only.
	int deny_set = 0;
	int deny_register = 0;

	// libc of a kind: the size it announces and the size it registers.
	void libc_registers(unsigned announced, unsigned registered);
	void libc_announces_without_registering(unsigned announced);
	// Another library got there first.
	void other_registers();

	// The thread, as the kernel has it.
	bool registered() const
	{
		return area_ != nullptr;
	}
	slice_ext_abi_rseq *area() const
	{
		return area_;
	}
	unsigned area_size() const
	{
		return area_size_;
	}
	bool enabled = false;
	uint32_t cpu_id_before = 0; // of the area that was registered last

	// The kernel's part of the protocol. A grant is given only if asked for.
	bool grant();
	void end_grant();
	void switch_out()
	{
		end_grant();
	}
	unsigned yields_in_grant = 0;
	unsigned yields_outside = 0;

	// Every call the library made, "prctl SET 1", in order.
	std::vector<std::string> calls;
	unsigned count(const std::string &call) const;

	slice_ext_abi_rseq libc_memory = {};
	slice_ext_abi_rseq other_memory = {};

      private:
	unsigned feature_size() const;
	long prctl(unsigned long operation, unsigned long argument);
	long rseq(void *area, unsigned size, int flags);
	long yield();
	bool take(slice_ext_abi_rseq *area, unsigned size);

	slice_ext_abi_rseq *area_ = nullptr;
	unsigned area_size_ = 0;
	unsigned libc_announced_ = 0;
	bool granted_ = false;
	slice_ext_internal::system system_;
};

#endif
