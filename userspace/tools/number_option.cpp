// SPDX-License-Identifier: MIT
#include "number_option.hpp"

#include <sstream>
#include <string>

namespace slice_ext::tool
{

CLI::Validator number_between(double low, double high)
{
	return CLI::Validator(
		[low, high](std::string &text) -> std::string {
			double value = 0;
			if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
				return "";
			std::ostringstream error;
			error << text << " is not a number from " << low << " to " << high;
			return error.str();
		},
		"NUMBER");
}

} // namespace slice_ext::tool
