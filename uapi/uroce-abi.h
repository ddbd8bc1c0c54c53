/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The contract between uroce.ko and liburoce: driver data of the uverbs
 * commands, and the memory that both sides share.
 *
 * Rules of this file
 *  - Every struct is a multiple of 8 bytes long, has no implicit padding, and
 *    has the same layout for 32 and 64 bit programs. Byte order is the
 *    machine's, except where a field is __be32.
 *  - A new field takes reserved space; a bit in comp_mask says that it is
 *    there. A new method needs none: the core says EPROTONOSUPPORT for one that
 *    the kernel does not have. Anything else bumps UROCE_ABI_VERSION.
 *  - Reserved fields are written as 0 and not read.
 *
 * Rules of the shared memory
 *  - All indices are free-running 32 bit counters. The slot of index i in a
 *    ring of n entries (n is a power of two) is i & (n - 1).
 *  - Each word has one writer, named beside it ("user" or "kernel").
 *  - What the user writes is input: the kernel copies a WQE once, checks the
 *    copy and works from it; indices are checked against the ring's size.
 *    What the kernel writes is output: it never reads it back. A process that
 *    scribbles over its mappings gets errors on its own queues, no more.
 *  - "release" and "acquire" are the C11 orders. "full fence" orders an
 *    earlier store against a later load (seq_cst fence, smp_mb() in Linux).
 *
 * The four ordering pairs
 *  1. Post against fetch.  user: WQE; release store of sq_tail / rq_tail /
 *     the tail of an SRQ. kernel: acquire load of the tail; copy of the WQE.
 *     The other way round for an SRQ: kernel: copy of the WQE; release store
 *     of head. user: acquire load of head; a new WQE in the slot.
 *  2. Post against sleep.  user: tail; doorbell bit; full fence; load of
 *     need_wakeup. kernel: store of need_wakeup = 1; full fence; scan of the
 *     doorbell bits and tails. One of the two sees the other.
 *     The same pair guards rq_need_kick of a QP: user: rq_tail; full fence;
 *     load of rq_need_kick. kernel: rq_need_kick = 1; full fence; flush up to
 *     rq_tail.
 *  3. Completion against poll.  kernel: CQE; release store of its owner word.
 *     user: acquire load of the owner word; the rest of the CQE.
 *  4. Arm against completion.  user: store of arm; full fence; poll once more.
 *     kernel: CQEs of a batch; full fence; load of arm.
 */
#ifndef UROCE_ABI_H
#define UROCE_ABI_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

/* ib_uverbs_abi_ver of the device; the provider matches exactly this one. */
#define UROCE_ABI_VERSION	2

/*
 * Driver id in uverbs ioctls and netlink. Private, far above the upstream
 * enumeration (rdma_driver_id), which ends below 64.
 */
#define UROCE_DRIVER_ID		0x52634532

/* ------------------------------------------------------------------ */
/* Context: doorbell region and kick                                  */
/* ------------------------------------------------------------------ */

/* Doorbell slots of one context, hence the most QPs it may own. */
#define UROCE_DB_SLOTS		65536

/*
 * Doorbell region, one for each context, mapped shared and writable.
 *
 * To ring for the QP in slot s: set bit (s & 63) of active[s >> 6], then bit
 * ((s >> 6) & 63) of summary[s >> 12], both with atomic OR, and look at
 * need_wakeup, all in seq_cst order. The first OR is always done: it is the full
 * fence between the tail and what follows. The second may be left out when its
 * bit is seen set after the first. Whoever looks at the bits clears summary, then
 * active, then reads the tail.
 */
struct uroce_db_region {
	__u32 need_wakeup;	/* kernel: not 0: nobody looks at the bits, kick */
	__u32 dead;		/* kernel: not 0: the device is gone (final) */
	__u32 reserved0[14];
	/* user sets; cleared by who polls it, and nobody does today */
	__aligned_u64 summary[UROCE_DB_SLOTS / 64 / 64];
	__u32 reserved1[976];	/* active starts at byte 4096 */
	__aligned_u64 active[UROCE_DB_SLOTS / 64];	/* user sets, kernel clears */
};

/*
 * alloc_ucontext. The request carries what the provider understands, the
 * response what the kernel grants (the intersection).
 */
struct uroce_alloc_ucontext_req {
	__aligned_u64 comp_mask;	/* 0 today */
};

struct uroce_alloc_ucontext_resp {
	__aligned_u64 comp_mask;	/* 0 today */
	__aligned_u64 db_mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__u32 db_mmap_len;		/* bytes, multiple of the page size */
	__u32 db_slots;			/* UROCE_DB_SLOTS */
};

/*
 * Kick: a uverbs ioctl (RDMA_VERBS_IOCTL, driver id UROCE_DRIVER_ID) that runs
 * the QP in a slot in the caller's context: fetches and carries out what was
 * posted, up to a budget; the device side goes on with the rest by itself.
 * Attribute: UROCE_ATTR_KICK_SLOT, u32 in, mandatory. Errors: EINVAL no QP in
 * that slot, EIO the device is gone.
 */
enum uroce_objects {
	UROCE_OBJECT_DOORBELL = (1U << 12),	/* 1 << UVERBS_ID_NS_SHIFT */
};

enum uroce_doorbell_methods {
	UROCE_METHOD_KICK = (1U << 12),
	UROCE_METHOD_DOORBELL_QUERY,
};

enum uroce_kick_attrs {
	UROCE_ATTR_KICK_SLOT = (1U << 12),
};

/*
 * For who joins a context by its open file (ibv_import_device()): what
 * alloc_ucontext answered. UROCE_ATTR_DOORBELL_QUERY_RESP: struct
 * uroce_alloc_ucontext_resp out, mandatory.
 */
enum uroce_doorbell_query_attrs {
	UROCE_ATTR_DOORBELL_QUERY_RESP = (1U << 12),
};

/* ------------------------------------------------------------------ */
/* Device memory                                                      */
/* ------------------------------------------------------------------ */

/*
 * Where to map device memory (alloc_dm): a method of UVERBS_OBJECT_DM.
 * Attributes: UROCE_ATTR_DM_QUERY_HANDLE, the object; UROCE_ATTR_DM_QUERY_RESP,
 * struct uroce_dm_query_resp out. Both mandatory.
 */
enum uroce_dm_methods {
	UROCE_METHOD_DM_QUERY = (1U << 12),
};

enum uroce_dm_query_attrs {
	UROCE_ATTR_DM_QUERY_HANDLE = (1U << 12),
	UROCE_ATTR_DM_QUERY_RESP,
};

struct uroce_dm_query_resp {
	__aligned_u64 mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__aligned_u64 length;		/* bytes, as allocated */
	__u32 mmap_len;			/* bytes, multiple of the page size */
	__u32 reserved;
};

/* ------------------------------------------------------------------ */
/* Address handle                                                     */
/* ------------------------------------------------------------------ */

/*
 * create_ah. Words of 32 bits only: it follows a core response of 4 bytes. The
 * address stays in the kernel; WQEs name it by its handle.
 */
struct uroce_create_ah_resp {
	__u32 handle;		/* for ud.ah of send WQEs; never 0 */
	__u32 reserved;
};

/* ------------------------------------------------------------------ */
/* Completion queue                                                   */
/* ------------------------------------------------------------------ */

/* Which queue of the QP a CQE retires WQEs of. */
enum uroce_cqe_queue {
	UROCE_CQE_SQ = 0,
	UROCE_CQE_RQ = 1,
	/* None: the WQE was an SRQ's, whose head tells what is free. */
	UROCE_CQE_SRQ = 2,
};

struct uroce_cqe {
	__aligned_u64 wr_id;	/* as posted */
	__u32 qpn;		/* local QP number; an XRC SRQ's: of the target QP */
	__u32 byte_len;		/* bytes received, or moved by READ and atomics */
	union {
		__be32 imm_data;	/* UROCE_WC_WITH_IMM in wc_flags */
		__u32 inv_rkey;		/* UROCE_WC_WITH_INV in wc_flags */
	};
	__u32 src_qp;		/* remote QP number (UD) */
	__u8 status;		/* enum ib_wc_status = enum ibv_wc_status */
	__u8 opcode;		/* enum ib_uverbs_wc_opcode; RECV, RECV_RDMA_WITH_IMM:
				 * 128, 129; valid whatever the status
				 */
	__u16 wc_flags;		/* UROCE_WC_* */
	__u32 vendor_err;	/* AETH syndrome or 0 */
	__aligned_u64 timestamp;	/* ns, CLOCK_MONOTONIC_RAW, of the completion */
	/*
	 * Index of the WQE that this completes. All WQEs of the same queue up
	 * to and including it are retired: N unsignalled WQEs come free with
	 * the signalled one behind them. 0 for an SRQ's.
	 */
	__u32 wqe_index;
	__u16 pkey_index;
	__u8 sl;		/* datagrams: UROCE_CQE_SL_*, else 0 */
	__u8 queue;		/* enum uroce_cqe_queue */
	/* ns, CLOCK_REALTIME, of the completion; with UROCE_CQ_WALLCLOCK, else 0 */
	__aligned_u64 wallclock;
	__u32 reserved;
	/*
	 * The CQE of index i in a ring of n entries is valid when owner equals
	 * (i / n) + 1 (mod 2^32): the number of the pass over the ring,
	 * starting with 1. Stored last, with release order.
	 */
	__u32 owner;
};

/*
 * What a datagram came in, in the service level, where NICs have it and programs
 * (UCX) look: whether the first 40 bytes are an IPv6 header or end with an IPv4 one.
 */
enum uroce_cqe_sl {
	UROCE_CQE_SL_IPV6 = 1,
	UROCE_CQE_SL_IPV4 = 2,
	UROCE_CQE_SL_UDP = 8,
};

/* wc_flags of a CQE; not the values of ibv_wc_flags */
#define UROCE_WC_GRH		1	/* 40 bytes of GRH precede the payload */
#define UROCE_WC_WITH_IMM	2
#define UROCE_WC_WITH_INV	4

/* arm word: low two bits the kind, the rest a sequence number. */
#define UROCE_ARM_NEXT		1	/* event for the next CQE of any kind */
#define UROCE_ARM_SOLICITED	2	/* event for the next solicited or failed CQE */
#define UROCE_ARM_KIND_MASK	3
#define UROCE_ARM_SEQ_INC	4

/*
 * First bytes of a CQ's region; the CQEs follow at cqe_offset.
 * The CQ is armed while arm differs from fired. The kernel raises one event
 * for each value of arm, so the user adds UROCE_ARM_SEQ_INC to arm again.
 */
struct uroce_cq_ctrl {
	__u32 ci;		/* user: index of the next CQE to poll; release */
	__u32 reserved0[15];
	__u32 arm;		/* user: see above */
	__u32 reserved1[15];
	__u32 fired;		/* kernel: value of arm that the last event was for */
	/* kernel: index of the first CQE that it writes here; 0, or see resize_cq */
	__u32 first;
	__u32 reserved2[14];
};

/* flags of create_cq */
#define UROCE_CQ_WALLCLOCK	1	/* fill in wallclock of each CQE */

/* create_cq; may be left out */
struct uroce_create_cq_req {
	__u32 flags;		/* UROCE_CQ_* */
	__u32 reserved;
};

struct uroce_create_cq_resp {
	__aligned_u64 comp_mask;	/* 0 today */
	__aligned_u64 mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__u32 mmap_len;			/* bytes, multiple of the page size */
	__u32 cqe_offset;		/* bytes from the start of the region */
	__u32 cqe_entries;		/* power of two, at least what was asked for */
	__u32 reserved;
};

/*
 * resize_cq takes two commands. PREPARE makes a region of the new size, for
 * the user to map. COMMIT makes the kernel use it: the CQE of index
 * ctrl->first of the new region, and all after it, are in the new ring, those
 * before it in the old one. The kernel does not look at what it has written;
 * the user takes the CQEs between ci and first along, into the slots that
 * their indices have in the new ring, and gives them the owner words of it.
 *
 * Before COMMIT, and without polling or arming until it returned, the user
 * stores ci and arm of the old region into the new one. What follows is
 * ordered by the command itself.
 *
 * A region that was prepared stays until the next PREPARE, a COMMIT or the CQ's
 * end. A failed COMMIT changes nothing, but the new region is gone. EINVAL: more
 * CQEs wait than fit, or the CQ is in error, or ci is nonsense. EBUSY: the
 * region is not the last one prepared.
 */
enum uroce_resize_cq_step {
	UROCE_RESIZE_CQ_PREPARE = 1,
	UROCE_RESIZE_CQ_COMMIT = 2,
};

struct uroce_resize_cq_req {
	__aligned_u64 mmap_offset;	/* COMMIT: as PREPARE answered */
	__u32 step;			/* enum uroce_resize_cq_step */
	__u32 reserved;
};

/* To PREPARE; COMMIT does not write it */
struct uroce_resize_cq_resp {
	__aligned_u64 mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__u32 mmap_len;			/* bytes, multiple of the page size */
	__u32 cqe_offset;		/* bytes from the start of the region */
	__u32 cqe_entries;		/* power of two, at least what was asked for */
	__u32 reserved;
};

/* ------------------------------------------------------------------ */
/* Shared receive queue                                               */
/* ------------------------------------------------------------------ */

/*
 * First bytes of an SRQ's region; WQEs (struct uroce_recv_wqe, as in an RQ)
 * follow at wqe_offset. The kernel copies a WQE when a message takes it, in
 * posting order, and has done with the slot then: before the completion, and
 * whatever the order of the completions.
 */
struct uroce_srq_ctrl {
	__u32 tail;		/* user: index behind the last posted WQE; release */
	__u32 reserved0[15];
	__u32 head;		/* kernel: index of the next WQE to be taken; release */
	__u32 reserved1[15];
};

/* create_srq. A WQE with more than max_sge elements fails when it is taken. */
struct uroce_create_srq_resp {
	__aligned_u64 comp_mask;	/* 0 today */
	__aligned_u64 mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__u32 mmap_len;			/* bytes, multiple of the page size */
	__u32 wqe_offset;		/* bytes from the start of the region */
	__u32 entries;			/* power of two, at least what was asked for */
	__u32 stride;			/* bytes, multiple of 16 */
	__u32 max_sge;			/* of a WQE; at least what was asked for */
	__u32 reserved;
};

/*
 * A new size (ibv_modify_srq() with IBV_SRQ_MAX_WR): a method of
 * UVERBS_OBJECT_SRQ, since modify_srq of the core cannot answer. Attributes:
 * UROCE_ATTR_SRQ_RESIZE_HANDLE, the object; UROCE_ATTR_SRQ_RESIZE_REQ, struct
 * uroce_resize_srq_req in; UROCE_ATTR_SRQ_RESIZE_RESP, struct
 * uroce_resize_srq_resp out. All mandatory.
 *
 * It takes two calls. PREPARE makes a region of the new size, for the user to
 * map. COMMIT makes the kernel use it. Before COMMIT, and without posting until
 * it returned, the user copies the WQEs between head and tail of the old region
 * into the slots that their indices have in the new one, and tail; the kernel
 * goes on with its own head. What follows is ordered by the call itself. COMMIT
 * may set the limit too (IBV_SRQ_LIMIT), both or neither.
 *
 * A region that was prepared stays until the next PREPARE, a COMMIT or the
 * SRQ's end. A failed COMMIT changes nothing, but the new region is gone.
 * EINVAL: max_wr is 0 or more than the device has; more WQEs wait than fit, or
 * the limit is higher. EBUSY: the region is not the last one prepared.
 */
enum uroce_srq_methods {
	UROCE_METHOD_SRQ_RESIZE = (1U << 12),
};

enum uroce_srq_resize_attrs {
	UROCE_ATTR_SRQ_RESIZE_HANDLE = (1U << 12),
	UROCE_ATTR_SRQ_RESIZE_REQ,
	UROCE_ATTR_SRQ_RESIZE_RESP,
};

enum uroce_resize_srq_step {
	UROCE_RESIZE_SRQ_PREPARE = 1,
	UROCE_RESIZE_SRQ_COMMIT = 2,
};

/* flags of resize_srq */
#define UROCE_RESIZE_SRQ_LIMIT	1	/* COMMIT: srq_limit is the new limit */

struct uroce_resize_srq_req {
	__aligned_u64 mmap_offset;	/* COMMIT: as PREPARE answered */
	__u32 step;			/* enum uroce_resize_srq_step */
	__u32 max_wr;			/* PREPARE: WQEs to have room for */
	__u32 srq_limit;		/* WQEs; 0: none */
	__u32 flags;			/* UROCE_RESIZE_SRQ_*; others are EINVAL */
};

/* To PREPARE; 0 to COMMIT. The stride stays what it was. */
struct uroce_resize_srq_resp {
	__aligned_u64 mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__u32 mmap_len;			/* bytes, multiple of the page size */
	__u32 wqe_offset;		/* bytes from the start of the region */
	__u32 entries;			/* power of two, at least what was asked for */
	__u32 reserved;
};

/* ------------------------------------------------------------------ */
/* Queue pair                                                         */
/* ------------------------------------------------------------------ */

struct uroce_sge {
	__aligned_u64 addr;	/* in the address space of the key */
	__u32 length;		/* bytes */
	__u32 lkey;
};

/*
 * Send WQE: this header, then num_sge scatter/gather elements or, with
 * IB_SEND_INLINE (8) in flags, inline_len bytes of payload. Slots of the SQ
 * are sq_stride bytes apart, a multiple of 64.
 */
struct uroce_send_wqe {
	__aligned_u64 wr_id;	/* comes back in the CQE */
	__u8 opcode;		/* enum ib_uverbs_wr_opcode = enum ibv_wr_opcode,
				 * UROCE_WR_ATOMIC_WRITE
				 */
	/* enum ibv_send_flags: FENCE 1, SIGNALED 2, SOLICITED 4, INLINE 8 */
	__u8 flags;
	__u16 num_sge;		/* 0 when inline */
	__u32 inline_len;	/* bytes; 0 when not inline */
	union {
		__be32 imm_data;	/* *_WITH_IMM */
		__u32 inv_rkey;		/* SEND_WITH_INV, LOCAL_INV */
	};
	__u32 rkey;		/* RDMA, atomics, BIND_MW */
	__aligned_u64 remote_addr;	/* RDMA, atomics, BIND_MW */
	union {
		struct {
			__aligned_u64 compare_add;	/* compare, or summand */
			__aligned_u64 swap;
		} atomic;
		__u8 atomic_write[8];	/* the bytes as they are to be stored */
		struct {
			__u32 ah;		/* handle of uroce_create_ah_resp, same PD */
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 reserved;
		} ud;
		/*
		 * BIND_MW: rkey is the key that the window is to have,
		 * remote_addr where it begins in the region's addresses.
		 */
		struct {
			__aligned_u64 length;	/* bytes; 0 unbinds (type 1) */
			__u32 lkey;		/* of the region, if length */
			__u32 access;		/* enum ib_access_flags */
		} bind;
	};
	__u32 remote_srqn;	/* XRC: number of the SRQ that the request is for */
	__u32 reserved[3];
};

/* flags of a send WQE; the values of ibv_send_flags */
#define UROCE_SEND_FENCE	1
#define UROCE_SEND_SIGNALED	2
#define UROCE_SEND_SOLICITED	4
#define UROCE_SEND_INLINE	8

/*
 * ATOMIC WRITE: no elements, no inline data. The values of ibv_wr_opcode and
 * ibv_wc_opcode, which Linux 6.1 does not know yet.
 */
#define UROCE_WR_ATOMIC_WRITE	15
#define UROCE_WC_ATOMIC_WRITE	9

/* Receive WQE: this header, then num_sge elements. Slots are a stride apart. */
struct uroce_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

/* First bytes of a QP's region; SQ and RQ follow at sq_offset and rq_offset. */
struct uroce_qp_ctrl {
	__u32 sq_tail;		/* user: index behind the last posted WQE; release */
	__u32 reserved0[15];
	__u32 rq_tail;		/* user: the same of the RQ; release */
	__u32 reserved1[15];
	/*
	 * kernel: not 0 while the QP is in the error state: after posting a
	 * receive, kick, so that it is flushed (ordering pair 2).
	 */
	__u32 rq_need_kick;
	__u32 reserved2[15];
};

/*
 * create_qp; nothing is written for an XRC target QP, which has no queues and
 * nothing to map. A modify to RESET empties both queues and puts both tails back
 * to 0 in the shared page, before the command returns.
 */
struct uroce_create_qp_resp {
	__aligned_u64 comp_mask;	/* 0 today */
	__aligned_u64 mmap_offset;	/* bytes, for mmap(2) on the uverbs fd */
	__u32 mmap_len;			/* bytes, multiple of the page size */
	__u32 db_slot;			/* doorbell slot */
	__u32 sq_offset;		/* bytes from the start of the region */
	__u32 sq_entries;		/* power of two; 0: no SQ */
	__u32 sq_stride;		/* bytes, multiple of 64 */
	__u32 rq_offset;
	__u32 rq_entries;		/* power of two; 0: no RQ, as with an SRQ */
	__u32 rq_stride;		/* bytes, multiple of 16 */
	/* What a WQE may carry; at least what was asked for. */
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_inline;		/* bytes */
	__u32 reserved;
};

#endif /* UROCE_ABI_H */
