#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The programs that the groups build for the VM compile and link, before any VM is booted for them.
. "${0%/*}/lib.sh"

for part in verbs stress; do
	check "cmake of tests/$part" cmake -S tests/$part -B build/$part -DCMAKE_BUILD_TYPE=RelWithDebInfo
	check "tests/$part builds" cmake --build build/$part -j "$(nproc)"
done

ktap_finish
