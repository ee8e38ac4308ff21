// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_LATENCY_PLOT_HPP
#define SLICE_EXT_TOOL_LATENCY_PLOT_HPP

#include <string>
#include <utility>
#include <vector>

namespace slice_ext::tool::latency
{

struct Series {
	std::string title;
	unsigned colour = 0; // the same for the same thing in all plots
	std::vector<std::pair<double, double>> points;
};

struct Plot {
	std::string title;
	std::string x, y; // labels with their units
	bool log_y = false;
	bool lines = false; // points joined; otherwise steps or dots
	bool dots = false;
	std::vector<Series> series;
};

// An <svg> element, made by gnuplot; its ids begin with PREFIX, because a document may have several.
// Throws std::runtime_error: no gnuplot, or it failed.
std::string to_svg(const Plot &plot, const std::string &prefix);

} // namespace slice_ext::tool::latency

#endif
