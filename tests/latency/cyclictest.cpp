// SPDX-License-Identifier: MIT
#include "cyclictest.hpp"

#include "process.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace slice_test {

namespace {

/** The value of a "# Name: value" line; one value, because there is one thread. */
long summary(const std::string &line, const std::string &name, const std::string &origin)
{
	std::istringstream in(line.substr(name.size()));
	long value = 0;
	std::string more;
	if (!(in >> value))
		throw CyclictestError(origin + ": no number behind \"" + name + "\"");
	if (in >> more)
		throw CyclictestError(origin + ": more than one thread");
	return value;
}

bool starts_with(const std::string &line, const std::string &start)
{
	return line.compare(0, start.size(), start) == 0;
}

/** A file that is gone when this is. */
class TemporaryFile {
public:
	TemporaryFile()
	{
		int fd = mkstemp(path_);
		if (fd < 0)
			throw CyclictestError("cannot create a temporary file in /tmp");
		close(fd);
	}
	~TemporaryFile() { unlink(path_); }
	TemporaryFile(const TemporaryFile &) = delete;
	TemporaryFile &operator=(const TemporaryFile &) = delete;

	std::string path() const { return path_; }

private:
	char path_[32] = "/tmp/cyclictest.XXXXXX";
};

} // namespace

WakeUpLatencies parse_histogram_file(const std::string &text, const std::string &origin)
{
	WakeUpLatencies result;
	long total = -1, worst = -1, average = -1, best = -1, overflow = -1;
	long sum = 0;

	std::istringstream lines(text);
	for (std::string line; std::getline(lines, line);) {
		if (starts_with(line, "# Total:"))
			total = summary(line, "# Total:", origin);
		else if (starts_with(line, "# Min Latencies:"))
			best = summary(line, "# Min Latencies:", origin);
		else if (starts_with(line, "# Avg Latencies:"))
			average = summary(line, "# Avg Latencies:", origin);
		else if (starts_with(line, "# Max Latencies:"))
			worst = summary(line, "# Max Latencies:", origin);
		else if (starts_with(line, "# Histogram Overflows:"))
			overflow = summary(line, "# Histogram Overflows:", origin);
		if (line.empty() || line[0] == '#')
			continue;

		std::istringstream bucket(line);
		int latency = 0;
		long count = 0;
		std::string more;
		if (!(bucket >> latency >> count))
			continue; /* other output, of which -q leaves little */
		if (bucket >> more)
			throw CyclictestError(origin + ": more than one thread");
		if (count)
			result.histogram[latency] += count;
		sum += count;
	}
	if (total < 0 || best < 0 || average < 0 || worst < 0 || overflow < 0)
		throw CyclictestError(origin + ": empty or truncated, its summary is not complete");
	if (sum != total)
		throw CyclictestError(origin + ": buckets hold " + std::to_string(sum) +
				      " samples, the summary says " + std::to_string(total));
	if (total + overflow == 0)
		throw CyclictestError(origin + ": no samples");

	result.samples = total + overflow;
	result.overflow = overflow;
	result.best = static_cast<int>(best);
	result.average = static_cast<int>(average);
	result.worst = static_cast<int>(worst);
	return result;
}

WakeUpLatencies run_cyclictest(const CyclictestRun &run)
{
	TemporaryFile histogram;
	Process cyclictest({"cyclictest", "--quiet", "--mlockall", "--threads=1",
			    "--affinity=" + std::to_string(run.cpu),
			    "--priority=" + std::to_string(run.priority),
			    "--interval=" + std::to_string(run.interval_us),
			    "--loops=" + std::to_string(run.cycles),
			    "--histogram=" + std::to_string(run.histogram_us),
			    "--histfile=" + histogram.path()});
	if (int status = cyclictest.wait())
		throw CyclictestError("cyclictest ended with status " + std::to_string(status) +
				      " (is rt-tests installed, and may it use SCHED_FIFO?)");

	std::ifstream file(histogram.path());
	std::stringstream text;
	text << file.rdbuf();
	WakeUpLatencies result = parse_histogram_file(text.str(), "cyclictest histogram");
	if (result.samples < run.cycles)
		throw CyclictestError("cyclictest was interrupted after " +
				      std::to_string(result.samples) + " of " +
				      std::to_string(run.cycles) + " cycles");
	return result;
}

} // namespace slice_test
