// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_DEMO_PROGRESS_HPP
#define SLICE_EXT_TOOL_DEMO_PROGRESS_HPP

#include <chrono>
#include <cstdint>
#include <string>

namespace slice_ext::tool
{

// What the demo is doing right now, on standard error: one line that changes on a terminal, a line
// a second elsewhere, nothing when quiet.
class Progress
{
      public:
	Progress(bool quiet, double phase_seconds);
	~Progress();
	Progress(const Progress &) = delete;
	Progress &operator=(const Progress &) = delete;

	// How often update() is worth calling.
	std::chrono::nanoseconds interval() const
	{
		return interval_;
	}

	void say(const std::string &text);
	void begin_phase(unsigned number, unsigned count, bool extended);
	void update(double elapsed_seconds, std::uint64_t sections);
	// Leaves the cursor at the start of an empty line.
	void finish();

      private:
	void show(const std::string &text);

	const bool quiet_;
	const bool terminal_;
	const double phase_seconds_;
	const std::chrono::nanoseconds interval_;
	std::string phase_;
	std::size_t shown_ = 0; // width of what stands on the terminal's line
};

} // namespace slice_ext::tool

#endif
