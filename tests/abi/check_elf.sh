#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# check_elf.sh PROVIDER LIBIBVERBS
# The provider needs libibverbs and libc and nothing else, exports nothing, and every symbol it
# wants of libibverbs is there in the version it wants.
set -eu
provider=$1
libibverbs=$2
status=0

needed=$(readelf -dW "$provider" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
if [ "$needed" != "libc.so.6 libibverbs.so.1 " ]; then
	echo "needs: $needed"
	status=1
fi

exported=$(nm -D --defined-only "$provider")
if [ -n "$exported" ]; then
	echo "exports: $exported"
	status=1
fi

wanted=$(nm -D --undefined-only "$provider" | awk '$2 ~ /@IBVERBS_/ { print $2 }')
offered=$(nm -D --defined-only "$libibverbs" | awk '{ sub("@@", "@", $3); print $3 }')
for symbol in $wanted; do
	if ! printf '%s\n' "$offered" | grep -qxF "$symbol"; then
		echo "libibverbs has no $symbol"
		status=1
	fi
done
[ -n "$wanted" ] || { echo "wants nothing of libibverbs"; status=1; }

exit $status
