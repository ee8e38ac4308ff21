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
	std::vector<std::pair<double, double>> points;
};

struct Plot {
	std::string title;
	std::string x, y; // labels with their units
	bool log_y = false;
	bool log_x = false;
	bool lines = false; // points joined; otherwise steps or dots
	bool dots = false;
	std::vector<Series> series;
};

// An <svg> element, made by gnuplot. Throws std::runtime_error: no gnuplot, or it failed.
std::string to_svg(const Plot &plot);

} // namespace slice_ext::tool::latency

#endif
