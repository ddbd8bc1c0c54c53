#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The tests that need no kernel, by ctest: leaf files of the module, the provider against a fake
# kernel, the uapi header and libibverbs' private ABI.
. "${0%/*}/lib.sh"

# ctest_run BUILD-FOLDER CMAKE-OPTION...: one check per test of ctest.
ctest_run() {
	local build=$1
	shift
	check "cmake" cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@"
	check "build" cmake --build "$build" -j "$(nproc)"
	ctest --test-dir "$build" --output-on-failure >"$tmp/ctest" 2>&1
	sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) \.+ *\**([A-Z][A-Za-z]*).*/\1 \2/p' "$tmp/ctest" >"$tmp/verdicts"
	[ -s "$tmp/verdicts" ] || ktap_fail "ctest ran no test" "$(tail -n 20 "$tmp/ctest")"
	while read -r test verdict; do
		case $verdict in
		Passed) ktap_pass "$test" ;;
		Skipped | Not) ktap_skip "$test" "ctest says $verdict" ;;
		*) ktap_fail "$test" "$(sed -n "/Test *#[0-9]*: $test /,/Start /p" "$tmp/ctest" | head -n 60)" ;;
		esac
	done <"$tmp/verdicts"
}

case ${0##*/} in
unit.sh) ctest_run "$top/build/ctest" ;;
unit-sanitize.sh) ctest_run "$top/build/ctest-sanitize" -DUROCE_SANITIZE=ON ;;
esac

ktap_finish
