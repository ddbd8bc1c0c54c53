// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The objects that are a kernel command each and nothing more on this side.
 */
#include "objects.hpp"

#include <cstdio>
#include <ctime>

namespace uroce {

int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	unsigned int major, minor, sub_minor;
	int err;

	err = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;

	major = (resp.base.fw_ver >> 32) & 0xffff;
	minor = (resp.base.fw_ver >> 16) & 0xffff;
	sub_minor = resp.base.fw_ver & 0xffff;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u", major, minor,
		 sub_minor);
	return 0;
}

int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr)
{
	Cmd<struct ib_uverbs_query_port> cmd = {};

	return ibv_cmd_query_port(context, port_num, attr, cmd_core<struct ibv_query_port>(cmd),
				  sizeof(cmd));
}

/*
 * The clock that completions are stamped with. In ns, and all of it in tv_nsec:
 * that is where programs look for the ticks of a device.
 */
int query_rt_values(struct ibv_context *, struct ibv_values_ex *values)
{
	struct timespec now;

	if (values->comp_mask & ~uint32_t{IBV_VALUES_MASK_RAW_CLOCK})
		return EOPNOTSUPP;
	if (!(values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return 0;
	if (clock_gettime(CLOCK_MONOTONIC_RAW, &now))
		return errno;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.tv_sec * 1000000000 + now.tv_nsec;
	return 0;
}

struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	DrvResp<struct ib_uverbs_create_ah_resp, struct uroce_create_ah_resp> resp = {};
	auto *ah = alloc_zeroed<Ah>();
	int err;

	if (!ah)
		return nullptr;

	err = ibv_cmd_create_ah(pd, &ah->ah, attr, cmd_core<struct ib_uverbs_create_ah_resp>(resp),
				sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return nullptr;
	}
	ah->handle = resp.drv.handle;
	return &ah->ah;
}

int destroy_ah(struct ibv_ah *ah)
{
	int err = ibv_cmd_destroy_ah(ah);

	if (!err)
		free(to_ah(ah));
	return err;
}

} /* namespace uroce */
