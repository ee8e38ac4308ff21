// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_SCOPED_SYSCTL_HPP
#define SLICE_EXT_TOOL_SCOPED_SYSCTL_HPP

#include <string>

namespace slice_ext::tool
{

// Gives a sysctl another value for the life of the object and then its old one back.
//
// It can only do so if the process reaches the destructor: a caller that may get signals must turn
// them into an orderly end (see SignalWatcher). Nothing helps against SIGKILL.
class ScopedSysctl
{
      public:
	// Throws std::system_error when the file cannot be read or written; its code tells a
	// missing file (ENOENT), a missing right (EACCES, EPERM, EROFS) and a refused value
	// (EINVAL) apart.
	ScopedSysctl(std::string path, long value);
	~ScopedSysctl();
	ScopedSysctl(const ScopedSysctl &) = delete;
	ScopedSysctl &operator=(const ScopedSysctl &) = delete;

      private:
	std::string path_;
	std::string old_text_;
};

} // namespace slice_ext::tool

#endif
