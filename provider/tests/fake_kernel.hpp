// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kernel's side of uapi/uroce-abi.h, played by the test program: it
 * defines the ibv_cmd_*() functions and ioctl() that the provider calls, backs
 * the mappings with a memfd, and lets a test look into the queues and write
 * completions. Verbs reach the provider through the real libibverbs.
 */
#ifndef UROCE_FAKE_KERNEL_HPP
#define UROCE_FAKE_KERNEL_HPP

#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "objects.hpp"

namespace fake {

/* The kernel's own view of one CQ: where CQEs go next. */
struct KernelCq {
	uroce_cq_ctrl *ctrl;
	uroce_cqe *cqes;
	uint32_t entries;
	uint32_t pi = 0; /* index of the next CQE to write */
	unsigned char *next = nullptr; /* region of resize_cq */
	uint32_t next_entries = 0;
	uint32_t flags = 0; /* UROCE_CQ_* it was created with */

	/* Fills in the owner word and writes the CQE. */
	void complete(uroce_cqe cqe);
};

struct KernelQp {
	uint32_t qpn;
	uroce_create_qp_resp resp;
	uroce_qp_ctrl *ctrl;
	unsigned char *region;

	uroce_send_wqe *send_wqe(uint32_t index) const;
	uroce_recv_wqe *recv_wqe(uint32_t index) const;
	/* A CQE that retires the WQE at index of the SQ or the RQ. */
	uroce_cqe sq_cqe(uint32_t index) const;
	uroce_cqe rq_cqe(uint32_t index) const;
};

/* How many mappings of shared memory this process has. */
int count_mappings();

struct KernelSrq {
	uroce_create_srq_resp resp;
	uroce_srq_ctrl *ctrl;
	unsigned char *region;
	unsigned char *next; /* prepared by a resize, with room for next_entries */
	uint32_t next_entries;
	uint32_t limit; /* set by a resize */

	uroce_recv_wqe *wqe(uint32_t index) const;
	/* A message takes the next WQE: its CQE, for the QP of that number. */
	uroce_cqe take(uint32_t qpn);
};

struct Kernel {
	Kernel();
	~Kernel();

	/* What the next object looks like. */
	uint32_t sq_entries = 8, rq_entries = 4, cq_entries = 8, srq_entries = 4;
	uint32_t max_sge = 4, max_inline = 100;
	uint32_t next_qpn = 17;
	uint32_t create_flags = 0; /* of the last QP that named them */
	uint32_t ah_handle = 0x1000; /* of the last AH */
	uint32_t srq_handle = 0x2000; /* of the last SRQ */
	bool resize_takes = false; /* a message comes while an SRQ is resized */

	/* errno values of the commands; 0: they work. */
	int get_context_err = 0, create_cq_err = 0, create_qp_err = 0, destroy_qp_err = 0;
	int create_srq_err = 0, destroy_srq_err = 0;
	int modify_qp_err = 0, simple_err = 0, resize_prepare_err = 0, resize_commit_err = 0;
	uint32_t late_tail = 0; // somebody publishes it just after a RESET
	bool bad_map_len = false; /* makes the provider's mmap fail */

	int kick_err = 0;
	std::vector<std::vector<unsigned char>> kick_commands;
	unsigned int eintr_before_kick = 0;

	int live_objects = 0; /* created minus destroyed */
	int commands = 0;

	uroce_db_region *db = nullptr;
	uroce_alloc_ucontext_resp context = {}; /* of the last context opened */
	std::map<ibv_cq *, KernelCq> cqs;
	std::map<ibv_qp *, KernelQp> qps;
	std::map<ibv_srq *, KernelSrq> srqs;

	/* A region of shared memory: its offset, and the kernel's mapping of it. */
	void *new_region(size_t len, __u64 *offset);
	/* The mappings that are the provider's. */
	int user_mappings() const
	{
		return count_mappings() - static_cast<int>(regions.size());
	}
	uint32_t mapped_len(size_t len) const
	{
		return bad_map_len ? 0 : static_cast<uint32_t>(len);
	}

	int fd;

private:
	uint64_t end = 0;
	std::vector<std::pair<void *, size_t>> regions;
};

extern Kernel *kernel; /* of the running test */

/* A test with a context, a PD, a CQ, and a connected RC QP with extended builders. */
class ProviderTest : public ::testing::Test {
protected:
	ProviderTest();
	~ProviderTest() override;

	/* NULL with errno, as the verb. */
	ibv_context *open_context();
	/* A second one of the same open file. */
	ibv_context *import_context();

	ibv_qp *make_qp(ibv_cq *of_cq, bool sig_all = false, ibv_qp_type type = IBV_QPT_RC,
			ibv_srq *srq = nullptr);
	void set_state(ibv_qp *of_qp, ibv_qp_state state);

	/* One WR, nothing linked behind it. */
	static ibv_send_wr make_send(ibv_wr_opcode opcode, ibv_sge *sge, int num_sge = 1,
				     unsigned int flags = 0);
	/* Posts and returns what the verb returned. */
	int post(ibv_send_wr *wr);
	int post(ibv_recv_wr *wr);

	KernelQp &kqp()
	{
		return k.qps.at(qp);
	}

	KernelCq &kcq()
	{
		return k.cqs.at(cq);
	}

	Kernel k;
	verbs_device *device;
	ibv_context *context;
	ibv_pd *pd;
	ibv_cq *cq;
	ibv_qp *qp;
	ibv_qp_ex *qpx;
	ibv_send_wr *bad_send = nullptr;
	ibv_recv_wr *bad_recv = nullptr;
};

} /* namespace fake */

#endif /* UROCE_FAKE_KERNEL_HPP */
