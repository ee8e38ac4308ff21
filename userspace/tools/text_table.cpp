// SPDX-License-Identifier: MIT
#include "text_table.hpp"

#include <algorithm>

namespace slice_ext::tool
{

std::string text_table(const std::vector<std::vector<std::string>> &rows)
{
	std::vector<std::size_t> widths(rows.front().size(), 0);
	for (const auto &row : rows)
		for (std::size_t i = 0; i < row.size(); ++i)
			widths[i] = std::max(widths[i], row[i].size());
	std::string text;
	for (const auto &row : rows) {
		std::string line = row[0] + std::string(widths[0] - row[0].size(), ' ');
		for (std::size_t i = 1; i < row.size(); ++i)
			line += "  " + std::string(widths[i] - row[i].size(), ' ') + row[i];
		line.erase(line.find_last_not_of(' ') + 1);
		text += line + '\n';
	}
	return text;
}

} // namespace slice_ext::tool
