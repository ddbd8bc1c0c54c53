// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A first RDMA program: two queue pairs of one device, connected to each
 * other, move a message from one buffer to another. Nothing in it is special
 * to uroce.
 *
 *     first-program [device [GID index]]
 *
 * The GID index chooses the local address ("ibv_devinfo -v" lists them); it
 * must be a RoCE v2 one. Error handling is one word, must(), to keep the story
 * short: every verb tells of failure by NULL or by a value other than 0.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <infiniband/verbs.h>

template <class T>
static T *must(const char *what, T *object)
{
	if (object)
		return object;
	perror(what);
	exit(1);
}

static void must(const char *what, int err)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	exit(1);
}

static ibv_context *open_device(const char *name)
{
	int num = 0;
	ibv_device **list = must("device list", ibv_get_device_list(&num));
	ibv_context *context = nullptr;

	for (int i = 0; i < num && !context; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return must(name, context);
}

/* Takes a new queue pair through its states to "ready to send" to a peer. */
static void connect(ibv_qp *qp, const ibv_qp *peer, const ibv_gid &address, uint8_t gid_index)
{
	ibv_qp_attr attr = {};

	/* INIT: receives may be posted; what may the other side do with our memory? */
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	must("to INIT",
	     ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));

	/* RTR, ready to receive: who is the peer, and which way leads there? */
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qp_num;
	attr.rq_psn = 0; /* the number its packets start with: its sq_psn */
	attr.min_rnr_timer = 12;
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.dgid = address;
	attr.ah_attr.grh.sgid_index = gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.port_num = 1;
	must("to RTR", ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER));

	/* RTS, ready to send: how patiently to try again? */
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	attr.timeout = 14; /* 4.096 us * 2^14 = 67 ms */
	attr.retry_cnt = 7;
	attr.rnr_retry = 7; /* for ever, while the peer has no receive posted */
	attr.max_rd_atomic = 1;
	must("to RTS",
	     ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* Work is done when its completion lies in the completion queue. */
static void wait_for(ibv_cq *cq, int completions)
{
	ibv_wc wc;

	while (completions) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			must("poll", -n);
		if (!n)
			continue;
		printf("completed: work request %d, %s\n", static_cast<int>(wc.wr_id),
		       ibv_wc_status_str(wc.status));
		if (wc.status != IBV_WC_SUCCESS)
			exit(1);
		completions--;
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "uroce0";
	const auto gid_index = static_cast<uint8_t>(argc > 2 ? atoi(argv[2]) : 1);
	char from[64] = "written by RDMA WRITE", to[64] = "";
	ibv_gid address;

	/* The device; a protection domain, which ties memory and queue pairs together. */
	ibv_context *context = open_device(name);
	ibv_pd *pd = must("PD", ibv_alloc_pd(context));
	must("GID", ibv_query_gid(context, 1, gid_index, &address));

	/* Memory that the device may touch: registered, and known by keys. */
	ibv_mr *from_mr = must("MR", ibv_reg_mr(pd, from, sizeof(from), 0));
	ibv_mr *to_mr = must("MR", ibv_reg_mr(pd, to, sizeof(to),
					      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));

	/* One completion queue for both queue pairs. */
	ibv_cq *cq = must("CQ", ibv_create_cq(context, 16, nullptr, nullptr, 0));
	ibv_qp_init_attr init = {};
	init.send_cq = init.recv_cq = cq;
	init.qp_type = IBV_QPT_RC;
	init.cap = {4, 4, 1, 1, 0}; /* work requests and buffers, to send and to receive */
	ibv_qp *a = must("QP", ibv_create_qp(pd, &init));
	ibv_qp *b = must("QP", ibv_create_qp(pd, &init));
	connect(a, b, address, gid_index);
	connect(b, a, address, gid_index);

	/* RDMA WRITE: a puts the message into b's buffer; b's program has no part in it. */
	ibv_sge from_sge = {reinterpret_cast<uintptr_t>(from), sizeof(from), from_mr->lkey};
	ibv_send_wr write = {}, *bad_send;
	write.wr_id = 1;
	write.sg_list = &from_sge;
	write.num_sge = 1;
	write.opcode = IBV_WR_RDMA_WRITE;
	write.send_flags = IBV_SEND_SIGNALED; /* or there is no completion */
	write.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(to);
	write.wr.rdma.rkey = to_mr->rkey;
	must("post write", ibv_post_send(a, &write, &bad_send));
	wait_for(cq, 1);
	printf("b's buffer: %s\n", to);

	/* SEND and RECEIVE: b says where the next message may go, and is told of it. */
	ibv_sge to_sge = {reinterpret_cast<uintptr_t>(to), sizeof(to), to_mr->lkey};
	ibv_recv_wr recv = {2, nullptr, &to_sge, 1}, *bad_recv;
	must("post receive", ibv_post_recv(b, &recv, &bad_recv));
	strcpy(from, "sent and received");
	ibv_send_wr send = write;
	send.wr_id = 3;
	send.opcode = IBV_WR_SEND;
	must("post send", ibv_post_send(a, &send, &bad_send));
	wait_for(cq, 2);
	printf("b's buffer: %s\n", to);

	/* Everything goes back in reverse order. */
	must("destroy QP", ibv_destroy_qp(b));
	must("destroy QP", ibv_destroy_qp(a));
	must("destroy CQ", ibv_destroy_cq(cq));
	must("deregister", ibv_dereg_mr(to_mr));
	must("deregister", ibv_dereg_mr(from_mr));
	must("deallocate PD", ibv_dealloc_pd(pd));
	must("close", ibv_close_device(context));
	return 0;
}
