// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Messages per second of RDMA WRITEs over many RC QPs of one device, in one process and one thread: QP 2i
// writes to QP 2i+1. perftest does not go beyond some hundred QPs here, and connects them one by one.
//
// usage: write-rate DEVICE GID-INDEX QPS [SIZE [SECONDS [DEPTH]]]
#include <infiniband/verbs.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

[[noreturn]] void fail(const char *what)
{
	perror(what);
	exit(1);
}

template <typename T>
T *need(T *object, const char *what)
{
	if (!object)
		fail(what);
	return object;
}

struct Device {
	ibv_context *context{};
	ibv_pd *pd{};
	ibv_cq *cq{};
	ibv_mr *mr{};
	ibv_gid gid{};
	uint8_t gid_index{};
	std::vector<char> memory;

	Device(const char *name, uint8_t index, int cqes, size_t size)
	    : gid_index(index), memory(2 * size)
	{
		int count = 0;
		ibv_device **list = need(ibv_get_device_list(&count), "ibv_get_device_list");

		for (int i = 0; i < count; i++)
			if (!strcmp(ibv_get_device_name(list[i]), name))
				context = need(ibv_open_device(list[i]), name);
		need(context, name);
		pd = need(ibv_alloc_pd(context), "ibv_alloc_pd");
		cq = need(ibv_create_cq(context, cqes, nullptr, nullptr, 0), "ibv_create_cq");
		mr = need(ibv_reg_mr(pd, memory.data(), memory.size(),
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
			  "ibv_reg_mr");
		if (ibv_query_gid(context, 1, gid_index, &gid))
			fail("ibv_query_gid");
	}

	ibv_qp *qp(uint32_t depth) const
	{
		ibv_qp_init_attr init{};
		ibv_qp_attr attr{};

		init.send_cq = init.recv_cq = cq;
		init.cap = {depth, 1, 1, 1, 0};
		init.qp_type = IBV_QPT_RC;
		init.sq_sig_all = 1;
		ibv_qp *made = need(ibv_create_qp(pd, &init), "ibv_create_qp");

		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (ibv_modify_qp(made, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS))
			fail("modify to INIT");
		return made;
	}

	void connect(ibv_qp *qp, uint32_t peer) const
	{
		ibv_qp_attr attr{};

		attr.qp_state = IBV_QPS_RTR;
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = peer;
		attr.max_dest_rd_atomic = 1;
		attr.min_rnr_timer = 12;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.port_num = 1;
		attr.ah_attr.grh.dgid = gid;
		attr.ah_attr.grh.sgid_index = gid_index;
		attr.ah_attr.grh.hop_limit = 64;
		if (ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER))
			fail("modify to RTR");
		attr = {};
		attr.qp_state = IBV_QPS_RTS;
		attr.timeout = 18;
		attr.retry_cnt = 7;
		attr.rnr_retry = 7;
		attr.max_rd_atomic = 1;
		if (ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC))
			fail("modify to RTS");
	}
};

void post(const Device &device, ibv_qp *qp, size_t number, uint32_t size)
{
	ibv_sge sge{reinterpret_cast<uint64_t>(device.memory.data()), size, device.mr->lkey};
	ibv_send_wr wr{}, *bad = nullptr;

	wr.wr_id = number;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = sge.addr + size;
	wr.wr.rdma.rkey = device.mr->rkey;
	if (ibv_post_send(qp, &wr, &bad))
		fail("ibv_post_send");
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr,
			"usage: write-rate DEVICE GID-INDEX QPS [SIZE [SECONDS [DEPTH]]]\n");
		return 2;
	}
	const size_t qps = strtoul(argv[3], nullptr, 0);
	const uint32_t size = argc > 4 ? uint32_t(strtoul(argv[4], nullptr, 0)) : 64;
	const double seconds = argc > 5 ? strtod(argv[5], nullptr) : 1;
	const uint32_t depth = argc > 6 ? uint32_t(strtoul(argv[6], nullptr, 0)) : 16;
	const Device device(argv[1], uint8_t(strtoul(argv[2], nullptr, 0)), int(qps * depth), size);
	std::vector<ibv_qp *> senders;

	for (size_t i = 0; i < qps; i++) {
		ibv_qp *sender = device.qp(depth), *receiver = device.qp(1);

		device.connect(sender, receiver->qp_num);
		device.connect(receiver, sender->qp_num);
		senders.push_back(sender);
	}

	using Clock = std::chrono::steady_clock;
	const auto start = Clock::now();
	std::chrono::duration<double> took{};
	uint64_t done = 0, posted = 0;
	ibv_wc wc[16];

	for (uint32_t d = 0; d < depth; d++)
		for (size_t i = 0; i < qps; i++, posted++)
			post(device, senders[i], i, size);
	while (done < posted) {
		const int n = ibv_poll_cq(device.cq, 16, wc);

		if (n < 0)
			fail("ibv_poll_cq");
		took = Clock::now() - start;
		for (int k = 0; k < n; k++) {
			if (wc[k].status != IBV_WC_SUCCESS) {
				fprintf(stderr, "completion with %s\n",
					ibv_wc_status_str(wc[k].status));
				return 1;
			}
			done++;
			if (took.count() < seconds) {
				post(device, senders[wc[k].wr_id], wc[k].wr_id, size);
				posted++;
			}
		}
	}
	took = Clock::now() - start;
	printf("%.0f\n", double(done) / took.count());
}
