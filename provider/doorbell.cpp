// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "doorbell.hpp"

#include <cstring>

#include "method.hpp"

namespace uroce {

void kick(int cmd_fd, uint32_t slot)
{
	Method<1> method(UROCE_OBJECT_DOORBELL, UROCE_METHOD_KICK);
	struct ib_uverbs_attr *attr = method.attr(0, UROCE_ATTR_KICK_SLOT);

	attr->len = sizeof(slot);
	memcpy(&attr->data, &slot, sizeof(slot)); /* up to 8 bytes travel in place */
	method.call(cmd_fd);
}

} /* namespace uroce */
