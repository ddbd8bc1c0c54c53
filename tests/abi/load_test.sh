#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# load_test.sh PROVIDER ABI_VERSION COMMAND...
# Runs a command that sees one RDMA device, uroce_fake0 of the given ABI version, in /sys and
# /dev, and PROVIDER (liburoce-rdmavN.so) as the provider for it. Exit 77 where the machine
# allows no mount namespace.
set -eu

if [ -z "${LOAD_TEST_INSIDE:-}" ]; then
	if ! unshare -Urm true; then
		echo "SKIP: no user and mount namespace for fake devices" >&2
		exit 77
	fi
	LOAD_TEST_INSIDE=1 exec unshare -Urm "$0" "$@"
fi

provider=$1
abi_version=$2
shift 2

# Only stat()ed, never opened: the device list needs no driver.
mount -t tmpfs none /dev
mkdir /dev/infiniband
: > /dev/infiniband/uverbs0

sys=$(mktemp -d)
trap 'rm -rf "$sys"' EXIT
mkdir -p "$sys/class/infiniband_verbs/uverbs0" "$sys/class/infiniband/uroce_fake0"
echo 6 > "$sys/class/infiniband_verbs/abi_version"
echo uroce_fake0 > "$sys/class/infiniband_verbs/uverbs0/ibdev"
echo "$abi_version" > "$sys/class/infiniband_verbs/uverbs0/abi_version"
echo 231:192 > "$sys/class/infiniband_verbs/uverbs0/dev"
echo '1: CA' > "$sys/class/infiniband/uroce_fake0/node_type"
echo 0200:0000:0000:0001 > "$sys/class/infiniband/uroce_fake0/node_guid"

SYSFS_PATH=$sys RDMAV_DRIVERS=${provider%-rdmav*.so} "$@"
