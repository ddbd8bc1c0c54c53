#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module builds for 6.12, whose headers Debian 12's security suite has. They are unpacked into
# the cache, not installed: installing them would bring the kernel along.
. "${0%/*}/lib.sh"

amd64=$(apt-cache search --names-only '^linux-headers-6\.12\..*deb12-amd64$' | sort -V | awk 'END { print $1 }')
[ -n "$amd64" ] || ktap_skip_all "no suite in the apt sources has linux-headers-6.12*-amd64"
version=${amd64#linux-headers-}
version=${version%-amd64}
folder=${UROCE_CACHE:-/var/cache/uroce}/headers-$version

if [ ! -d "$folder" ]; then
	mkdir -p "${folder%/*}"
	new=$(mktemp -d "$folder.XXXXXX")
	at_end "rm -rf $new"
	cd "$new" || exit 1
	check "download of the headers" apt-get -qq -o APT::Sandbox::User=root download \
		"$amd64" "linux-headers-$version-common" "linux-kbuild-$version"
	for deb in *.deb; do dpkg-deb -x "$deb" . || ktap_bail "dpkg-deb -x $deb failed"; done
	rm -f -- *.deb
	# the packages expect to lie in /usr/src and /usr/lib
	sed -i "s,/usr/src/,$folder/usr/src/," "usr/src/$amd64/Makefile"
	chmod 755 .
	cd "$top" || exit 1
	mv "$new" "$folder" || ktap_bail "cannot move the headers to $folder"
fi
check_module "$folder/usr/src/$amd64"

ktap_finish
