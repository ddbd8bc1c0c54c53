// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kick ioctl with everything that is wrong.
#include <sys/wait.h>
#include <unistd.h>

#include "raw.hpp"

namespace raw {
namespace {

using verbs::device_a;

class Kick : public testing::Test {
protected:
	int with(void (*spoil)(KickShape &))
	{
		KickShape shape;

		shape.data = rig.a.resp.db_slot;
		spoil(shape);
		return raw::kick(fd(), shape);
	}
	int fd()
	{
		return device_a().get()->cmd_fd;
	}

	Rig rig;
};

TEST_F(Kick, Slots)
{
	EXPECT_EQ(rig.a.kick(), 0) << "a QP in RESET";
	for (uint32_t slot :
	     {UROCE_DB_SLOTS - 1u, UROCE_DB_SLOTS + 0u, UROCE_DB_SLOTS + rig.a.resp.db_slot,
	      0x7fffffffu, 0x80000000u, 0xffffffffu})
		EXPECT_EQ(raw::kick(fd(), slot), EINVAL) << "slot " << slot;
	// of a QP that is gone
	uint32_t slot = rig.a.resp.db_slot;

	EXPECT_EQ(rig.a.destroy(), 0);
	EXPECT_EQ(raw::kick(fd(), slot), EINVAL);
}

// Another context's slots are not ours.
TEST_F(Kick, OtherContext)
{
	verbs::Device other(ibv_get_device_name(device_a().get()->device), device_a().gid_index);

	EXPECT_EQ(raw::kick(other.get()->cmd_fd, rig.a.resp.db_slot), EINVAL);
}

TEST_F(Kick, AttributeLength)
{
	for (uint16_t len : {0, 1, 3, 5, 8, 16, 4096, 0xffff}) {
		KickShape shape;
		uint64_t buffer[512] = {rig.a.resp.db_slot};

		// up to eight bytes travel in place, more by their address
		shape.data = len <= 8 ? rig.a.resp.db_slot : reinterpret_cast<uint64_t>(buffer);
		shape.len = len;
		EXPECT_NE(raw::kick(fd(), shape), 0) << "length " << len;
	}
}

TEST_F(Kick, Ids)
{
	EXPECT_EQ(with([](KickShape &) {}), 0);
	EXPECT_EQ(with([](KickShape &s) { s.attrs = 0; }), EINVAL);
	EXPECT_NE(with([](KickShape &s) { s.attr++; }), 0);
	EXPECT_NE(with([](KickShape &s) { s.attr = 0; }), 0);
	EXPECT_NE(with([](KickShape &s) { s.method++; }), 0);
	EXPECT_NE(with([](KickShape &s) { s.object++; }), 0);
	EXPECT_EQ(with([](KickShape &s) { s.driver = 8; }), EINVAL);
}

TEST_F(Kick, FileDescriptors)
{
	int copy = dup(fd());

	EXPECT_EQ(raw::kick(copy, rig.a.resp.db_slot), 0);
	close(copy);
	EXPECT_EQ(raw::kick(copy, rig.a.resp.db_slot), EBADF);
	EXPECT_NE(raw::kick(STDOUT_FILENO, rig.a.resp.db_slot), 0);
}

// A child shares the file and the mappings.
TEST_F(Kick, FromAChild)
{
	ASSERT_EQ(rig.connect(), 0);
	rig.a.put_send(rig.wqe(IBV_WR_RDMA_WRITE, 5), {sge(rig.local, 0, 8)});
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(rig.a.kick());
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(rig.send_a.wait().wr_id, 5u);
}

} // namespace
} // namespace raw
