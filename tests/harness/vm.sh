#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# vm/run says what happened in the VM: a status passes through, output and files come back, and
# neither a panic nor a hang looks like a pass.
. "${0%/*}/../lib/ktap.sh"
run=$(cd "${0%/*}/../vm" && pwd)/run

# vm OPTION... -- COMMAND: sets rc and $tmp/log
vm() {
	rc=0
	"$run" "$@" >"$tmp/log" 2>&1 || rc=$?
}

vm --out "$tmp/out" -- sh -c 'echo hello from the VM; uname -r >$VM_OUT/release; exit 7'
check_eq "status of the command" $rc 7
check_file "output of the command" "^hello from the VM$" "$tmp/log"
check_file "a file comes back" "^6\.1\." "$tmp/out/release"

vm -- sh -c 'sysctl -q -w kernel.sysrq=1; echo c >/proc/sysrq-trigger; sleep 60; exit 0'
check_eq "a panic is 125" $rc 125
check_file "... and its console is shown" "Kernel panic" "$tmp/log"

vm --timeout 40 -- sh -c 'echo started; sleep 1000; exit 0'
check_eq "out of time is 124" $rc 124
check_file "output up to there" "^started$" "$tmp/log"

vm --stall 20 --timeout 200 -- sh -c 'sleep 1000'
check_eq "silence is 124" $rc 124
check_file "... and said so" "nothing heard" "$tmp/log"

vm --kernel 1.2.3 -- true
check_eq "no such kernel is 126" $rc 126

vm --pair --env x='a "b" $c' -- sh -c 'echo "$VM_ROLE $x"; [ $VM_ROLE = a ] || exit 5'
check_eq "status of one of a pair" $rc 5
check_file "environment in a" '^a\| a a "b" \$c$' "$tmp/log"
check_file "environment in b" '^b\| b a "b" \$c$' "$tmp/log"

vm --mem
check_eq "an option without its value is 126" $rc 126
check_file "... and named" "^vm/run: --mem needs a value" "$tmp/log"

# what is typed before the shell is there is lost
mkfifo "$tmp/typed"
exec 3<>"$tmp/typed"
"$run" --shell <"$tmp/typed" >"$tmp/log" 2>&1 &
shell=$!
at_end "kill $shell 2>/dev/null"
check "the shell prompts" wait_for 250 grep -q 'root@.*#' "$tmp/log"
echo 'echo the answer is $((6 * 7)); tty; exit' >&3
check "the shell ends" wait_for 30 sh -c "! kill -0 $shell"
wait $shell
check_eq "its status" $? 0
check_file "it did what was typed" "the answer is 42" "$tmp/log"
check_file "on a terminal" "^/dev/ttyS0" "$tmp/log"

ktap_finish
