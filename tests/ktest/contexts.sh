#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Contexts and domains: attributes, parent and thread domains, import, fork; and the asynchronous
# events of the port, as its link and its addresses come and go.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

rc_everywhere 'Context.*:ParentDomain.*:Import.*:Fork.*'

[ "$link_type" != rxe ] || ktap_finish

# ---- events of db's port; netns_pair has made it ----

events=$tmp/events
$side_b stdbuf -oL ibv_asyncwatch -d db >"$events" 2>&1 &
watcher=$!
at_end "kill $watcher"

# how often an event has come
events() {
	grep -c "$1" "$events"
}

# one_more WHAT EVENT COMMAND...: it brings the event
one_more() {
	local what=$1 event=$2 before
	shift 2
	before=$(events "$event")
	check "$what" "$@"
	check "$what: $event" wait_for $((20 * time_scale)) more_than "$before" "$event"
}

more_than() {
	[ "$(events "$2")" -gt "$1" ]
}

check "ibv_asyncwatch listens" wait_for $((20 * time_scale)) grep -q . "$events"
one_more "an IPv4 address comes" IBV_EVENT_GID_CHANGE $side_b ip addr add 10.9.7.7/24 dev vb
one_more "an IPv4 address goes" IBV_EVENT_GID_CHANGE $side_b ip addr del 10.9.7.7/24 dev vb
one_more "an IPv6 address comes" IBV_EVENT_GID_CHANGE $side_b ip addr add fd09::77/64 dev vb nodad
one_more "an IPv6 address goes" IBV_EVENT_GID_CHANGE $side_b ip addr del fd09::77/64 dev vb
one_more "the peer's end goes down" IBV_EVENT_PORT_ERR $side_a ip link set va down
one_more "the peer's end comes up" IBV_EVENT_PORT_ACTIVE $side_a ip link set va up
one_more "the netdev goes down" IBV_EVENT_PORT_ERR $side_b ip link set vb down
one_more "the netdev comes up" IBV_EVENT_PORT_ACTIVE $side_b ip link set vb up
check_eq "as many port errors as there were" "$(events IBV_EVENT_PORT_ERR)" 2
check_eq "the port is active as often" "$(events IBV_EVENT_PORT_ACTIVE)" 2

ktap_finish
