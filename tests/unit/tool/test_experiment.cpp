// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "latency/experiment.hpp"

using namespace slice_ext::tool::latency;
using nlohmann::json;

namespace
{

json good()
{
	return json::parse(R"({
		"name": "x", "title": "t", "kind": "cyclictest", "measure": {"loops": 100},
		"short": {"measure": {"loops": 10}, "leave_out": ["off"]},
		"settings": {"kernel.sched_rt_runtime_us": "-1"},
		"arms": [
			{"name": "base", "kernel": "base"},
			{"name": "off", "kernel": "off"},
			{"name": "on-user", "kernel": "on",
			 "settings": {"kernel.sched_preempt_delay_us": "30", "/a/b": "1"},
			 "load": [{"command": ["demo", "{cpus}"], "warmup_ms": 5}],
			 "measure": {"priority": 80}}
		],
		"checks": [
			{"title": "c", "metric": "max", "arm": "on-user", "against": "base",
			 "at_most_above": 1000},
			{"title": "d", "metric": "max", "arm": "off", "against": "base",
			 "at_most_above": 1000, "places": ["virtual"]}
		]})");
}

std::string refusal(const std::string &pointer, const json &value)
{
	json file = good();
	file[json::json_pointer(pointer)] = value;
	try {
		parse_experiment(file.dump(), "file", false);
	} catch (const ExperimentError &error) {
		return error.what();
	}
	return "accepted";
}

#define EXPECT_REFUSAL(pointer, value, text)                                                       \
	EXPECT_NE(refusal(pointer, value).find(text), std::string::npos) << refusal(pointer, value)

} // namespace

TEST(Experiment, IsReadWhole)
{
	const Experiment experiment = parse_experiment(good().dump(), "file", false);
	ASSERT_EQ(experiment.arms.size(), 3u);
	const Arm *user = experiment.find("on-user");
	ASSERT_NE(user, nullptr);
	EXPECT_EQ(user->measure.at("loops"), 100);
	EXPECT_EQ(user->measure.at("priority"), 80);
	ASSERT_EQ(user->settings.size(), 3u);
	EXPECT_EQ(user->settings[0].first, "/proc/sys/kernel/sched_rt_runtime_us");
	EXPECT_EQ(user->load.at(0).warmup_ms, 5u);
	ASSERT_EQ(experiment.checks.size(), 2u);
	EXPECT_FALSE(experiment.checks[1].on_real_hardware);
}

TEST(Experiment, ShortFormLeavesOutArmsAndTheirChecks)
{
	const Experiment experiment = parse_experiment(good().dump(), "file", true);
	EXPECT_EQ(experiment.arms.size(), 2u);
	EXPECT_EQ(experiment.find("off"), nullptr);
	EXPECT_EQ(experiment.checks.size(), 1u);
	EXPECT_EQ(experiment.find("base")->measure.at("loops"), 10);
	// What a record keeps gives the same again.
	const Experiment again = experiment_from_record(experiment.effective, "record");
	EXPECT_EQ(again.effective, experiment.effective);
}

TEST(Experiment, AnArmsSettingReplacesTheCommonOne)
{
	json file = good();
	file["arms"][0]["settings"] = {{"kernel.sched_rt_runtime_us", "950000"}};
	const Experiment experiment = parse_experiment(file.dump(), "file", false);
	ASSERT_EQ(experiment.find("base")->settings.size(), 1u);
	EXPECT_EQ(experiment.find("base")->settings[0].second, "950000");
}

TEST(Experiment, IsRefusedWithThePlaceAndTheCause)
{
	EXPECT_REFUSAL("/nmae", "x", "file: unknown member \"nmae\"");
	EXPECT_REFUSAL("/kind", "fast", "kind \"fast\"");
	EXPECT_REFUSAL("/repetitions", 0, "\"repetitions\" is 0");
	EXPECT_REFUSAL("/arms", json::array(), "\"arms\"");
	EXPECT_REFUSAL("/arms/1/name", "base", "two arms are called base");
	EXPECT_REFUSAL("/arms/0/kernel", "new", "arm base: kernel \"new\"");
	EXPECT_REFUSAL("/arms/0/settings", json({{"a", 1}}), "setting \"a\"");
	EXPECT_REFUSAL("/arms/2/load/0/command", "demo", "\"command\"");
	EXPECT_REFUSAL("/measure/loops", -1, "\"loops\" is -1");
	EXPECT_REFUSAL("/measure/histogram_us", 5000, "1 to 1000");
	EXPECT_REFUSAL("/measure/arguments", json::array({1}), "argument 1");
	EXPECT_REFUSAL("/measure/loop", 1, "unknown member \"loop\"");
	EXPECT_REFUSAL("/checks/0/arm", "on", "there is no arm \"on\"");
	EXPECT_REFUSAL("/checks/0/against", "on", "there is no arm \"on\"");
	EXPECT_REFUSAL("/checks/0/metric", "worst", "no metric \"worst\"");
	EXPECT_REFUSAL("/checks/0/at_least", 1, "needs one of");
	EXPECT_REFUSAL("/checks/0/control", "yes", "\"control\"");
	EXPECT_REFUSAL("/checks/0/places", json::array({"here"}), "place \"here\"");
	EXPECT_REFUSAL("/checks/0/row", json({{"mode", "on"}, {"threads", 1}, {"section_us", 1}}),
	               "kind bench");
	EXPECT_REFUSAL("/short/leave_out", json::array({"nobody"}), "no arm \"nobody\"");
	EXPECT_REFUSAL("/short/arms", 1, "short: unknown member");
}

TEST(Experiment, ThatIsNoJsonSaysWhere)
{
	try {
		parse_experiment("{\n\"name\": }", "file", false);
		FAIL() << "accepted";
	} catch (const ExperimentError &error) {
		EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos);
	}
}

TEST(Experiment, BuiltInOnesAreGoodInBothFormsAndHaveTheirControls)
{
	ASSERT_EQ(built_in_experiments().size(), 4u);
	for (const BuiltIn &built_in : built_in_experiments())
		for (const bool short_form : {false, true}) {
			const Experiment experiment = load_experiment(built_in.name, short_form);
			EXPECT_EQ(experiment.name, built_in.name);
			unsigned controls = 0;
			for (const Check &check : experiment.checks)
				controls += check.control;
			if (experiment.kind != Kind::bench) {
				EXPECT_GT(controls, 0u) << built_in.name;
				EXPECT_NE(experiment.find("base"), nullptr);
				EXPECT_NE(experiment.find("on-abuser"), nullptr);
			}
		}
}

TEST(Experiment, ThatDoesNotExistIsAnsweredWithThoseThatDo)
{
	try {
		load_experiment("t9", false);
		FAIL() << "found";
	} catch (const ExperimentError &error) {
		EXPECT_NE(std::string(error.what()).find("built in are t1, t2, t6, phase"),
		          std::string::npos);
	}
	EXPECT_THROW(load_experiment("/no/such.json", false), ExperimentError);
}
