# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# TAP output and checks for tests in POSIX sh. A test sources its folder's env.sh, calls checks,
# and ends with `ktap_finish`. Each check is one TAP line; a failing one says what it looked for
# and what it found. Exit status: 0 passed, 1 failed, 4 nothing could be tested (kselftest's).

ktap_count=0
ktap_cleanups=

# Folder for the test's own files, gone at its end. The verdicts are kept in it, too, because
# a check made in a subshell or behind a pipe must count like any other.
tmp=$(mktemp -d)
ktap_passed=$tmp/.passed
ktap_failed=$tmp/.failed

ktap_print_header() {
	echo "TAP version 13"
}

ktap_note() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

ktap_pass() {
	ktap_count=$((ktap_count + 1))
	echo "$1" >>"$ktap_passed"
	echo "ok $ktap_count $1"
}

# ktap_fail NAME [EXPLANATION...]
ktap_fail() {
	ktap_count=$((ktap_count + 1))
	echo "$1" >>"$ktap_failed"
	echo "not ok $ktap_count $1"
	shift
	[ $# -eq 0 ] || ktap_note "$@"
	return 1
}

# ktap_skip NAME REASON
ktap_skip() {
	ktap_count=$((ktap_count + 1))
	echo "ok $ktap_count $1 # SKIP $2"
}

# Ends the test at once: nothing here can be tested, because REASON.
ktap_skip_all() {
	echo "1..0 # SKIP $*"
	exit 4
}

# Ends the test at once as failed: what follows needs what did not work.
ktap_bail() {
	echo "$*" >>"$ktap_failed"
	echo "Bail out! $*"
	exit 1
}

# check NAME COMMAND...: the command must succeed.
check() {
	local name=$1 rc=0
	shift
	"$@" >"$tmp/check.out" 2>&1 || rc=$?
	if [ $rc = 0 ]; then
		ktap_pass "$name"
	else
		ktap_fail "$name" "'$*' exited with $rc:
$(tail -n 30 "$tmp/check.out")"
	fi
}

# check_fails NAME PATTERN COMMAND...: it must fail, and what it prints must match PATTERN.
check_fails() {
	local name=$1 pattern=$2 rc=0
	shift 2
	"$@" >"$tmp/check.out" 2>&1 || rc=$?
	if [ $rc = 0 ]; then
		ktap_fail "$name" "'$*' should have failed"
	elif ! grep -qE -- "$pattern" "$tmp/check.out"; then
		ktap_fail "$name" "'$*' failed with $rc, but not with /$pattern/:
$(tail -n 30 "$tmp/check.out")"
	else
		ktap_pass "$name"
	fi
}

# check_eq NAME GOT WANTED
check_eq() {
	if [ "$2" = "$3" ]; then
		ktap_pass "$1"
	else
		ktap_fail "$1" "expected '$3', got '$2'"
	fi
}

# check_num NAME A OP B: OP as in test(1): -eq -gt -le ...
check_num() {
	# shellcheck disable=SC1072,SC1073,SC2107
	if test "$2" "$3" "$4"; then
		ktap_pass "$1"
	else
		ktap_fail "$1" "expected '$2 $3 $4' to hold"
	fi
}

# check_file NAME PATTERN FILE: some line of the file must match.
check_file() {
	if grep -qE -- "$2" "$3"; then
		ktap_pass "$1"
	else
		ktap_fail "$1" "no line of $3 matches /$2/:
$(tail -n 30 "$3")"
	fi
}

# check_no_file NAME PATTERN FILE: no line of the file may match.
check_no_file() {
	if grep -E -- "$2" "$3" >"$tmp/check.out"; then
		ktap_fail "$1" "lines of $3 match /$2/:
$(head -n 10 "$tmp/check.out")"
	else
		ktap_pass "$1"
	fi
}

# wait_for SECONDS COMMAND...: polls until the command succeeds; 1 when the time is over.
wait_for() {
	local now end
	read -r now _ </proc/uptime
	end=$((${now%.*} + $1))
	shift
	while ! "$@" >/dev/null 2>&1; do
		read -r now _ </proc/uptime
		[ "${now%.*}" -lt $end ] || return 1
		sleep 0.1
	done
}

# at_end COMMAND: run at the end of the test, whatever its end is; the last one comes first.
at_end() {
	ktap_cleanups="$*
$ktap_cleanups"
}

ktap_exit() {
	local rc=$?
	trap - EXIT
	trap '' INT TERM HUP
	eval "$ktap_cleanups"
	# a check in a cleanup may have failed after the verdict was made
	[ ! -s "$ktap_failed" ] || [ $rc != 0 ] || rc=1
	rm -rf "$tmp"
	exit $rc
}
trap ktap_exit EXIT
trap 'exit 1' INT TERM HUP

# The end of a test: cleanups (their checks count), the plan, the verdict.
ktap_finish() {
	local cleanups=$ktap_cleanups
	ktap_cleanups=
	eval "$cleanups"
	echo "1..$ktap_count"
	[ ! -s "$ktap_failed" ] || exit 1
	[ -s "$ktap_passed" ] || exit 4
	exit 0
}

ktap_print_header
