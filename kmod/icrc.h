/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Invariant CRC of RoCE v2 (IBTA annex 17.3): CRC-32 over the packet from the
 * IP header to the last pad byte, with the fields that routers may change
 * taken as ones, behind eight bytes of ones in place of an LRH.
 * Leaf: compiles in user space too, where crc32_le() comes from the build.
 */
#ifndef UROCE_ICRC_H
#define UROCE_ICRC_H

#include <linux/types.h>
#include <asm/byteorder.h>

/*
 * Start a CRC over the headers up to the end of the BTH.
 * @ip: IPv4 header without options or IPv6 header without extensions, with
 *	length, ID and addresses as sent; @version says which.
 * @udp: UDP header, the BTH directly behind it; together 20 bytes.
 * Return: the running value; go on with crc32_le() over what follows.
 */
__u32 uroce_icrc_start(const void *ip, int version, const void *udp);

/* The four bytes to send, from the running value over the whole packet. */
static inline __le32 uroce_icrc_finish(__u32 crc)
{
	return __cpu_to_le32(~crc);
}

#endif
