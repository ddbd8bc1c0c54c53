// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A first RDMA program: two queue pairs of one device, connected to each
 * other, move a message from one buffer to another. Nothing in it is special
 * to uroce. Usage: first-program [device [GID index]]; the GID index chooses
 * the local address and must be one of "RoCE v2" (see ibv_devinfo -v).
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <infiniband/verbs.h>

/* Verbs fail with NULL or with a value other than 0. */
static void must(const char *what, bool worked)
{
	if (worked)
		return;
	fprintf(stderr, "failed: %s\n", what);
	exit(1);
}

static ibv_context *open_device(const char *name)
{
	int num = 0;
	ibv_device **list = ibv_get_device_list(&num);
	ibv_context *context = nullptr;

	for (int i = 0; i < num && !context; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return context;
}

/* Takes a new queue pair through its states to "ready to send" to its peer. */
static void connect(ibv_qp *qp, const ibv_qp *peer, const ibv_gid &address, uint8_t gid_index)
{
	ibv_qp_attr attr = {};

	/* INIT: receives may be posted. What may the peer do with our memory? */
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	attr.qp_state = IBV_QPS_INIT;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	must("INIT", !ibv_modify_qp(qp, &attr, mask));

	/* RTR, ready to receive: who is the peer, which way leads there? Packets count from 0. */
	attr.dest_qp_num = peer->qp_num;
	attr.path_mtu = IBV_MTU_1024;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = address;
	attr.ah_attr.grh.sgid_index = gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	attr.min_rnr_timer = 12; /* 0.64 ms, for a sender that finds no receive posted */
	attr.qp_state = IBV_QPS_RTR;
	mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	must("RTR", !ibv_modify_qp(qp, &attr, mask));

	/* RTS, ready to send: how long, and how often again? */
	attr.timeout = 14; /* 4.096 us * 2^14 = 67 ms */
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
	must("RTS", !ibv_modify_qp(qp, &attr, mask));
}

/* Work is done when its completion lies in the completion queue. */
static void wait_for(ibv_cq *cq, int completions)
{
	ibv_wc wc;

	for (int n; completions; completions -= n) {
		n = ibv_poll_cq(cq, 1, &wc);
		must("poll", n == 0 || (n == 1 && wc.status == IBV_WC_SUCCESS));
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "uroce0";
	const auto gid_index = static_cast<uint8_t>(argc > 2 ? atoi(argv[2]) : 1);
	char from[64] = "written by RDMA WRITE", to[64] = "";
	ibv_gid address;

	/* The device, and a protection domain: what belongs together. */
	ibv_context *context = open_device(name);
	must(name, context);
	must("GID", !ibv_query_gid(context, 1, gid_index, &address));
	ibv_pd *pd = ibv_alloc_pd(context);
	must("PD", pd);

	/* Memory that the device may touch is registered, and known by keys. */
	ibv_mr *from_mr = ibv_reg_mr(pd, from, sizeof(from), 0);
	ibv_mr *to_mr =
		ibv_reg_mr(pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must("MR", from_mr && to_mr);

	/* Two reliably connected queue pairs, and one completion queue for both. */
	ibv_cq *cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
	must("CQ", cq);
	ibv_qp_init_attr init = {};
	init.send_cq = init.recv_cq = cq;
	init.qp_type = IBV_QPT_RC;
	init.cap.max_send_wr = init.cap.max_recv_wr = 4;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	ibv_qp *a = ibv_create_qp(pd, &init), *b = ibv_create_qp(pd, &init);
	must("QP", a && b);
	connect(a, b, address, gid_index);
	connect(b, a, address, gid_index);

	/* RDMA WRITE: a puts the message into b's buffer; b has no part in it. */
	ibv_sge from_sge = {reinterpret_cast<uintptr_t>(from), sizeof(from), from_mr->lkey};
	ibv_send_wr send = {}, *bad_send;
	send.sg_list = &from_sge;
	send.num_sge = 1;
	send.opcode = IBV_WR_RDMA_WRITE;
	send.send_flags = IBV_SEND_SIGNALED; /* else there is no completion */
	send.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(to);
	send.wr.rdma.rkey = to_mr->rkey;
	must("post", !ibv_post_send(a, &send, &bad_send));
	wait_for(cq, 1);
	puts(to);

	/* SEND and RECEIVE: b says where the next message may go, and is told when it came. */
	ibv_sge to_sge = {reinterpret_cast<uintptr_t>(to), sizeof(to), to_mr->lkey};
	ibv_recv_wr recv = {}, *bad_recv;
	recv.sg_list = &to_sge;
	recv.num_sge = 1;
	must("post", !ibv_post_recv(b, &recv, &bad_recv));
	strcpy(from, "sent and received");
	send.opcode = IBV_WR_SEND;
	must("post", !ibv_post_send(a, &send, &bad_send));
	wait_for(cq, 2);
	puts(to);

	/* Everything goes back in reverse order. */
	must("destroy", !ibv_destroy_qp(b) && !ibv_destroy_qp(a) && !ibv_destroy_cq(cq) &&
				!ibv_dereg_mr(to_mr) && !ibv_dereg_mr(from_mr) &&
				!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
