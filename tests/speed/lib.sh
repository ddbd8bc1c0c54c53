# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For the scripts that measure inside a VM: one device type after the other on eth0, in rounds. The
# caller has `measurements`, a function that calls `measure` for each value, and the variables rounds,
# devices, pattern, siw of tests/bench.

port=18515
seconds=1	# that a bandwidth or latency is measured
addr=10.0.0.1	# of the servers
values=$VM_OUT/measured-$VM_ROLE
scratch=$(mktemp -d)

say() {
	echo "bench: $*" >&2
}

# device_up TYPE: the module and a link on eth0; gid is the index of the IPv4 address's GID.
device_up() {
	case $1 in
	siw)
		[ -e /sys/module/siw ] || { modprobe -a ib_core libcrc32c crc32c_generic && insmod "$siw"; } ;;
	rxe) modprobe rdma_rxe ;;
	*) modprobe "$1" ;;
	esac && rdma link add "${1}0" type "$1" netdev eth0 || return
	type=$1 dev=${1}0 tries=100
	# siw takes its peers from rdma_cm, and has one GID
	cm=
	[ "$1" != siw ] || { cm=-R; return 0; }
	until gid=$(grep -lx "0000:0000:0000:0000:0000:ffff:0a00:000$own_byte" "/sys/class/infiniband/$dev/ports/1/gids/"[0-9]*); do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return
		sleep 0.1
	done
	gid=$(echo "$gid" | head -n 1)
	gid=${gid##*/}
}

device_down() {
	rdma link delete "${1}0"
	case $1 in
	rxe) rmmod rdma_rxe ;;
	*) rmmod "$1" ;;
	esac
}

perf_options() {
	if [ -n "$cm" ]; then echo "-d $dev $cm -F"; else echo "-d $dev -x $gid -F"; fi
}

listening() {
	if [ -n "$cm" ]; then
		rdma resource show cm_id | grep -qE "state LISTEN .*:$port( |\$)"
	else
		ss -Hltn "sport = :$port" | grep -q .
	fi
}

wait_listening() {
	tries=200
	until listening; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] && kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
}

# value_of COLUMN FILE: of perftest's result row; nothing where the tool says inf or nan, which it does
# when its measurement of the CPU's clock went wrong.
value_of() {
	awk -v c="$1" '$1 ~ /^[0-9]+$/ && NF >= 4 { v = $c } END { if (v !~ /inf|nan/ && v > 0) print v }' "$2"
}

# measured NAME VALUE
measured() {
	echo "$round $type $1 $2" >>"$values"
}

# measure NAME COMMAND...: unless the name is not wanted. The command leaves a number in $value; it gets
# three tries.
measure() {
	name=$1
	shift
	# shellcheck disable=SC2254
	case $name in $pattern) ;; *) return 0 ;; esac
	for _ in 1 2 3; do
		value=
		"$@" && [ -n "$value" ] && break
		value=
	done
	measured "$name" "${value:-failed}"
}

run_rounds() {
	modprobe rdma_ucm
	: >"$values"
	for round in $(seq "$rounds"); do
		for type in $devices; do
			device_up "$type" || {
				say "no device of type $type"
				return 1
			}
			say "round $round of $rounds: $type"
			measurements
			device_down "$type" || return 1
		done
	done
}
