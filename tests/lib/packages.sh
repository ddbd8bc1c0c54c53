# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# The Debian 12 packages things need. Test groups name their own (tests/groups).

# building module and provider, and booting the VM
packages_build="make gcc-12 g++ cmake pkg-config libibverbs-dev linux-headers-amd64"
packages_vm="qemu-system-x86 linux-headers-amd64 busybox-static cpio kmod bash"
# the programs the guest runs
packages_guest="rdma-core ibverbs-utils rdmacm-utils perftest iproute2 iputils-ping procps python3"

# building the debug kernel
packages_debug_kernel="linux-source-6.1 xz-utils make gcc-12 flex bison bc libelf-dev libssl-dev cpio kmod"

# packages_install PACKAGE...: installs what is missing; silent and quick when nothing is.
packages_install() {
	local missing= p
	for p; do
		case " $missing " in *" $p "*) continue ;; esac
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			missing="$missing $p"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "These Debian packages are missing and only root can install them:$missing" >&2
		return 1
	fi
	echo "Installing Debian packages:$missing"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086
	{
		apt-get -qq update &&
			apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $missing
	} </dev/null >/tmp/uroce-apt.$$ 2>&1 || {
		tail -n 5 /tmp/uroce-apt.$$ >&2
		echo "apt-get could not install:$missing (all of it in /tmp/uroce-apt.$$)" >&2
		return 1
	}
	rm -f /tmp/uroce-apt.$$
}
