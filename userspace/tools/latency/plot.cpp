// SPDX-License-Identifier: MIT
#include "latency/plot.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace slice_ext::tool::latency
{

namespace
{

// Tell each other apart for the colour-blind, too (Okabe and Ito).
constexpr const char *kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                    "#E69F00", "#56B4E9", "#000000", "#999999"};

// In single quotes gnuplot takes everything as it is; in double ones it would run commands.
std::string quoted(const std::string &text)
{
	std::string made = "'";
	for (const char letter : text) {
		if (letter == '\'')
			made += '\'';
		made += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
	}
	return made + "'";
}

std::string script_of(const Plot &plot)
{
	std::ostringstream script;
	script << "set terminal svg noenhanced size 860,400 font 'sans-serif,13' background '#ffffff'\n"
	       << "set title " << quoted(plot.title) << "\n"
	       << "set xlabel " << quoted(plot.x) << "\nset ylabel " << quoted(plot.y) << "\n"
	       << "set grid lc rgb '#dddddd'\nset key outside right top\nset border 3\n"
	       << "set xtics nomirror\nset ytics nomirror\n";
	if (plot.log_y)
		script << "set logscale y\nset yrange [0.5:*]\n";
	else
		script << "set yrange [0:*]\n";
	for (std::size_t i = 0; i < plot.series.size(); ++i) {
		script << "$data" << i << " << EOD\n";
		for (const auto &[x, y] : plot.series[i].points)
			script << x << ' ' << y << '\n';
		script << "EOD\n";
	}
	script << "plot ";
	for (std::size_t i = 0; i < plot.series.size(); ++i) {
		const char *colour = kColours[plot.series[i].colour % (sizeof(kColours) / sizeof(*kColours))];
		script << (i ? ", " : "") << "$data" << i << " using 1:2 title "
		       << quoted(plot.series[i].title) << " with "
		       << (plot.dots    ? "points pt 7 ps 0.35"
		           : plot.lines ? "linespoints pt 7 ps 0.6 lw 2"
		                        : "impulses lw 2")
		       << " lc rgb '" << colour << "'";
	}
	script << "\n";
	return script.str();
}

// A file that is gone when this is.
class TemporaryFile
{
      public:
	TemporaryFile()
	{
		const int file = mkstemp(path_);
		if (file < 0)
			throw std::runtime_error("cannot create a temporary file in /tmp");
		close(file);
	}
	~TemporaryFile()
	{
		unlink(path_);
	}
	TemporaryFile(const TemporaryFile &) = delete;
	TemporaryFile &operator=(const TemporaryFile &) = delete;
	const char *path() const
	{
		return path_;
	}

      private:
	char path_[32] = "/tmp/slice-ext-plot.XXXXXX";
};

std::string with_prefix(std::string svg, const std::string &prefix)
{
	for (const std::string mark : {" id=\"", " id='", "href='#", "href=\"#", "url(#"})
		for (std::size_t at = 0; (at = svg.find(mark, at)) != std::string::npos;) {
			at += mark.size();
			svg.insert(at, prefix);
		}
	return svg;
}

} // namespace

std::string to_svg(const Plot &plot, const std::string &prefix)
{
	const TemporaryFile script, result;
	std::ofstream(script.path()) << script_of(plot);
	const std::string command =
		std::string("gnuplot ") + script.path() + " >" + result.path() + " 2>&1";
	const int status = std::system(command.c_str());
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		throw std::runtime_error("gnuplot is not on PATH; it is in the package gnuplot-nox, or "
		                         "use --no-plots");
	std::ifstream file(result.path());
	std::stringstream text;
	text << file.rdbuf();
	const std::string made = text.str();
	const std::size_t start = made.find("<svg");
	if (status != 0 || start == std::string::npos)
		throw std::runtime_error("gnuplot could not draw \"" + plot.title + "\": " + made);
	return with_prefix(made.substr(start), prefix);
}

} // namespace slice_ext::tool::latency
