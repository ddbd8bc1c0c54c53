#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make install puts three files into DESTDIR and nothing elsewhere; building leaves the source tree
# as it was; make clean leaves nothing. All in a copy of the tree, which need not be a git checkout.
. "${0%/*}/lib.sh"

kernel=$(tests/vm/kernel stock)
[ -n "$kernel" ] || ktap_skip_all "linux-headers-amd64 is not installed"
release=$(echo "$kernel" | sed -n 1p)
kdir=$(echo "$kernel" | sed -n 4p)
copy=$tmp/copy

list() {
	find "$copy" -path "$copy/build" -prune -o -print | sort
}

mkdir "$copy"
tar --exclude=./build --exclude=./.git -cf - . | tar -C "$copy" -xf -
list >"$tmp/before"
check "make install" make -j "$(nproc)" -C "$copy" KDIR="$kdir" DESTDIR="$tmp/root" install
list >"$tmp/after"
check_eq "source tree is as it was" "$(comm -13 "$tmp/before" "$tmp/after")" ""
check_eq "installed files" "$(cd "$tmp/root" && find . -type f | sort)" \
	"./etc/libibverbs.d/uroce.driver
./lib/modules/$release/updates/uroce.ko
./usr/lib/x86_64-linux-gnu/libibverbs/liburoce-rdmav34.so"
check_eq "driver file" "$(cat "$tmp/root/etc/libibverbs.d/uroce.driver")" "driver uroce"
check "module is for $release" sh -c "modinfo -F vermagic $tmp/root/lib/modules/$release/updates/uroce.ko | grep -q '^$release '"
check_eq "module's licence" "$(modinfo -F license "$tmp/root/lib/modules/$release/updates/uroce.ko")" "Dual BSD/GPL"
check "alias for rdma link add" sh -c "modinfo -F alias $tmp/root/lib/modules/$release/updates/uroce.ko | grep -qx rdma-link-uroce"
check_fails "a relative DESTDIR" "not an absolute path" make -C "$copy" KDIR="$kdir" DESTDIR=root install
# (what the README installs; build-essential has the compilers and make)
said=$(sed -n '/^    apt-get install build-essential/,/[^\\]$/p' README.md | tr -d '\\\n')
. tests/lib/packages.sh
for package in $packages_build; do
	case $package in make | gcc-12 | g++) continue ;; esac
	case " $said " in *" $package "*) ktap_pass "README names $package" ;; *) ktap_fail "README names $package" ;; esac
done
check "make clean" make -C "$copy" clean
check "nothing is left" test ! -e "$copy/build"

ktap_finish
