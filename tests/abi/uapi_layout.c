/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uapi/uroce-abi.h, first and alone: it must compile as C and as C++, for 32
 * and 64 bit, without padding (-Wpadded), and have this layout for ever. A
 * change here is a change of UROCE_ABI_VERSION, or a field in reserved space.
 */
#include "uroce-abi.h"

#include <stddef.h>

#ifdef __cplusplus
#define CHECK(cond) static_assert(cond, #cond)
#else
#define CHECK(cond) _Static_assert(cond, #cond)
#endif

#define SIZE(type, bytes) CHECK(sizeof(struct type) == (bytes))
#define AT(type, field, bytes) CHECK(offsetof(struct type, field) == (bytes))

SIZE(uroce_db_region, 4096 + 8192);
AT(uroce_db_region, need_wakeup, 0);
AT(uroce_db_region, dead, 4);
AT(uroce_db_region, summary, 64);
AT(uroce_db_region, active, 4096);

SIZE(uroce_alloc_ucontext_req, 8);
SIZE(uroce_alloc_ucontext_resp, 24);
AT(uroce_alloc_ucontext_resp, db_mmap_offset, 8);
AT(uroce_alloc_ucontext_resp, db_mmap_len, 16);
AT(uroce_alloc_ucontext_resp, db_slots, 20);

SIZE(uroce_dm_query_resp, 24);
AT(uroce_dm_query_resp, mmap_offset, 0);
AT(uroce_dm_query_resp, length, 8);
AT(uroce_dm_query_resp, mmap_len, 16);

SIZE(uroce_create_ah_resp, 8);
AT(uroce_create_ah_resp, handle, 0);

SIZE(uroce_cqe, 64);
AT(uroce_cqe, wr_id, 0);
AT(uroce_cqe, qpn, 8);
AT(uroce_cqe, byte_len, 12);
AT(uroce_cqe, imm_data, 16);
AT(uroce_cqe, inv_rkey, 16);
AT(uroce_cqe, src_qp, 20);
AT(uroce_cqe, status, 24);
AT(uroce_cqe, opcode, 25);
AT(uroce_cqe, wc_flags, 26);
AT(uroce_cqe, vendor_err, 28);
AT(uroce_cqe, timestamp, 32);
AT(uroce_cqe, wqe_index, 40);
AT(uroce_cqe, pkey_index, 44);
AT(uroce_cqe, sl, 46);
AT(uroce_cqe, queue, 47);
AT(uroce_cqe, wallclock, 48);
AT(uroce_cqe, owner, 60);

SIZE(uroce_cq_ctrl, 192);
AT(uroce_cq_ctrl, ci, 0);
AT(uroce_cq_ctrl, arm, 64);
AT(uroce_cq_ctrl, fired, 128);
AT(uroce_cq_ctrl, first, 132);

SIZE(uroce_create_cq_req, 8);
AT(uroce_create_cq_req, flags, 0);

SIZE(uroce_create_cq_resp, 32);
AT(uroce_create_cq_resp, mmap_offset, 8);
AT(uroce_create_cq_resp, mmap_len, 16);
AT(uroce_create_cq_resp, cqe_offset, 20);
AT(uroce_create_cq_resp, cqe_entries, 24);

SIZE(uroce_resize_cq_req, 16);
AT(uroce_resize_cq_req, mmap_offset, 0);
AT(uroce_resize_cq_req, step, 8);

SIZE(uroce_resize_cq_resp, 24);
AT(uroce_resize_cq_resp, mmap_offset, 0);
AT(uroce_resize_cq_resp, mmap_len, 8);
AT(uroce_resize_cq_resp, cqe_offset, 12);
AT(uroce_resize_cq_resp, cqe_entries, 16);

SIZE(uroce_srq_ctrl, 128);
AT(uroce_srq_ctrl, tail, 0);
AT(uroce_srq_ctrl, head, 64);

SIZE(uroce_create_srq_resp, 40);
AT(uroce_create_srq_resp, mmap_offset, 8);
AT(uroce_create_srq_resp, mmap_len, 16);
AT(uroce_create_srq_resp, wqe_offset, 20);
AT(uroce_create_srq_resp, entries, 24);
AT(uroce_create_srq_resp, stride, 28);
AT(uroce_create_srq_resp, max_sge, 32);

SIZE(uroce_resize_srq_req, 24);
AT(uroce_resize_srq_req, mmap_offset, 0);
AT(uroce_resize_srq_req, step, 8);
AT(uroce_resize_srq_req, max_wr, 12);
AT(uroce_resize_srq_req, srq_limit, 16);
AT(uroce_resize_srq_req, flags, 20);

SIZE(uroce_resize_srq_resp, 24);
AT(uroce_resize_srq_resp, mmap_offset, 0);
AT(uroce_resize_srq_resp, mmap_len, 8);
AT(uroce_resize_srq_resp, wqe_offset, 12);
AT(uroce_resize_srq_resp, entries, 16);

SIZE(uroce_sge, 16);
AT(uroce_sge, addr, 0);
AT(uroce_sge, length, 8);
AT(uroce_sge, lkey, 12);

SIZE(uroce_send_wqe, 64);
AT(uroce_send_wqe, wr_id, 0);
AT(uroce_send_wqe, opcode, 8);
AT(uroce_send_wqe, flags, 9);
AT(uroce_send_wqe, num_sge, 10);
AT(uroce_send_wqe, inline_len, 12);
AT(uroce_send_wqe, imm_data, 16);
AT(uroce_send_wqe, inv_rkey, 16);
AT(uroce_send_wqe, rkey, 20);
AT(uroce_send_wqe, remote_addr, 24);
AT(uroce_send_wqe, atomic.compare_add, 32);
AT(uroce_send_wqe, atomic.swap, 40);
AT(uroce_send_wqe, ud.ah, 32);
AT(uroce_send_wqe, ud.remote_qpn, 36);
AT(uroce_send_wqe, ud.remote_qkey, 40);
AT(uroce_send_wqe, bind.length, 32);
AT(uroce_send_wqe, bind.lkey, 40);
AT(uroce_send_wqe, bind.access, 44);
AT(uroce_send_wqe, remote_srqn, 48);

SIZE(uroce_recv_wqe, 16);
AT(uroce_recv_wqe, wr_id, 0);
AT(uroce_recv_wqe, num_sge, 8);

SIZE(uroce_qp_ctrl, 192);
AT(uroce_qp_ctrl, sq_tail, 0);
AT(uroce_qp_ctrl, rq_tail, 64);
AT(uroce_qp_ctrl, rq_need_kick, 128);

SIZE(uroce_create_qp_resp, 64);
AT(uroce_create_qp_resp, mmap_offset, 8);
AT(uroce_create_qp_resp, mmap_len, 16);
AT(uroce_create_qp_resp, db_slot, 20);
AT(uroce_create_qp_resp, sq_offset, 24);
AT(uroce_create_qp_resp, sq_entries, 28);
AT(uroce_create_qp_resp, sq_stride, 32);
AT(uroce_create_qp_resp, rq_offset, 36);
AT(uroce_create_qp_resp, rq_entries, 40);
AT(uroce_create_qp_resp, rq_stride, 44);
AT(uroce_create_qp_resp, max_send_sge, 48);
AT(uroce_create_qp_resp, max_recv_sge, 52);
AT(uroce_create_qp_resp, max_inline, 56);
