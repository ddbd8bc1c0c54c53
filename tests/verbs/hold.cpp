// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rc-test --hold: a QP connected to a peer that need not exist, for tests that play the peer
 * with packets of their own. Prints one line of JSON, then answers each command line on stdin
 * with one more:
 *
 *	state			{"state": 3}, enum ibv_qp_state
 *	recv ID LENGTH		posts a receive of LENGTH bytes at offset 0
 *	send ID LENGTH		posts a SEND from offset 0
 *	write ID LENGTH VA RKEY	posts a WRITE, read ... a READ, fadd ... a FETCH_ADD of 1
 *	poll send|recv N	N completions, waiting for them
 *	try send|recv		the next completion if there is one, else []
 *	quiet			checks that no completion is there: {"quiet": true}
 *	mem OFFSET LENGTH	{"mem": "hex"}
 *	fill OFFSET LENGTH BYTE	{"ok": true}
 *	region			registers another region: {"va": ..., "rkey": ...}
 *	unregion		deregisters it
 *	again			RESET, then connected as at first; CQs emptied
 *	err			modifies the QP to the error state
 *	quit
 *
 * A UD QP sends to the peer's number with kQkey.
 */
#include "hold.hpp"

#include <arpa/inet.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>

#include "verbs.hpp"

namespace {

using namespace verbs;

constexpr size_t kSize = 64 << 10;

class Holder {
public:
	Holder(ibv_qp_type type, const std::string &address, uint32_t qpn, uint32_t psn,
	       uint32_t own_psn)
	    : end_(device_a(), config(type)), memory_(end_.pd.get(), kSize), peer_(gid_of(address)),
	      qpn_(qpn), psn_(psn), own_psn_(own_psn)
	{
		connect();
		if (type == IBV_QPT_UD)
			ah_ = end_.ah_for(peer_);
		printf("{\"qpn\": %u, \"va\": %llu, \"rkey\": %u, \"size\": %zu, \"mtu\": %d}\n",
		       end_.qp->qp_num, static_cast<unsigned long long>(memory_.addr()),
		       memory_.rkey(), kSize, mtu_bytes(end_.query(IBV_QP_PATH_MTU).path_mtu));
	}

	void command(const std::string &line)
	{
		std::istringstream in(line);
		std::string word;

		in >> word;
		if (word == "state")
			printf("{\"state\": %d}\n", end_.state());
		else if (word == "recv")
			post_recv(in);
		else if (word == "send" || word == "write" || word == "read" || word == "fadd")
			post_send(word, in);
		else if (word == "poll")
			poll(in);
		else if (word == "try")
			try_poll(in);
		else if (word == "quiet")
			quiet();
		else if (word == "mem")
			print_memory(in);
		else if (word == "fill")
			fill(in);
		else if (word == "region")
			region();
		else if (word == "unregion")
			result(end_region());
		else if (word == "again")
			again();
		else if (word == "err")
			result(end_.to(IBV_QPS_ERR));
		else
			printf("{\"error\": \"unknown command\"}\n");
	}

private:
	static QpConfig config(ibv_qp_type type)
	{
		QpConfig config;

		config.type = type;
		return config;
	}

	void connect()
	{
		Path path;
		ibv_qp_attr attr;

		path.mtu = IBV_MTU_1024;
		// 0.5 s, or 4 s where everything is slow: the peer is a script
		path.timeout = slow() ? 20 : 17;
		end_.to_init();
		attr = rtr_attr(end_.dev, end_.dev, qpn_, path, psn_);
		attr.ah_attr.grh.dgid = peer_;
		check(ibv_modify_qp(end_.qp.get(), &attr, rtr_mask(end_.type)), "modify_qp RTR");
		end_.to_rts(path, own_psn_);
	}

	void again()
	{
		int err = end_.to(IBV_QPS_RESET);
		ibv_wc wc;

		if (!err)
			connect();
		while (ibv_poll_cq(end_.send_cq.get(), 1, &wc) == 1 ||
		       ibv_poll_cq(end_.recv_cq.get(), 1, &wc) == 1)
			; // of before
		result(err);
	}

	void region()
	{
		region_.emplace(end_.pd.get(), kSize);
		printf("{\"va\": %llu, \"rkey\": %u}\n",
		       static_cast<unsigned long long>(region_->addr()), region_->rkey());
	}

	int end_region()
	{
		region_.reset();
		return 0;
	}

	static void result(int err)
	{
		printf("{\"ok\": %s, \"errno\": %d}\n", err ? "false" : "true", err);
	}

	void post_recv(std::istream &in)
	{
		uint64_t id;
		uint32_t length;

		in >> id >> length;
		result(end_.try_recv(id, {memory_.sge(0, length)}));
	}

	void post_send(const std::string &word, std::istream &in)
	{
		ibv_wr_opcode opcode = word == "send"  ? IBV_WR_SEND :
				       word == "write" ? IBV_WR_RDMA_WRITE :
				       word == "read"  ? IBV_WR_RDMA_READ :
							 IBV_WR_ATOMIC_FETCH_AND_ADD;
		uint64_t id, va = 0;
		uint32_t length, rkey = 0;

		in >> id >> length >> va >> rkey;
		SendWr wr(opcode, id, {memory_.sge(0, length)});
		if (ah_)
			wr.to(ah_.get(), qpn_);
		else
			wr.remote(va, rkey);
		if (word == "fadd")
			wr.atomic(1);
		result(end_.try_post(wr));
	}

	void poll(std::istream &in)
	{
		std::string queue;
		int n;

		in >> queue >> n;
		printf("[");
		for (int i = 0; i < n; i++) {
			fputs(i ? ", " : "", stdout);
			print_wc(queue == "send" ? end_.wait_send() : end_.wait_recv());
		}
		printf("]\n");
	}

	void try_poll(std::istream &in)
	{
		std::string queue;
		ibv_wc wc;

		in >> queue;
		printf("[");
		if (ibv_poll_cq((queue == "send" ? end_.send_cq : end_.recv_cq).get(), 1, &wc) == 1)
			print_wc(wc);
		printf("]\n");
	}

	static void print_wc(const ibv_wc &wc)
	{
		printf("{\"id\": %llu, \"status\": %d, \"byte_len\": %u, \"opcode\": %d, "
		       "\"src_qp\": %u, \"imm\": %u}",
		       static_cast<unsigned long long>(wc.wr_id), wc.status, wc.byte_len, wc.opcode,
		       wc.src_qp, wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0);
	}

	void quiet()
	{
		ibv_wc wc;
		bool any = ibv_poll_cq(end_.send_cq.get(), 1, &wc) ||
			   ibv_poll_cq(end_.recv_cq.get(), 1, &wc);

		printf("{\"quiet\": %s}\n", any ? "false" : "true");
	}

	void print_memory(std::istream &in)
	{
		size_t offset, length;

		in >> offset >> length;
		printf("{\"mem\": \"");
		for (size_t i = offset; i < offset + length && i < kSize; i++)
			printf("%02x", memory_.data()[i]);
		printf("\"}\n");
	}

	void fill(std::istream &in)
	{
		size_t offset, length;
		int byte;

		in >> offset >> length >> byte;
		if (offset <= kSize && length <= kSize - offset)
			memset(memory_.data() + offset, byte, length);
		result(0);
	}

	Endpoint end_;
	Memory memory_;
	std::optional<Memory> region_;
	Ah ah_;
	ibv_gid peer_;
	uint32_t qpn_, psn_, own_psn_;
};

} // namespace

int hold_main(int argc, char **argv)
{
	std::string line;

	if (argc < 3) {
		fprintf(stderr, "--hold wants ADDRESS QPN PSN [OWN-PSN [rc|uc|ud]]\n");
		return 2;
	}
	setvbuf(stdout, nullptr, _IOLBF, 0);
	try {
		std::string type = argc > 4 ? argv[4] : "rc";
		Holder holder(type == "ud" ? IBV_QPT_UD :
			      type == "uc" ? IBV_QPT_UC :
					     IBV_QPT_RC,
			      argv[0], strtoul(argv[1], nullptr, 0), strtoul(argv[2], nullptr, 0),
			      argc > 3 ? strtoul(argv[3], nullptr, 0) : 0xfffff0);

		while (std::getline(std::cin, line) && line != "quit") {
			try {
				holder.command(line);
			} catch (const std::exception &e) {
				printf("{\"error\": \"%s\"}\n", e.what());
			}
		}
	} catch (const std::exception &e) {
		fprintf(stderr, "rc-test: %s\n", e.what());
		return 1;
	}
	return 0;
}
