# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Devices, servers and clients for tests. Needs ktap.sh.
#
# link_type picks the device under test: uroce, or rxe to see what another software device makes
# of the same test. Commands of the two sides run behind the prefixes $side_a and $side_b, which
# are empty on one machine and `ip netns exec NS` in the topologies of netns.sh.

link_type=${link_type:-uroce}
netdev=${netdev:-eth0}
dev=${dev:-${link_type}0}
# Under software emulation everything is slow and a debug kernel slower still: a bound only ever
# ends what hangs, it never decides between pass and fail.
time_scale=${time_scale:-1}
side_a=
side_b=

case $link_type in
rxe) module=rdma_rxe ;;
*) module=$link_type ;;
esac

# Loads the module with what it needs: by modprobe where it is installed, else the file
# $UROCE_KO (default: build/ of this repository).
rdma_load() {
	local ko rel dep
	if ! modprobe "$module" 2>"$tmp/modprobe"; then
		rel=$(uname -r)
		ko=${UROCE_KO:-${VM_TOP:-.}/build/kmod-$rel/$module.ko}
		[ -e "$ko" ] || ktap_skip_all "no module $module: $(cat "$tmp/modprobe")"
		for dep in $(modinfo -F depends "$ko" | tr , ' '); do
			modprobe "$dep" || ktap_bail "modprobe $dep failed"
		done
		insmod "$ko" || ktap_bail "insmod $ko failed"
	fi
	modprobe rdma_ucm || ktap_bail "modprobe rdma_ucm failed"
}

# rdma_res DEV: what exists on a device, "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0".
rdma_res() {
	rdma resource show "$1" | sed "s/^[0-9]*: $1: //; s/ *$//"
}

rdma_res_is() {
	[ "$(rdma_res "$1")" = "$2" ]
}

# rdma_pooled_cqs_stay DEV: after kernel consumers. CQs of the core's pool stay as long as the device;
# all else they had must go.
rdma_pooled_cqs_stay() {
	local want
	eval "want=\$res_$1"
	want=$(echo "$want" | sed 's/cq [0-9]*/cq/')
	check "nothing but pooled CQs left" wait_for $((30 * time_scale)) rdma_res_is_but_cqs "$1" "$want"
	eval "res_$1='$(rdma_res "$1")'"
}
rdma_res_is_but_cqs() {
	[ "$(rdma_res "$1" | sed 's/cq [0-9]*/cq/')" = "$2" ]
}

# rdma_link_add DEV NETDEV [PREFIX]: adds the link, checks nothing but that it worked, and takes
# it away at the end of the test.
rdma_link_add() {
	${3-} rdma link add "$1" type "$link_type" netdev "$2" ||
		ktap_bail "rdma link add $1 type $link_type netdev $2 failed"
	eval "res_$1='$(rdma_res "$1")'"
	at_end "rdma_link_del $1"
}

# set_local_path DEV auto|off
set_local_path() {
	echo "$2" >"/sys/class/infiniband/$1/local_path"
}

# rdma_link_del DEV: everything the test made on the device must be gone (the CM lets go of its
# connections a moment later, hence the wait), then the device itself.
rdma_link_del() {
	local want now
	eval "want=\$res_$1"
	[ -e "/sys/class/infiniband/$1" ] || return 0
	if ! wait_for $((20 * time_scale)) rdma_res_is "$1" "$want"; then
		now=$(rdma_res "$1")
		ktap_fail "$1: nothing left on the device" "expected: $want
found:    $now
$(rdma resource show qp dev "$1"; rdma resource show cm_id dev "$1"; rdma resource show mr dev "$1")"
	fi
	check "$1: rdma link delete" timeout 60 rdma link delete "$1"
	[ ! -e "/sys/class/infiniband/$1" ] || ktap_fail "$1: gone after rdma link delete"
}

# rdma_setup: the module and one device $dev on $netdev. Most tests begin with it. Sets addr (its
# IPv4 address), addr6 (its global IPv6 address), gid and gid6 (their GID indices).
rdma_setup() {
	[ -e "/sys/class/net/$netdev" ] || ktap_skip_all "no netdev $netdev, name one by netdev=..."
	rdma_load
	rdma_link_add "$dev" "$netdev"
	addr=$(netdev_addr -4 "$netdev")
	addr6=$(netdev_addr -6 "$netdev")
	gid=$(wait_gid "$dev" "$addr") || ktap_bail "no GID for $addr on $dev"
	gid6=$(wait_gid "$dev" "$addr6") || ktap_bail "no GID for $addr6 on $dev"
}

# netdev_addr -4|-6 NETDEV [PREFIX]: its first global address.
netdev_addr() {
	${3-} ip "$1" -o addr show dev "$2" scope global | awk 'NR == 1 { sub("/.*", "", $4); print $4 }'
}

# gid_string ADDRESS: the address as sysfs writes a GID.
gid_string() {
	echo "$1" | awk '
	function put(list,   n, i, part) {
		n = split(list, part, ":")
		for (i = 1; i <= n; i++)
			out = out sprintf(":%4s", part[i])
		return n
	}
	/\./ {
		split($0, byte, ".")
		printf "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n", byte[1], byte[2], byte[3], byte[4]
		next
	}
	{
		halves = split($0, half, "::")
		used = put(half[1])
		if (halves == 2) {
			zeros = 8 - used - split(half[2], rest, ":")
			while (zeros-- > 0)
				out = out ":0000"
			put(half[2])
		}
		gsub(" ", "0", out)
		print substr(out, 2)
	}'
}

# gid_index DEV GID: prints the index of a GID, fails when there is none (yet). The port has up to
# a thousand entries, hence one grep over all of them.
gid_index() {
	local f
	f=$(grep -lsxm 1 -- "$2" /sys/class/infiniband/"$1"/ports/1/gids/* | head -n 1)
	[ -n "$f" ] && echo "${f##*/}"
}

# wait_gid DEV ADDRESS: waits for the address's GID and prints its index.
wait_gid() {
	local want
	want=$(gid_string "$2")
	wait_for $((10 * time_scale)) gid_index "$1" "$want" && gid_index "$1" "$want"
}

# wait_listen WHERE [PREFIX]: until a server is there. WHERE is tcp:PORT for tools that exchange
# their parameters over TCP, cm:PORT for an rdma_cm listener bound to an address.
wait_listen() {
	local port=${1#*:}
	case $1 in
	tcp:*) wait_for $((30 * time_scale)) sh -c "${2-} ss -Hltn 'sport = :$port' | grep -q ." ;;
	cm:*) wait_for $((30 * time_scale)) sh -c \
		"rdma resource show cm_id | grep -qE 'state LISTEN .*src-addr [^ ]*:$port( |\$)'" ;;
	esac
}

# start_server NAME COMMAND...: runs it in the background; its output goes to $tmp/NAME.out, its
# pid to NAME_pid. The end of the test stops it if nothing else did.
start_server() {
	local name=$1
	shift
	# shellcheck disable=SC2086
	"$@" >"$tmp/$name.out" 2>&1 &
	eval "${name}_pid=$!"
	at_end "stop_server $name"
}

# stop_server NAME: ends it. wait_server NAME [SECONDS]: waits for its own end and returns its
# status; 124 if it had to be ended.
stop_server() {
	local pid
	eval "pid=\${${1}_pid-}; ${1}_pid="
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	return 0
}

wait_server() {
	local pid rc=0
	eval "pid=\${${1}_pid-}"
	if ! wait_for $((${2:-10} * time_scale)) sh -c "! kill -0 $pid"; then
		stop_server "$1"
		return 124
	fi
	wait "$pid" || rc=$?
	eval "${1}_pid="
	return $rc
}

# run_pair NAME WHERE "SERVER COMMAND" "CLIENT COMMAND": one tool's two ends; both must exit 0.
# Their output is in $tmp/server.out and $tmp/client.out afterwards.
run_pair() {
	local name=$1 where=$2 server=$3 client=$4 crc=0 src=0
	# shellcheck disable=SC2086
	start_server server $side_a $server
	if ! wait_listen "$where" "$side_a"; then
		stop_server server
		ktap_fail "$name" "'$server' does not listen on $where:
$(tail -n 20 "$tmp/server.out")"
		return 1
	fi
	# shellcheck disable=SC2086
	timeout -k 5 $((${pair_seconds:-60} * time_scale)) $side_b $client >"$tmp/client.out" 2>&1 || crc=$?
	wait_server server 10 || src=$?
	if [ $crc = 0 ] && [ $src = 0 ]; then
		ktap_pass "$name"
		return 0
	fi
	ktap_fail "$name" "client '$client' exited with $crc:
$(tail -n 20 "$tmp/client.out")
server '$server' exited with $src:
$(tail -n 20 "$tmp/server.out")"
	return 1
}

# hw_counter DEV NAME: a counter of the port.
hw_counter() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}
