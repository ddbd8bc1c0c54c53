// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* User contexts; see ucontext.h. */
#include "ucontext.h"

static_assert(offsetof(struct uroce_db_region, active) == 4096);

void uroce_ucontext_describe(const struct uroce_ucontext *uctx,
			     struct uroce_alloc_ucontext_resp *resp)
{
	memset(resp, 0, sizeof(*resp));
	resp->db_mmap_offset = uroce_region_offset(uctx->db);
	resp->db_mmap_len = uctx->db->len;
	resp->db_slots = UROCE_DB_SLOTS;
}

int uroce_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	struct uroce_ucontext *uctx = to_uctx(ibuctx);
	struct uroce_alloc_ucontext_resp resp;
	struct uroce_alloc_ucontext_req req;
	struct uroce_db_region *db;
	int err;

	if (udata->inlen < sizeof(req) || udata->outlen < sizeof(resp))
		return -EINVAL;
	err = ib_copy_from_udata(&req, udata, sizeof(req));
	if (err)
		return err;

	err = uroce_tenant_init(&uctx->tenant);
	if (err)
		return err;
	uctx->db = uroce_region_create(ibuctx, sizeof(*db));
	if (IS_ERR(uctx->db)) {
		err = PTR_ERR(uctx->db);
		goto err_tenant;
	}
	xa_init_flags(&uctx->slots, XA_FLAGS_ALLOC);

	/* nobody polls the doorbells: every post kicks */
	db = uctx->db->mem;
	WRITE_ONCE(db->need_wakeup, 1);

	uroce_ucontext_describe(uctx, &resp);
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (!err)
		return 0;

	uroce_region_destroy(uctx->db);
err_tenant:
	uroce_tenant_exit(&uctx->tenant);
	return err;
}

/* Its presence lets the core answer for itself; we have a method of our own. */
int uroce_query_ucontext(struct ib_ucontext *ibuctx,
			 struct uverbs_attr_bundle *attrs)
{
	return 0;
}

void uroce_dealloc_ucontext(struct ib_ucontext *ibuctx)
{
	struct uroce_ucontext *uctx = to_uctx(ibuctx);
	struct uroce_db_region *db = uctx->db->mem;

	/* no QP, so no work */
	WARN_ON(!xa_empty(&uctx->slots));
	uroce_tenant_exit(&uctx->tenant);
	xa_destroy(&uctx->slots);
	/* the process may keep the page: tell it that nobody listens */
	WRITE_ONCE(db->dead, 1);
	uroce_region_destroy(uctx->db);
}

/*
 * The device goes while the process lives. Mapped pages are plain memory with
 * references of their own, so there is nothing to zap; the core destroys the
 * objects and then the context, which marks the doorbell region dead.
 */
void uroce_disassociate_ucontext(struct ib_ucontext *ibuctx)
{
}

int uroce_slot_get(struct uroce_ucontext *uctx, u32 *slot)
{
	return xa_alloc(&uctx->slots, slot, NULL,
			XA_LIMIT(0, UROCE_DB_SLOTS - 1), GFP_KERNEL_ACCOUNT);
}

void uroce_slot_set(struct uroce_ucontext *uctx, u32 slot, struct uroce_qp *qp)
{
	/* the slot is reserved: this allocates nothing */
	xa_store(&uctx->slots, slot, qp, GFP_KERNEL_ACCOUNT);
}

void uroce_slot_put(struct uroce_ucontext *uctx, u32 slot)
{
	xa_erase(&uctx->slots, slot);
}

void uroce_slot_clear(struct uroce_ucontext *uctx, u32 slot)
{
	struct uroce_db_region *db = uctx->db->mem;

	clear_bit(slot, (unsigned long *)db->active);
}
