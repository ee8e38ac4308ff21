// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TESTS_UNIT_TOOL_SCRATCH_DIR_HPP
#define SLICE_EXT_TESTS_UNIT_TOOL_SCRATCH_DIR_HPP

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

// A directory of a test's own, gone with the object.
class ScratchDir
{
      public:
	ScratchDir()
	{
		std::string pattern =
			std::filesystem::temp_directory_path() / "slice-ext-unit-XXXXXX";
		if (mkdtemp(pattern.data()) == nullptr)
			throw std::runtime_error("mkdtemp: " + pattern);
		path_ = pattern;
	}
	~ScratchDir()
	{
		std::error_code ignored;
		std::filesystem::remove_all(path_, ignored);
	}
	ScratchDir(const ScratchDir &) = delete;
	ScratchDir &operator=(const ScratchDir &) = delete;

	std::string path() const
	{
		return path_;
	}

	// Writes a file, with the directories above it.
	std::string put(const std::string &name, const std::string &text) const
	{
		const std::filesystem::path file = path_ / std::filesystem::path(name);
		std::filesystem::create_directories(file.parent_path());
		std::ofstream(file) << text;
		return file;
	}

      private:
	std::filesystem::path path_;
};

#endif
