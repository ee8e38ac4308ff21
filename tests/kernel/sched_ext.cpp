// SPDX-License-Identifier: MIT
// A BPF scheduler is loaded: its threads get no extensions, and nobody's extension delays them.
#include "contest.hpp"
#include "needs.hpp"
#include "numbers.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <unistd.h>

namespace slice_test
{
namespace
{

constexpr int sched_ext_policy = 7;
constexpr std::uint64_t switch_partial = 1 << 3; // SCX_OPS_SWITCH_PARTIAL

/**
 * A scheduler without any program of its own, in which every operation is the default one: threads
 * run in the order in which they became runnable. Loaded from construction to destruction.
 */
class DefaultScheduler
{
      public:
	/** @param flags of struct sched_ext_ops */
	explicit DefaultScheduler(std::uint64_t flags)
	{
		btf *types = btf__load_vmlinux_btf();
		if (!types) {
			problem_ = "the kernel has no BTF";
			return;
		}
		load(types, flags);
		btf__free(types);
	}
	~DefaultScheduler()
	{
		const std::uint32_t key = 0;
		if (map_ >= 0) {
			bpf_map_delete_elem(map_, &key);
			close(map_);
		}
	}
	DefaultScheduler(const DefaultScheduler &) = delete;
	DefaultScheduler &operator=(const DefaultScheduler &) = delete;

	/** Empty, or why it is not loaded. */
	const std::string &problem() const
	{
		return problem_;
	}

      private:
	/** Offset in bytes of a member of a structure; -1: none. */
	static int offset(const btf *types, int structure, const std::string &member)
	{
		const btf_type *type = btf__type_by_id(types, static_cast<std::uint32_t>(structure));
		const btf_member *members = btf_members(type);
		for (unsigned i = 0; i < btf_vlen(type); ++i)
			if (member == btf__name_by_offset(types, members[i].name_off))
				return static_cast<int>(btf_member_bit_offset(type, i) / 8);
		return -1;
	}

	void load(const btf *types, std::uint64_t flags)
	{
		const int value_id =
			btf__find_by_name_kind(types, "bpf_struct_ops_sched_ext_ops", BTF_KIND_STRUCT);
		const int ops_id = btf__find_by_name_kind(types, "sched_ext_ops", BTF_KIND_STRUCT);
		if (value_id < 0 || ops_id < 0) {
			problem_ = "the kernel has no sched_ext";
			return;
		}
		const auto size = btf__resolve_size(types, static_cast<std::uint32_t>(value_id));
		const int data = offset(types, value_id, "data");
		const int name = offset(types, ops_id, "name");
		const int ops_flags = offset(types, ops_id, "flags");
		if (size < 0 || data < 0 || name < 0 || ops_flags < 0) {
			problem_ = "struct sched_ext_ops is not as expected";
			return;
		}
		bpf_map_create_opts options{};
		options.sz = sizeof options;
		options.btf_vmlinux_value_type_id = static_cast<std::uint32_t>(value_id);
		// The kernel wants types of the program too, though it has none.
		btf *own_types = btf__new_empty();
		btf__add_int(own_types, "int", 4, BTF_INT_SIGNED);
		if (btf__load_into_kernel(own_types) != 0)
			problem_ = std::string("BPF_BTF_LOAD: ") + std::strerror(errno);
		options.btf_fd = static_cast<std::uint32_t>(btf__fd(own_types));
		map_ = bpf_map_create(BPF_MAP_TYPE_STRUCT_OPS, "default", sizeof(std::uint32_t),
		                      static_cast<std::uint32_t>(size), 1, &options);
		const int error = errno;
		btf__free(own_types);
		errno = error;
		if (map_ < 0) {
			problem_ = std::string("BPF_MAP_CREATE: ") + std::strerror(errno);
			return;
		}
		std::vector<unsigned char> value(static_cast<std::size_t>(size));
		unsigned char *ops = value.data() + data;
		std::memcpy(ops + name, "slice_ext_test", sizeof "slice_ext_test");
		std::memcpy(ops + ops_flags, &flags, sizeof flags);
		const std::uint32_t key = 0;
		if (bpf_map_update_elem(map_, &key, value.data(), 0) != 0)
			problem_ = std::string("the scheduler was refused: ") + std::strerror(errno);
	}

	int map_ = -1;
	std::string problem_;
};

Policy in_sched_ext()
{
	Policy policy;
	policy.policy = sched_ext_policy;
	return policy;
}

class SchedExt : public testing::Test
{
      protected:
	void SetUp() override
	{
		SLICE_EXT_NEEDS(need::control());
		length_ = std::make_unique<FileGuard>(path_sysctl, "100");
		ASSERT_EQ(length_->error(), 0);
	}

	static constexpr std::int64_t duration = 300 * ms;
	std::unique_ptr<FileGuard> length_;
};

TEST_F(SchedExt, AllThreadsAreItsOwn)
{
	const Contest before = contest(Demand::always, {}, duration);
	describe("before", before);
	EXPECT_GT(before.counters["granted"], 10);
	{
		const DefaultScheduler scheduler(0);
		SLICE_EXT_NEEDS(scheduler.problem());
		ASSERT_EQ(read_line("/sys/kernel/sched_ext/state").value_or(""), "enabled");
		const Contest loaded = contest(Demand::always, {}, duration);
		describe("loaded", loaded);
		EXPECT_EQ(loaded.error, 0);
		EXPECT_EQ(loaded.counters["granted"], 0);
		EXPECT_GT(loaded.counters["denied_class"], 5);
		EXPECT_EQ(read_line("/sys/kernel/sched_ext/state").value_or(""), "enabled")
			<< "the kernel threw it out meanwhile";
	}
	const Contest after = contest(Demand::always, {}, duration);
	describe("after", after);
	EXPECT_GT(after.counters["granted"], 10);
}

// Only threads that ask for it are in sched_ext. The fair one that runs is above them: they
// neither take its CPU nor does it keep them from it by more than it does anyway, but while one
// of them waits there is something on the run queue that is not fair.
TEST_F(SchedExt, OneOfItsThreadsWaits)
{
	const DefaultScheduler scheduler(switch_partial);
	SLICE_EXT_NEEDS(scheduler.problem());
	Periodic::Setup other;
	other.policy = in_sched_ext();
	other.period = 2 * ms + 3 * us;
	Periodic ordinary({});
	const Contest mixed = contest(Demand::always, other, duration);
	describe("one waits", mixed);
	ASSERT_EQ(mixed.error, 0);
	EXPECT_GT(mixed.counters["denied_nonfair"] + mixed.counters["ended_nonfair"], 10);
	EXPECT_EQ(mixed.counters["requests"], mixed.counters["granted"] + mixed.counters.denied());
}

} // namespace
} // namespace slice_test
