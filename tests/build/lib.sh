# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# For the programs of this folder. They build below build/, in folders of their own.
. "${0%/*}/../lib/ktap.sh"
top=$(cd "${0%/*}/../.." && pwd)
cd "$top" || exit 1

# check_module KDIR: the module, and that of the tests, build against a kernel tree without a warning of ours.
check_module() {
	local build=$top/build/warnings-$$
	at_end "rm -rf $build"
	check "modules build" sh -c "make -j $(nproc) BUILD=$build KDIR=$1 W=1 CONFIG_DEBUG_INFO_BTF_MODULES= module kverbs >$tmp/log 2>&1 ||
		{ tail -n 40 $tmp/log; false; }"
	# of the kernel's headers, W=1 says a lot that is not ours
	check_no_file "no warnings" "(kmod/|uapi/|kverbs-).*(warning|error):|modpost: \"|WARNING: modpost" "$tmp/log"
	check "uroce.ko is there" sh -c "ls $build/kmod-*/uroce.ko"
	check "kverbs.ko is there" sh -c "ls $build/kverbs-*/kverbs.ko"
}
