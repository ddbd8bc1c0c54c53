#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The folder ktest/ runs under the kernel's own kselftest runner. With rdma_rxe, so that the module
# does not matter here; that link type has to skip netns.sh, which shows the runner skips, too.
. "${0%/*}/../lib/ktap.sh"
tests=$(cd "${0%/*}/.." && pwd)
linux=$("$tests/lib/linux-scripts") || ktap_skip_all "apt-get install linux-source-6.1"

# In the VM: a folder as kselftest's `make install` makes it.
"$tests/vm/run" -- sh -c "
	set -e
	export BASE_DIR=/tmp/selftests link_type=rxe
	cp -r $linux/tools/testing/selftests \$BASE_DIR
	cp -r $tests/ktest \$BASE_DIR/uroce
	cp -r $tests/lib \$BASE_DIR/uroce/lib
	cd \$BASE_DIR/uroce
	. \$BASE_DIR/kselftest/runner.sh
	run_many ./devinfo.sh ./netns.sh" >"$tmp/log" 2>&1
check_eq "runner.sh in the VM" $? 0
check_file "a test's own TAP" "^# ok 1 " "$tmp/log"
check_file "the runner's verdict" "^ok 1 selftests: uroce: devinfo.sh$" "$tmp/log"
check_file "a skipped test" "^ok 2 selftests: uroce: netns.sh # SKIP" "$tmp/log"

ktap_finish
