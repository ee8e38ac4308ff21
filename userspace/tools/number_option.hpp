// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_NUMBER_OPTION_HPP
#define SLICE_EXT_TOOL_NUMBER_OPTION_HPP

#include <CLI/CLI.hpp>

namespace slice_ext::tool
{

// A decimal number in LOW..HIGH, both included. Unlike CLI::Range it does not let "nan" pass.
CLI::Validator number_between(double low, double high);

} // namespace slice_ext::tool

#endif
