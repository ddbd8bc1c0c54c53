// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Calls of the device's own uverbs methods: uapi/uroce-abi.h lists them. */
#ifndef UROCE_METHOD_HPP
#define UROCE_METHOD_HPP

#include <cerrno>
#include <cstdint>

#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include "uroce-abi.h"

namespace uroce {

/* A method with N attributes, which the caller fills in before call(). */
template <unsigned int N>
class Method {
public:
	Method(uint16_t object, uint16_t method)
	{
		hdr()->length = sizeof(space_);
		hdr()->object_id = object;
		hdr()->method_id = method;
		hdr()->num_attrs = N;
		hdr()->driver_id = UROCE_DRIVER_ID;
	}

	/* Attribute i, mandatory; its len and data are 0. */
	struct ib_uverbs_attr *attr(unsigned int i, uint16_t id)
	{
		struct ib_uverbs_attr *attr = &hdr()->attrs[i];

		attr->attr_id = id;
		attr->flags = UVERBS_ATTR_F_MANDATORY;
		return attr;
	}

	/* 0 or errno (EIO: the device is gone) */
	int call(int cmd_fd)
	{
		int ret;

		/* A signal may end the call before it did anything. */
		do {
			ret = ioctl(cmd_fd, RDMA_VERBS_IOCTL, hdr());
		} while (ret < 0 && errno == EINTR);
		return ret < 0 ? errno : 0;
	}

private:
	struct ib_uverbs_ioctl_hdr *hdr()
	{
		return reinterpret_cast<struct ib_uverbs_ioctl_hdr *>(space_);
	}

	alignas(struct ib_uverbs_ioctl_hdr) unsigned char space_
		[sizeof(struct ib_uverbs_ioctl_hdr) + N * sizeof(struct ib_uverbs_attr)] = {};
};

} /* namespace uroce */

#endif /* UROCE_METHOD_HPP */
