#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# sparse over the module and that of the tests (make C=2): endianness, user pointers, lock balance.
. "${0%/*}/lib.sh"

kdir=$(tests/vm/kernel stock | sed -n 4p)
[ -n "$kdir" ] || ktap_skip_all "no kernel headers"
build=$top/build/sparse
rm -rf "$build"
check "make C=2" sh -c "make -j $(nproc) BUILD=$build KDIR=$kdir C=2 module kverbs >$tmp/log 2>&1"
# what sparse says of the kernel's own headers is not ours
grep -E "^[^ ]*(kmod/|uapi/|kverbs-)[^ ]*: (warning|error):" "$tmp/log" | sed "s,^$build/kmod-[^/]*/,,; s,^$build/kverbs-[^/]*/,tests/kverbs/," >"$found"
check_none "sparse"
check_file "sparse ran" "CHECK .*kmod/main.c" "$tmp/log"
check_file "sparse ran over tests/kverbs" "CHECK .*kverbs-.*/main.c" "$tmp/log"
rm -rf "$build"

ktap_finish
