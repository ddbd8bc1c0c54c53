#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# On-demand paging: memory that is not there, goes, or changes while the device uses it; and what
# the other tests of data do, with memory that is not pinned.
. "${0%/*}/env.sh"
. "$lib/rc.sh"

# somewhere to swap to, so that pages can be taken away for good; without it forks alone do so
if modprobe -q brd rd_nr=1 rd_size=65536 && mkswap /dev/ram0 >/dev/null && swapon /dev/ram0; then
	at_end "swapoff /dev/ram0 && rmmod brd"
fi

rc_everywhere '*Odp*' packets

# UC has no flow control: a message that is longer than what may wait meanwhile is lost
rc_options=--odp
rc_run "itself, on demand" '*Data*:Atomic*' "--dev $dev --gid-index $gid"
[ "$link_type" = rxe ] || rc_run "veth, on demand" '*Data*:Atomic*:-*LargeMessages/Uc*' "$(rc_pair)"

ktap_finish
