// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "doorbell.hpp"

#include <cstring>
#include <sys/ioctl.h>

#include <rdma/rdma_user_ioctl_cmds.h>

namespace uroce {

namespace {

/* struct ib_uverbs_ioctl_hdr with room for its one attribute. */
struct KickCommand {
	alignas(struct ib_uverbs_ioctl_hdr) unsigned char space[sizeof(struct ib_uverbs_ioctl_hdr) +
								sizeof(struct ib_uverbs_attr)];

	struct ib_uverbs_ioctl_hdr *hdr()
	{
		return reinterpret_cast<struct ib_uverbs_ioctl_hdr *>(space);
	}
};

} /* namespace */

int kick(int cmd_fd, uint32_t slot)
{
	KickCommand cmd = {};
	struct ib_uverbs_ioctl_hdr *hdr = cmd.hdr();
	struct ib_uverbs_attr *attr = hdr->attrs;
	int ret;

	hdr->length = sizeof(cmd);
	hdr->object_id = UROCE_OBJECT_DOORBELL;
	hdr->method_id = UROCE_METHOD_KICK;
	hdr->num_attrs = 1;
	hdr->driver_id = UROCE_DRIVER_ID;

	attr->attr_id = UROCE_ATTR_KICK_SLOT;
	attr->len = sizeof(slot);
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	memcpy(&attr->data, &slot, sizeof(slot)); /* up to 8 bytes travel in place */

	/* A signal may end the call before it did anything. */
	do {
		ret = ioctl(cmd_fd, RDMA_VERBS_IOCTL, hdr);
	} while (ret < 0 && errno == EINTR);

	return ret < 0 ? errno : 0;
}

} /* namespace uroce */
