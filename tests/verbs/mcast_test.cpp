// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast groups (IBTA 10.5): who gets a datagram and who does not. a sends, b and others
 * receive. What a group is to the netdev is looked at by ktest/mcast.sh.
 */
#include <algorithm>

#include "verbs.hpp"

namespace verbs {
namespace {

constexpr size_t kGrh = 40, kRoom = 4096;
constexpr uint32_t kGroupQpn = 0xffffff;

// The @n-th group of the tests, of the family of @dev's address
ibv_gid group_gid(const Device &dev, uint8_t n)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	ibv_gid gid = {};

	if (!memcmp(dev.gid.raw, mapped, sizeof(mapped))) {
		memcpy(gid.raw, mapped, sizeof(mapped));
		gid.raw[12] = 239;
		gid.raw[13] = 47;
		gid.raw[14] = 91;
	} else {
		gid.raw[0] = 0xff;
		gid.raw[1] = dev.gid.raw[0] == 0xfe ? 0x12 : 0x15; // of our address's scope
	}
	gid.raw[15] = n;
	return gid;
}

QpConfig ud_config(uint32_t create_flags = 0)
{
	QpConfig config;

	config.type = IBV_QPT_UD;
	config.create_flags = create_flags;
	return config;
}

// A UD QP ready to send and receive, with memory
struct Member {
	explicit Member(Device &dev, uint32_t create_flags = 0)
	    : end(dev, ud_config(create_flags)), memory(end.pd.get(), kRoom)
	{
		Path path;

		end.to_init();
		end.to_rtr(end, path, 0);
		end.to_rts(path, 5);
	}
	~Member()
	{
		for (const ibv_gid &gid : attached)
			EXPECT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), 0);
	}

	void attach(uint8_t n)
	{
		attached.push_back(group_gid(end.dev, n));
		check(ibv_attach_mcast(end.qp.get(), &attached.back(), 0), "attach_mcast");
	}
	void detach(uint8_t n)
	{
		ibv_gid gid = group_gid(end.dev, n);

		check(ibv_detach_mcast(end.qp.get(), &gid, 0), "detach_mcast");
		for (size_t i = 0; i < attached.size(); i++)
			if (!memcmp(&attached[i], &gid, sizeof(gid))) {
				attached.erase(attached.begin() + i);
				break;
			}
	}
	void recv(uint64_t id)
	{
		end.recv(id, {memory.sge(0, kRoom)});
	}
	void send(uint8_t n, uint8_t byte, uint32_t qpn = kGroupQpn)
	{
		Ah ah = end.ah_for(group_gid(end.dev, n));

		memset(memory.data() + kRoom - 100, byte, 100);
		end.post(SendWr(IBV_WR_SEND, 1, {memory.sge(kRoom - 100, 100)}).to(ah.get(), qpn));
		expect_wc(end.wait_send(), 1);
	}
	void expect(uint64_t id, uint8_t byte, const Member &from)
	{
		ibv_wc wc = end.wait_recv();

		expect_wc(wc, id);
		EXPECT_EQ(wc.byte_len, kGrh + 100);
		EXPECT_EQ(wc.src_qp, from.end.qp->qp_num);
		EXPECT_EQ(memory.data()[kGrh], byte);
		EXPECT_EQ(memory.data()[kGrh + 99], byte);
	}

	Endpoint end;
	Memory memory;
	std::vector<ibv_gid> attached;
};

TEST(Mcast, EveryMemberAndNobodyElse)
{
	Member a(device_a()), other_group(device_b()), none(device_b());
	std::deque<Member> members;

	for (int i = 0; i < 5; i++) {
		members.emplace_back(device_b());
		members.back().attach(1);
		members.back().recv(10 + i);
		members.back().recv(20 + i);
	}
	other_group.attach(2);
	other_group.recv(30);
	none.recv(40);

	for (uint8_t round : {1, 2}) {
		a.send(1, 0x50 + round);
		for (int i = 0; i < 5; i++)
			members[i].expect(10 * round + i, 0x50 + round, a);
	}
	a.send(2, 0x66);
	other_group.expect(30, 0x66, a);
	none.end.expect_quiet();
	other_group.end.expect_quiet();
	for (Member &m : members)
		m.end.expect_quiet();
}

TEST(Mcast, SeveralGroupsOfOneQp)
{
	Member a(device_a()), b(device_b());

	for (uint8_t n = 1; n <= 20; n++)
		b.attach(n);
	for (uint8_t n = 1; n <= 20; n++) {
		b.recv(n);
		a.send(n, n);
		b.expect(n, n, a);
	}
}

TEST(Mcast, EndsWithDetach)
{
	Member a(device_a()), b(device_b()), c(device_b());

	b.attach(1);
	c.attach(1);
	b.recv(2);
	c.recv(3);
	b.detach(1);
	a.send(1, 0x11);
	c.expect(3, 0x11, a); // and so b would have had it
	b.end.expect_quiet();
	b.attach(1);
	c.recv(4);
	a.send(1, 0x12);
	c.expect(4, 0x12, a);
	b.expect(2, 0x12, a);
}

// Of a member that cannot take it the others know nothing.
TEST(Mcast, MembersDoNotDependOnEachOther)
{
	Member a(device_a()), b(device_b()), no_recv(device_b()), qkey(device_b()),
		dead(device_b());
	ibv_qp_attr attr = {};

	for (Member *m : {&no_recv, &qkey, &dead, &b})
		m->attach(1);
	attr.qkey = kQkey + 1;
	ASSERT_EQ(ibv_modify_qp(qkey.end.qp.get(), &attr, IBV_QP_QKEY), 0);
	qkey.recv(2);
	ASSERT_EQ(dead.end.to(IBV_QPS_ERR), 0);
	b.recv(3);
	a.send(1, 0x33);
	b.expect(3, 0x33, a);
	for (Member *m : {&no_recv, &qkey, &dead})
		m->end.expect_quiet();
}

// A group's datagram names QP 0xffffff, and only a group's does.
TEST(Mcast, NumberAndAddressBelongTogether)
{
	Member a(device_a()), b(device_b());
	Ah unicast = a.end.ah_for(b.end);

	b.attach(1);
	b.recv(2);
	a.send(1, 0x11, b.end.qp->qp_num);
	a.end.post(SendWr(IBV_WR_SEND, 1, {a.memory.sge(0, 100)}).to(unicast.get(), kGroupQpn));
	expect_wc(a.end.wait_send(), 1);
	a.send(1, 0x22);
	b.expect(2, 0x22, a);
	b.end.expect_quiet();
}

// The sender is a member, too, unless it was created not to hear itself; others on its device are.
TEST(Mcast, Loopback)
{
	Member a(device_a()), quiet(device_a(), IBV_QP_CREATE_BLOCK_SELF_MCAST_LB), c(device_a());

	for (Member *m : {&a, &quiet, &c}) {
		m->attach(1);
		m->recv(2);
		m->recv(3);
	}
	a.send(1, 0x11);
	for (Member *m : {&a, &quiet, &c})
		m->expect(2, 0x11, a);
	quiet.send(1, 0x22);
	for (Member *m : {&a, &c})
		m->expect(3, 0x22, quiet);
	quiet.end.expect_quiet();
}

TEST(McastLimit, WhatIsNoGroup)
{
	Member b(device_b());
	ibv_gid gid = b.end.dev.gid;

	EXPECT_EQ(ibv_attach_mcast(b.end.qp.get(), &gid, 0), EINVAL) << "a unicast address";
	gid = {};
	EXPECT_EQ(ibv_attach_mcast(b.end.qp.get(), &gid, 0), EINVAL) << "zero";
	gid = group_gid(b.end.dev, 1);
	EXPECT_EQ(ibv_detach_mcast(b.end.qp.get(), &gid, 0), EINVAL) << "never attached";
}

TEST(McastLimit, OnlyDatagramQps)
{
	ibv_gid gid = group_gid(device_a(), 1);

	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
		QpConfig config;

		config.type = type;
		Endpoint end(device_a(), config);
		end.to_init();
		EXPECT_EQ(ibv_attach_mcast(end.qp.get(), &gid, 0), EINVAL) << type;
	}
}

TEST(McastLimit, AttachedQpIsBusy)
{
	Endpoint end(device_a(), ud_config());
	ibv_gid gid = group_gid(device_a(), 1);

	end.to_init();
	ASSERT_EQ(ibv_attach_mcast(end.qp.get(), &gid, 0), 0);
	ASSERT_EQ(ibv_attach_mcast(end.qp.get(), &gid, 0), 0) << "twice is once";
	EXPECT_EQ(ibv_destroy_qp(end.qp.get()), EBUSY);
	EXPECT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), 0);
	EXPECT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), EINVAL);
}

TEST(McastLimit, AsManyAsAdvertised)
{
	const ibv_device_attr &attr = device_a().attr;
	Endpoint end(device_a(), ud_config());
	ibv_gid gid = group_gid(device_a(), 0);
	int n, max = std::min(attr.max_mcast_grp, attr.max_total_mcast_qp_attach);

	end.to_init();
	ASSERT_GT(attr.max_mcast_qp_attach, 0);
	auto number = [&gid](int i) {
		gid.raw[14] = i >> 8;
		gid.raw[15] = i;
	};
	for (n = 0; n <= max; n++) {
		number(n);
		int err = ibv_attach_mcast(end.qp.get(), &gid, 0);

		if (err) {
			EXPECT_EQ(err, ENOMEM);
			break;
		}
	}
	EXPECT_EQ(n, max);
	while (n--) {
		number(n);
		ASSERT_EQ(ibv_detach_mcast(end.qp.get(), &gid, 0), 0) << n;
	}
}

TEST(McastLimit, AsManyMembersOfAGroup)
{
	const int max = device_a().attr.max_mcast_qp_attach;
	const ibv_gid gid = group_gid(device_a(), 0);
	std::vector<std::unique_ptr<Endpoint>> ends;

	for (int i = 0; i <= max; i++) {
		ends.push_back(std::make_unique<Endpoint>(device_a(), ud_config()));
		ASSERT_EQ(ibv_attach_mcast(ends[i]->qp.get(), &gid, 0), i < max ? 0 : ENOMEM) << i;
	}
	// another group has room, and so has this one when somebody leaves
	const ibv_gid other = group_gid(device_a(), 1);
	EXPECT_EQ(ibv_attach_mcast(ends[max]->qp.get(), &other, 0), 0);
	EXPECT_EQ(ibv_detach_mcast(ends[max]->qp.get(), &other, 0), 0);
	EXPECT_EQ(ibv_detach_mcast(ends[0]->qp.get(), &gid, 0), 0);
	EXPECT_EQ(ibv_attach_mcast(ends[max]->qp.get(), &gid, 0), 0);
	for (int i = 1; i <= max; i++)
		EXPECT_EQ(ibv_detach_mcast(ends[i]->qp.get(), &gid, 0), 0) << i;
}

} // namespace
} // namespace verbs
