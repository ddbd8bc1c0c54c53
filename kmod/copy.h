/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moving bytes between packets, rings and memory regions. Everything that
 * touches a memory region's contents goes through here, under a reference
 * taken for that one copy, in ascending order of addresses: applications poll
 * the last byte of a message.
 *
 * All functions: BH disabled, do not sleep.
 */
#ifndef UROCE_COPY_H
#define UROCE_COPY_H

#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>
#include "key.h"
#include "uapi/uroce-abi.h"

struct uroce_dev;

/* memcpy() whose stores ascend, the last byte last */
void uroce_copy(void *to, const void *from, size_t len);

/*
 * A position in a gather or scatter list. The elements are a kernel copy;
 * their keys are checked at each step.
 */
struct uroce_sgl {
	struct uroce_bearer who;
	const struct uroce_sge *sge;
	u32 num;
	u32 cur;	/* element */
	u32 offset;	/* in it, bytes */
	u32 to_come;	/* bytes from here on, of several calls: faults want all */
	bool failed;	/* a key of it was not good, or it was too short */
};

/* @fault: where to note that memory of it is not there */
void uroce_sgl_init(struct uroce_sgl *sgl, struct uroce_dev *dev,
		    struct ib_pd *pd, struct uroce_fault *fault,
		    const struct uroce_sge *sge, u32 num);
/* Go to @offset bytes from the start, at most the list's length. */
void uroce_sgl_seek(struct uroce_sgl *sgl, u64 offset);
u64 uroce_sgl_length(const struct uroce_sge *sge, u32 num);

/*
 * Source of a packet's or local message's payload: an skb, a linear buffer,
 * or the requester's gather list.
 */
struct uroce_payload {
	struct sk_buff *skb;	/* payload at skb_offset */
	u32 skb_offset;
	const void *buf;	/* used when skb is NULL */
	struct uroce_sgl *sgl;	/* used when both are NULL */
	u32 len;		/* bytes */
};

/*
 * Copy @len bytes and advance. -EFAULT: a key of the list is not good for
 * this, or the list is too short. -EAGAIN: memory is not there, a fault has
 * been noted. Some bytes may have been written in either case, and the list is
 * somewhere; who tries again puts it back.
 */
int uroce_sgl_read(struct uroce_sgl *sgl, void *to, u32 len);
int uroce_sgl_write(struct uroce_sgl *sgl, const void *from, u32 len);
/* Could @len bytes be read from here? Does not advance. */
int uroce_sgl_check(const struct uroce_sgl *sgl, u32 len);
int uroce_payload_to_sgl(struct uroce_payload *payload, struct uroce_sgl *to);
int uroce_payload_to_buf(struct uroce_payload *payload, void *to);

/*
 * The same against one remote-accessible range [va, va + len) of @rkey.
 * -EACCES: the key is not good for this; -EFAULT: the payload's is not;
 * -EAGAIN as above, of either.
 */
int uroce_payload_to_mr(struct uroce_payload *payload,
			const struct uroce_bearer *who, u32 rkey, u64 va);
int uroce_mr_to_buf(const struct uroce_bearer *who, u32 rkey, u64 va, void *to,
		    u32 len);
int uroce_mr_to_sgl(const struct uroce_bearer *who, u32 rkey, u64 va,
		    struct uroce_sgl *to, u32 len);

#endif
