#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rdma-core's own tests of the verbs API, one device with itself, against pyverbs.expect. A line
# of TAP for each test.
. "${0%/*}/../ktest/env.sh"

here=$(cd "${0%/*}" && pwd)
tests=/usr/share/doc/rdma-core/tests
[ -d "$tests" ] || ktap_skip_all "$tests is missing: apt-get install python3-pyverbs"

rdma_setup
# some tests want them
echo 64 >/proc/sys/vm/nr_hugepages
cp -r "$tests" "$tmp/tests"
gunzip "$tmp"/tests/*.gz
cd "$tmp/tests" || exit 1
# Its exit status says only that something failed; the comparison says what.
timeout -k 5 $((900 * time_scale)) /usr/bin/python3 run_tests.py --dev "$dev" --gid "$gid" -v \
	>"$tmp/output" 2>&1
/usr/bin/python3 "$here/pyverbs.py" "$here/pyverbs.expect" <"$tmp/output" >"$tmp/tap"
rc=$?
cat "$tmp/tap"
[ $rc = 0 ] || tail -n 60 "$tmp/output" | sed 's/^/# /'
ktap_count=$(grep -cE '^(not )?ok ' "$tmp/tap")
grep '^not ok' "$tmp/tap" >>"$ktap_failed"
grep '^ok' "$tmp/tap" >>"$ktap_passed"
ktap_finish
