// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Completion events of an Endpoint.
#ifndef TESTS_EVENT_HPP
#define TESTS_EVENT_HPP

#include <poll.h>

#include "verbs.hpp"

namespace verbs {

inline QpConfig with_events()
{
	QpConfig config;

	config.events = true;
	return config;
}

// The CQ of the next event on the channel, null when none comes within @timeout_ms.
inline ibv_cq *next_event(Endpoint &end, int timeout_ms)
{
	pollfd fd = {end.channel->fd, POLLIN, 0};
	ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, timeout_ms) <= 0 || ibv_get_cq_event(end.channel.get(), &cq, &context))
		return nullptr;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

inline void arm(ibv_cq *cq, bool solicited_only)
{
	check(ibv_req_notify_cq(cq, solicited_only), "req_notify_cq");
}

} // namespace verbs

#endif
