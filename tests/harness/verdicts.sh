#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# tests/check fails a program for everything it is meant to fail it for: the programs of fake/ each
# do one such thing.
. "${0%/*}/../lib/ktap.sh"
here=$(cd "${0%/*}" && pwd)
rc=0
UROCE_TEST_GROUPS=$here/groups "$here/../check" >"$tmp/log" 2>&1 || rc=$?

# verdict PROGRAM PATTERN
verdict() {
	check_file "$1" "^  ($2)" "$tmp/log"
}

check_eq "exit status" $rc 1
verdict pass.sh "PASS pass.sh \([0-9.]+ s\)$"
verdict skip.sh "SKIP skip.sh \([0-9.]+ s\): nothing to do$"
verdict fail.sh "FAIL fail.sh .*exit status 1, 1 checks failed$"
verdict subshell.sh "FAIL subshell.sh .*exit status 1, 1 checks failed$"
verdict hang.sh "FAIL hang.sh .*did not end within"
verdict kernel-log.sh "FAIL kernel-log.sh .*dmesg_faults"
verdict device.sh "FAIL device.sh .*leak_links"
verdict namespace.sh "FAIL namespace.sh .*leak_netns"
verdict panic.sh "FAIL panic.sh .*the VM died or hung"
verdict "after a panic" "PASS z-last.sh"
check_eq "what failed is listed" "$(grep -c '^failed: fake ' "$tmp/log")" 7
check_eq "the last line" "$(tail -n 1 "$tmp/log")" "2 passed, 7 failed, 1 skipped"

ktap_finish
