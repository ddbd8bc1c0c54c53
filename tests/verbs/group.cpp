// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rc-test --group: UD QPs and one multicast group, for scripts that look at what the network makes
 * of it.
 *
 *	receive N	attaches N QPs and says "attached"; prints each datagram that one of them
 *			gets, "QP text", until stdin ends; then detaches all and says "detached"
 *	send		sends each line of stdin to the group
 */
#include "group.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "verbs.hpp"

namespace {

using namespace verbs;

constexpr size_t kGrh = 40, kRoom = 1024, kRecvs = 32;

struct Member {
	Member() : end(device_a(), config()), memory(end.pd.get(), kRecvs * kRoom)
	{
		Path path;

		end.to_init();
		end.to_rtr(end, path, 0);
		end.to_rts(path, 0);
	}
	static QpConfig config()
	{
		QpConfig config;

		config.type = IBV_QPT_UD;
		return config;
	}
	void recv(uint64_t id)
	{
		end.recv(id, {memory.sge(id * kRoom, kRoom)});
	}

	Endpoint end;
	Memory memory;
};

bool stdin_has_ended()
{
	pollfd fd = {STDIN_FILENO, POLLIN, 0};
	char c;

	return poll(&fd, 1, 1) > 0 && read(STDIN_FILENO, &c, 1) == 0;
}

void print_datagram(int number, Member &m, const ibv_wc &wc)
{
	const char *text = reinterpret_cast<char *>(m.memory.data()) + wc.wr_id * kRoom + kGrh;

	printf("%d %.*s\n", number, static_cast<int>(wc.byte_len - kGrh), text);
	m.recv(wc.wr_id);
}

int receive(const ibv_gid &gid, int num)
{
	std::deque<Member> members;
	ibv_wc wc;

	for (int i = 0; i < num; i++) {
		members.emplace_back();
		for (size_t id = 0; id < kRecvs; id++)
			members.back().recv(id);
		check(ibv_attach_mcast(members.back().end.qp.get(), &gid, 0), "attach_mcast");
	}
	printf("attached\n");
	while (!stdin_has_ended())
		for (int i = 0; i < num; i++)
			while (ibv_poll_cq(members[i].end.recv_cq.get(), 1, &wc) > 0)
				print_datagram(i, members[i], wc);
	for (Member &m : members)
		check(ibv_detach_mcast(m.end.qp.get(), &gid, 0), "detach_mcast");
	printf("detached\n");
	return 0;
}

int send(const ibv_gid &gid)
{
	Member m;
	Ah ah = m.end.ah_for(gid);
	std::string line;

	while (std::getline(std::cin, line)) {
		uint32_t length = std::min(line.size(), kRoom - kGrh);

		memcpy(m.memory.data(), line.data(), length);
		m.end.post(
			SendWr(IBV_WR_SEND, 1, {m.memory.sge(0, length)}).to(ah.get(), 0xffffff));
		expect_wc(m.end.wait_send(), 1);
	}
	return 0;
}

} // namespace

int group_main(int argc, char **argv)
{
	setvbuf(stdout, nullptr, _IOLBF, 0);
	try {
		if (argc == 3 && argv[1] == std::string("receive"))
			return receive(gid_of(argv[0]), atoi(argv[2]));
		if (argc == 2 && argv[1] == std::string("send"))
			return send(gid_of(argv[0]));
	} catch (const std::exception &e) {
		fprintf(stderr, "rc-test: %s\n", e.what());
		return 1;
	}
	fprintf(stderr, "--group wants ADDRESS receive N or ADDRESS send\n");
	return 2;
}
