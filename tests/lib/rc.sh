# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Runs programs that print TAP themselves (tests/verbs/rc-test, tests/wire/*.py) and takes their
# results over, one check for each of theirs. Needs ktap.sh, rdma.sh, netns.sh.

rc_test=${RC_TEST:-${VM_TOP:-${0%/*}/../..}/build/verbs/rc-test}

# tap_run LABEL SECONDS COMMAND...: the command's tests, named "LABEL: theirs". What it says about
# a failure comes before the failing line, as TAP notes.
tap_run() {
	local label=$1 seconds=$2 rc=0 notes= results=0 planned=0 line name
	shift 2
	timeout -k 5 $((seconds * time_scale)) "$@" >"$tmp/tap.out" 2>&1 || rc=$?
	while IFS= read -r line; do
		name=${line#*ok }
		name="$label: ${name#* }"
		name=${name%% # *}
		case $line in
		"1.."*) planned=${line#1..}; planned=${planned%% *} ;;
		"ok "*"# SKIP"*) results=$((results + 1)); ktap_skip "$name" "${line#*# SKIP }"; notes= ;;
		"ok "*) results=$((results + 1)); ktap_pass "$name"; notes= ;;
		"not ok "*) results=$((results + 1)); ktap_fail "$name" "$notes"; notes= ;;
		*) notes="$notes${notes:+
}${line#\# }" ;;
		esac
	done <"$tmp/tap.out"
	[ "$planned" = "$results" ] ||
		ktap_fail "$label: all of its tests" "$results of $planned, it ended with status $rc:
$(tail -n 20 "$tmp/tap.out")"
	case $rc in
	0 | 1 | 4) ;;
	*) ktap_fail "$label: exit status" "$rc" ;;
	esac
}

# rc_run LABEL FILTER DEVICES: rc-test with those --dev options.
rc_run() {
	# shellcheck disable=SC2086
	tap_run "$1" "${rc_seconds:-300}" "$rc_test" $3 ${rc_options-} --gtest_filter="$2"
}

rc_need() {
	[ -x "$rc_test" ] || ktap_skip_all "no $rc_test: cmake -S tests/verbs -B build/verbs && cmake --build build/verbs"
}

# The --dev options of T2 and T4, IPv4 and IPv6.
rc_pair() {
	echo "--dev da --gid-index $gid_a --peer-dev db --peer-gid-index $gid_b"
}
rc_pair6() {
	echo "--dev da --gid-index $(wait_gid da $addr6_a) --peer-dev db --peer-gid-index $(wait_gid db $addr6_b)"
}

# rc_everywhere FILTER [packets]: on one device with itself, and between two namespaces over IPv4 and
# IPv6; with "packets" on the one device without the local path, too.
rc_everywhere() {
	rc_need
	rdma_setup
	rc_run "itself" "$1" "--dev $dev --gid-index $gid"
	if [ "${2-}" = packets ] && [ "$link_type" = uroce ]; then
		set_local_path "$dev" off
		rc_run "itself, packets" "$1" "--dev $dev --gid-index $gid"
		set_local_path "$dev" auto
	fi
	[ "$link_type" != rxe ] || return 0	# 6.1's knows init_net only
	netns_pair
	rc_run "veth" "$1" "$(rc_pair)"
	rc_run "veth, IPv6" "$1" "$(rc_pair6)"
}

# ---- tests/wire ----

wire=$lib/../wire
python=/usr/bin/python3

# wire_need PROGRAM...: and scapy.
wire_need() {
	local program
	$python -c 'import scapy' 2>/dev/null || ktap_skip_all "no scapy: apt-get install python3-scapy"
	for program; do
		[ -n "$(command -v "$program")" ] || ktap_skip_all "no $program"
	done
}

# T2 without the device in b: packets are made by hand there.
#
#	namespace a [va 10.9.0.1 fd09::1] ---- [vb 10.9.0.2 fd09::2] namespace b
#	 device da on va                        tests/wire
wire_setup() {
	[ "$link_type" != rxe ] || ktap_skip_all "rdma_rxe of 6.1 knows init_net only"
	rc_need
	wire_need
	netns_pair
	gid6_a=$(wait_gid da $addr6_a)
	mac_a=$($side_a cat /sys/class/net/va/address)
	rdma_link_del db
	$side_b ip addr add 10.9.0.3/24 dev vb
	$side_b ip addr add fd09::3/64 dev vb nodad
}

# wire_run IPv4|IPv6 LABEL PROGRAM [OPTION...]
wire_run() {
	local family=$1 label="$1 $2" program=$3 addresses
	shift 3
	case $family in
	IPv4) addresses="--gid-index $gid_a --address $addr_a --own $addr_b --stranger 10.9.0.3" ;;
	IPv6) addresses="--gid-index $gid6_a --address $addr6_a --own $addr6_b --stranger fd09::3" ;;
	esac
	# shellcheck disable=SC2086
	tap_run "$label" 250 $side_b $python "$wire/$program" --rc-test "$rc_test" --dev da --mac "$mac_a" \
		--iface vb $addresses "$@"
}
