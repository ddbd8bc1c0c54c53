// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Copies; see copy.h. */
#include "copy.h"
#include "device.h"
#include "fault.h"
#include "mr.h"

static void copy_u64(u8 *to, const u8 *from)
{
	put_unaligned(get_unaligned((const u64 *)from), (u64 *)to);
}

/*
 * memcpy() may go backwards on CPUs without fast string moves. The barriers
 * keep the compiler from turning the loops into a memcpy() again. What is
 * seen last, on every CPU, is the last byte; eight bytes are one store.
 */
void uroce_copy(void *to, const void *from, size_t len)
{
	const u8 *s = from;
	u8 *d = to;

	for (; len > 32; len -= 32, s += 32, d += 32) {
		copy_u64(d, s);
		copy_u64(d + 8, s + 8);
		copy_u64(d + 16, s + 16);
		copy_u64(d + 24, s + 24);
		barrier();
	}
	for (; len > 8; len -= 8, s += 8, d += 8) {
		copy_u64(d, s);
		barrier();
	}

	smp_wmb();	/* the rest is stored; then the end */
	if (len == 8) {
		copy_u64(d, s);
		return;
	}
	for (; len > 1; len--) {
		*d++ = *s++;
		barrier();
	}
	smp_wmb();	/* as above */
	if (len)
		*d = *s;
}

void uroce_sgl_init(struct uroce_sgl *sgl, struct uroce_dev *dev,
		    struct ib_pd *pd, struct uroce_fault *fault,
		    const struct uroce_sge *sge, u32 num)
{
	sgl->who = (struct uroce_bearer){ .dev = dev, .pd = pd, .fault = fault };
	sgl->sge = sge;
	sgl->num = num;
	sgl->cur = 0;
	sgl->offset = 0;
	sgl->to_come = 0;
	sgl->failed = false;
}

void uroce_sgl_seek(struct uroce_sgl *sgl, u64 offset)
{
	sgl->cur = 0;
	while (sgl->cur < sgl->num && offset >= sgl->sge[sgl->cur].length)
		offset -= sgl->sge[sgl->cur++].length;
	sgl->offset = offset;
}

u64 uroce_sgl_length(const struct uroce_sge *sge, u32 num)
{
	u64 len = 0;

	while (num--)
		len += (sge++)->length;
	return len;
}

/* What to do with a run of contiguous bytes of a region */
typedef int (*span_fn)(void *arg, void *span, u32 len);

/* @len bytes from byte @offset of what has been granted */
static int grant_walk(const struct uroce_grant *grant, u64 offset, u32 len,
		      span_fn fn, void *arg)
{
	while (len) {
		u64 run;
		void *span = uroce_mr_span(grant, offset, &run);
		u32 n;
		int err;

		if (!span)
			return uroce_fault_note_grant(grant);
		n = min_t(u64, run, len);
		err = fn(arg, span, n);
		if (err)
			return err;
		offset += n;
		len -= n;
	}
	return 0;
}

/* Open the range of @open bytes, walk the first @len of them, let go. */
static int range_walk(const struct uroce_bearer *who, u32 key, u64 va, u32 open,
		      u32 len, int access, span_fn fn, void *arg)
{
	struct uroce_grant grant;
	int err;

	err = uroce_key_get(who, key, va, open, access, &grant);
	if (err)
		return err;
	err = grant_walk(&grant, 0, len, fn, arg);
	uroce_key_put(&grant);
	return err;
}

static int sgl_walk(struct uroce_sgl *sgl, u32 len, int access, span_fn fn,
		    void *arg)
{
	while (len) {
		const struct uroce_sge *sge = &sgl->sge[sgl->cur];
		u32 rest, open, n;
		int err;

		if (sgl->cur >= sgl->num) {
			sgl->failed = true;
			return -EFAULT;
		}
		rest = sge->length - sgl->offset;
		n = min(len, rest);
		open = clamp(sgl->to_come, n, rest);
		if (n) {
			err = range_walk(&sgl->who, sge->lkey,
					 sge->addr + sgl->offset, open, n,
					 access | UROCE_ACCESS_LOCAL, fn, arg);
			if (err == -EAGAIN)
				return err;
			if (err == -EACCES)
				sgl->failed = true;
			if (err)
				return -EFAULT;
		}
		len -= n;
		sgl->to_come -= min(sgl->to_come, n);
		sgl->offset += n;
		if (sgl->offset == sge->length) {
			sgl->cur++;
			sgl->offset = 0;
		}
	}
	return 0;
}

struct linear {
	void *pos;
};

static int span_to_linear(void *arg, void *span, u32 len)
{
	struct linear *to = arg;

	uroce_copy(to->pos, span, len);
	to->pos += len;
	return 0;
}

static int span_from_linear(void *arg, void *span, u32 len)
{
	struct linear *from = arg;

	uroce_copy(span, from->pos, len);
	from->pos += len;
	return 0;
}

static int span_to_sgl(void *arg, void *span, u32 len)
{
	return uroce_sgl_write(arg, span, len);
}

static int span_untouched(void *arg, void *span, u32 len)
{
	return 0;
}

int uroce_sgl_check(const struct uroce_sgl *sgl, u32 len)
{
	struct uroce_sgl copy = *sgl;

	return sgl_walk(&copy, len, 0, span_untouched, NULL);
}

int uroce_sgl_read(struct uroce_sgl *sgl, void *buf, u32 len)
{
	struct linear to = { buf };

	return sgl_walk(sgl, len, 0, span_to_linear, &to);
}

int uroce_sgl_write(struct uroce_sgl *sgl, const void *buf, u32 len)
{
	struct linear from = { (void *)buf };

	return sgl_walk(sgl, len, IB_ACCESS_LOCAL_WRITE, span_from_linear,
			&from);
}

/* Feed the payload run by run to @fn(@arg), front to back. */
static int payload_walk(struct uroce_payload *payload, span_fn fn, void *arg)
{
	struct skb_seq_state seq;
	u32 done = 0;
	int err = 0;

	if (!payload->len)
		return 0;
	if (!payload->skb && payload->buf)
		return fn(arg, (void *)payload->buf, payload->len);
	if (!payload->skb)
		return sgl_walk(payload->sgl, payload->len, 0, fn, arg);

	skb_prepare_seq_read(payload->skb, payload->skb_offset,
			     payload->skb_offset + payload->len, &seq);
	while (!err && done < payload->len) {
		const u8 *data;
		u32 n = skb_seq_read(done, &data, &seq);

		/* the last run may reach beyond what was asked for */
		n = min(n, payload->len - done);
		if (!n)		/* cannot be: the length was checked */
			err = -EFAULT;
		else
			err = fn(arg, (void *)data, n);
		done += n;
	}
	skb_abort_seq_read(&seq);
	return err;
}

int uroce_payload_to_sgl(struct uroce_payload *payload, struct uroce_sgl *to)
{
	int err;

	to->to_come = payload->len;
	err = payload_walk(payload, span_to_sgl, to);
	to->to_come = 0;
	return err;
}

int uroce_payload_to_buf(struct uroce_payload *payload, void *buf)
{
	struct linear to = { buf };

	return payload_walk(payload, span_to_linear, &to);
}

struct grant_pos {
	const struct uroce_grant *grant;
	u64 offset;
	bool failed;		/* its memory cannot be had */
};

static int span_to_mr(void *arg, void *span, u32 len)
{
	struct linear from = { span };
	struct grant_pos *to = arg;
	int err;

	err = grant_walk(to->grant, to->offset, len, span_from_linear, &from);
	to->offset += len;
	if (err != -EACCES)
		return err;
	/* not to be taken for a fault of the payload's list */
	to->failed = true;
	return -EFAULT;
}

int uroce_payload_to_mr(struct uroce_payload *payload,
			const struct uroce_bearer *who, u32 rkey, u64 va)
{
	struct uroce_grant grant;
	struct grant_pos to = { .grant = &grant };
	int err;

	err = uroce_key_get(who, rkey, va, payload->len, IB_ACCESS_REMOTE_WRITE,
			    &grant);
	if (err)
		return err;
	err = payload_walk(payload, span_to_mr, &to);
	uroce_key_put(&grant);
	return to.failed ? -EACCES : err;
}

int uroce_mr_to_buf(const struct uroce_bearer *who, u32 rkey, u64 va, void *buf,
		    u32 len)
{
	struct linear to = { buf };

	return range_walk(who, rkey, va, len, len, IB_ACCESS_REMOTE_READ,
			  span_to_linear, &to);
}

int uroce_mr_to_sgl(const struct uroce_bearer *who, u32 rkey, u64 va,
		    struct uroce_sgl *to, u32 len)
{
	int err;

	to->to_come = len;
	err = range_walk(who, rkey, va, len, len, IB_ACCESS_REMOTE_READ,
			 span_to_sgl, to);
	to->to_come = 0;
	return err;
}
