// SPDX-License-Identifier: MIT
#include "latency/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "kernel_facts.hpp"
#include "text_file.hpp"

namespace slice_ext::tool::latency
{

namespace
{

using nlohmann::json;

json text_or_null(const std::string &path)
{
	const auto text = read_text(path);
	return text ? json(std::string(trimmed(*text))) : json();
}

// The first line of TEXT that begins with KEY, after its colon.
json cpuinfo(const std::string &text, const std::string &key)
{
	std::istringstream lines(text);
	for (std::string line; std::getline(lines, line);)
		if (line.rfind(key, 0) == 0 && line.find(':') != std::string::npos)
			return std::string(trimmed(line.substr(line.find(':') + 1)));
	return nullptr;
}

json output_of(const std::string &command)
{
	const std::unique_ptr<FILE, int (*)(FILE *)> pipe(popen(command.c_str(), "r"), pclose);
	char buffer[256];
	std::string text;
	while (pipe && fgets(buffer, sizeof(buffer), pipe.get()))
		text += buffer;
	text = trimmed(text);
	return text.empty() ? json() : json(text);
}

// Comments tell the compiler's version and nothing about the kernel.
json config_hash(const std::string &root, const std::string &release)
{
	for (const std::string &file :
	     {root + "/proc/config.gz", root + "/boot/config-" + release}) {
		if (access(file.c_str(), R_OK) != 0)
			continue;
		const json hash = output_of("zcat -f '" + file + "' 2>/dev/null | grep '^CONFIG_' | "
		                                                 "sha256sum | cut -d' ' -f1");
		if (!hash.is_null())
			return hash;
	}
	return nullptr;
}

std::string preemption_of(const KernelFacts &facts)
{
	if (facts.preempt_rt.value_or(false))
		return "PREEMPT_RT";
	if (!facts.preempt_mode.empty())
		return facts.preempt_mode == "full" ? "PREEMPT" : "PREEMPT_DYNAMIC " + facts.preempt_mode;
	if (facts.version.find("PREEMPT_DYNAMIC") != std::string::npos)
		return "PREEMPT_DYNAMIC";
	return facts.version.find(" PREEMPT") != std::string::npos ? "PREEMPT" : "PREEMPT_NONE";
}

} // namespace

std::string kernel_kind(const std::string &root)
{
	if (access((root + "/proc/preempt_delay").c_str(), F_OK) != 0)
		return "base";
	const KernelFacts facts = read_kernel_facts(root);
	return facts.boot_switch.value_or(true) ? "on" : "off";
}

long long steal_ticks(const std::string &root)
{
	const auto text = read_text(root + "/proc/stat");
	long long values[8] = {};
	if (!text || std::sscanf(text->c_str(), "cpu %lld %lld %lld %lld %lld %lld %lld %lld",
	                         &values[0], &values[1], &values[2], &values[3], &values[4],
	                         &values[5], &values[6], &values[7]) != 8)
		return -1;
	return values[7];
}

json read_environment(bool virtual_time, const std::string &root)
{
	const KernelFacts facts = read_kernel_facts(root);
	const std::string cpus = read_text(root + "/proc/cpuinfo").value_or("");
	const std::string cpu = root + "/sys/devices/system/cpu/";
	const auto load = read_text(root + "/proc/loadavg");
	json environment = {
		{"kernel_kind", kernel_kind(root)},
		{"preemption", preemption_of(facts)},
		{"virtual_time", virtual_time},
		{"release", facts.release},
		{"version", facts.version},
		{"machine", facts.machine},
		{"config_sha256", config_hash(root, facts.release)},
		{"command_line", facts.command_line},
		{"clocksource", facts.clocksource},
		{"high_res_timers", facts.high_res_timers},
		{"governor", text_or_null(cpu + "cpu0/cpufreq/scaling_governor")},
		{"isolated", text_or_null(cpu + "isolated")},
		{"nohz_full", text_or_null(cpu + "nohz_full")},
		{"online", text_or_null(cpu + "online")},
		{"smt", text_or_null(cpu + "smt/active")},
		{"idle_driver", text_or_null(cpu + "cpuidle/current_driver")},
		{"cpu_model", cpuinfo(cpus, "model name")},
		{"microcode", cpuinfo(cpus, "microcode")},
		{"hypervisor", facts.hypervisor},
		{"load_average", load ? json(load->substr(0, load->find(' '))) : json()},
		{"steal_ticks_before", steal_ticks(root)},
		{"cyclictest", output_of("cyclictest --help 2>&1 | head -n 1")},
	};
	if (facts.base_slice_ns)
		environment["base_slice_ns"] = *facts.base_slice_ns;
	return environment;
}

} // namespace slice_ext::tool::latency
