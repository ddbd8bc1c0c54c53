#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Multicast groups of UD QPs: who gets what; real memberships of the netdev, seen in `ip maddr` and
# by a bridge that snoops; they end with whatever ends the QP; mckey between two namespaces.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

group4=239.47.91.1
group6=ff15::4791:1
count=10

# users NS NETDEV GROUP: how many users of a group the netdev has, 0 when it is no member.
users() {
	ip -n "$1" maddr show dev "$2" | awk -v group="$3" '
		$2 == group { users = 1; for (i = 3; i < NF; i++) if ($i == "users") users = $(i + 1) }
		END { print users + 0 }'
}

users_are() {
	[ "$(users "$1" "$2" "$3")" = "$4" ]
}

is_member() {
	[ "$(users "$1" "$2" "$3")" -gt 0 ]
}

# check_users NAME NS NETDEV GROUP COUNT
check_users() {
	check "$1" wait_for $((10 * time_scale)) users_are "$2" "$3" "$4" "$5" ||
		ktap_note "$(ip -n "$2" maddr show dev "$3")"
}

# receiver NAME DEV GID GROUP N: rc-test --group in the background; it ends when $tmp/NAME.stop comes.
receiver() {
	local name=$1 device=$2 index=$3 group=$4 num=$5
	rm -f "$tmp/$name.stop"
	mkfifo "$tmp/$name.stop"
	# open for reading and writing: does not wait for a writer, and does not end by itself
	start_server "$name" sh -c "exec '$rc_test' --dev $device --gid-index $index --group $group receive $num <'$tmp/$name.stop'"
	exec 9>"$tmp/$name.stop"
	wait_for $((20 * time_scale)) grep -q '^attached' "$tmp/$name.out" ||
		ktap_fail "$name: attached" "$(cat "$tmp/$name.out")"
}

# end_receiver NAME: the end of its stdin
end_receiver() {
	exec 9>&-
	wait_server "$1" 20
}

# sender DEV GID GROUP LINE...
sender() {
	local device=$1 index=$2 group=$3
	shift 3
	printf '%s\n' "$@" | timeout 60 "$rc_test" --dev "$device" --gid-index "$index" --group "$group" send
}

# has_lines NAME COUNT: so many datagrams have come
has_lines() {
	[ "$(grep -cE '^[0-9]+ ' "$tmp/$1.out")" -ge "$2" ]
}

# groups_by_hand FAMILY GROUP GID-A GID-B: membership and delivery, b sends to three QPs of a
groups_by_hand() {
	local family=$1 group=$2 index_a=$3 index_b=$4
	receiver three da "$index_a" "$group" 3
	check_users "$family: a member as often as QPs are attached" a va "$group" 3
	check "$family: sender" sender db "$index_b" "$group" alpha beta
	check "$family: all of it arrives" wait_for $((10 * time_scale)) has_lines three 6
	check_eq "$family: the same for each QP" "$(grep -E '^[0-9]+ ' "$tmp/three.out" | sort)" \
		"$(printf '%s\n' "0 alpha" "0 beta" "1 alpha" "1 beta" "2 alpha" "2 beta")"
	check "$family: receiver" end_receiver three
	check_users "$family: no member after detaching" a va "$group" 0

	receiver killed da "$index_a" "$group" 2
	check_users "$family: a member again" a va "$group" 2
	kill -9 "$killed_pid"
	wait "$killed_pid" 2>/dev/null
	killed_pid=
	check_users "$family: no member after kill -9" a va "$group" 0
}

# The device goes under an attached QP: so does the membership.
device_removal() {
	receiver removed da "$gid_a" $group4 2
	rdma link delete da
	check_users "removal: no member after rdma link delete" a va $group4 0
	stop_server removed
	exec 9>&-
	rdma_link_add da va "$side_a"
	netns_gids
}

# mckey_pair NAME GROUP BIND-A BIND-B: b sends to a by the group, joined by rdma_cm.
mckey_pair() {
	local name=$1 group=$2 crc=0 src=0
	# shellcheck disable=SC2086
	start_server server $side_a stdbuf -oL mckey -m "$group" -b "$3" -c 2 -C $count
	check "$name: the receiver's netdev is a member" \
		wait_for $((10 * time_scale)) is_member a va "$group"
	# both QPs of it: the CM's membership comes before the attachment
	wait_for $((10 * time_scale)) grep -q "receiving data" "$tmp/server.out"
	# shellcheck disable=SC2086
	timeout -k 5 $((60 * time_scale)) $side_b mckey -m "$group" -b "$4" -s -c 2 -C $count \
		>"$tmp/client.out" 2>&1 || crc=$?
	wait_server server 20 || src=$?
	check_eq "$name: sender" $crc 0 || ktap_note "$(cat "$tmp/client.out")"
	check_eq "$name: receiver" $src 0 || ktap_note "$(cat "$tmp/server.out")"
	check_file "$name: all of it" "return status 0" "$tmp/server.out"
	check_users "$name: no member afterwards" a va "$group" 0
}

# ---- through a bridge that snoops ----
#
#	namespace a [va] ---- [pa] bridge in namespace s [pc] ---- [vc] namespace c (no device)
#	namespace b [vb] ---- [pb]
snooping_setup() {
	netns_add s
	netns_add c
	# the querier's time for answers, in 1/100 s, is the time a bridge floods after it came up
	ip -n s link add sw0 type bridge mcast_snooping 1 mcast_querier 1 mcast_query_response_interval 10 ||
		ktap_bail "no bridge"
	ip -n s addr add 10.9.0.9/24 dev sw0
	ip -n s link set sw0 up
	for end in a b c; do
		ip -n $end link del v$end 2>/dev/null
		ip link add v$end netns $end mtu 4200 type veth peer name p$end netns s mtu 4200
		ip -n s link set p$end master sw0 up
	done
	for end in a b; do
		eval "ip -n $end addr add \$addr_$end/24 dev v$end"
		eval "ip -n $end addr add \$addr6_$end/64 dev v$end nodad"
		ip -n $end link set v$end up
	done
	ip -n c addr add 10.9.0.4/24 dev vc
	ip -n c link set vc up
}

# Packets that the bridge sent to c
sent_to_c() {
	ip -n s -s -j link show pc | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["tx"]["packets"])'
}

# spares_c GID-INDEX GROUP: after a burst to the group by b, has c been spared?
spares_c() {
	local before
	before=$(sent_to_c)
	# shellcheck disable=SC2046
	sender db "$1" "$2" $(seq 30) || return 1
	[ $(($(sent_to_c) - before)) -lt 15 ]
}

knows_port() {
	bridge -n s mdb show dev sw0 | grep -q "port pa grp $1 "
}
forgot_port() {
	! knows_port "$1"
}

# snooping FAMILY GROUP GID-A GID-B: by IGMP or MLD the bridge learns of the member, and of its end
snooping() {
	local name="snooping, $1" group=$2 index_a=$3 index_b=$4
	receiver snooped da "$index_a" "$group" 1
	check "$name: the bridge knows the member's port" \
		wait_for $((20 * time_scale)) knows_port "$group" ||
		ktap_note "$(bridge -n s mdb show dev sw0)"
	check "$name: and sends to nobody else" wait_for $((30 * time_scale)) spares_c "$index_b" "$group"
	check "$name: the member gets it" wait_for $((10 * time_scale)) has_lines snooped 30
	check "$name: receiver" end_receiver snooped
	check "$name: no member, no port" wait_for $((20 * time_scale)) forgot_port "$group" ||
		ktap_note "$(bridge -n s mdb show dev sw0)"
}

rc_need
netns_pair
gid6_a=$(wait_gid da $addr6_a)
gid6_b=$(wait_gid db $addr6_b)
rc_run "veth" 'Mcast*' "$(rc_pair)"
rc_run "veth, IPv6" 'Mcast*' "$(rc_pair6)"
groups_by_hand IPv4 $group4 "$gid_a" "$gid_b"
groups_by_hand IPv6 $group6 "$gid6_a" "$gid6_b"
device_removal
# IPv4 alone: Linux' rdma_cm knows no IPv6 groups of RoCE v2
mckey_pair "mckey" 239.1.1.1 $addr_a $addr_b
rdma_link_del da
rdma_link_del db
snooping_setup
rdma_link_add da va "$side_a"
rdma_link_add db vb "$side_b"
netns_gids
snooping IPv4 $group4 "$gid_a" "$gid_b"
snooping IPv6 $group6 "$(wait_gid da $addr6_a)" "$(wait_gid db $addr6_b)"

ktap_finish
