// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Invariant CRC; see icrc.h. */
#ifdef __KERNEL__
#include <linux/crc32.h>
#include <linux/string.h>
#else
#include "crc32_user.h"
#include <string.h>
#endif
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "icrc.h"
#include "wire.h"

/* The eight bytes of ones in front, already digested */
#define CRC_AFTER_LRH	0xdebb20e3u

struct masked_headers {
	__u8 ip[sizeof(struct ipv6hdr)];
	struct udphdr udp;
	struct uroce_bth bth;
} __packed;

static int mask_ipv4(void *to, const void *ip)
{
	struct iphdr hdr;

	memcpy(&hdr, ip, sizeof(hdr));
	hdr.tos = 0xff;
	hdr.ttl = 0xff;
	memset(&hdr.check, 0xff, sizeof(hdr.check));
	memcpy(to, &hdr, sizeof(hdr));
	return sizeof(hdr);
}

static int mask_ipv6(void *to, const void *ip)
{
	struct ipv6hdr hdr;

	memcpy(&hdr, ip, sizeof(hdr));
	hdr.priority = 0xf;
	memset(hdr.flow_lbl, 0xff, sizeof(hdr.flow_lbl));
	hdr.hop_limit = 0xff;
	memcpy(to, &hdr, sizeof(hdr));
	return sizeof(hdr);
}

__u32 uroce_icrc_start(const void *ip, int version, const void *udp)
{
	__u8 buf[sizeof(struct masked_headers)];
	struct uroce_bth *bth;
	int len;

	len = version == 4 ? mask_ipv4(buf, ip) : mask_ipv6(buf, ip);

	memcpy(buf + len, udp, sizeof(struct udphdr) + sizeof(*bth));
	memset(buf + len + offsetof(struct udphdr, check), 0xff, 2);
	len += sizeof(struct udphdr);
	/* FECN, BECN and the reserved bits beside them */
	buf[len + offsetof(struct uroce_bth, qpn)] = 0xff;
	len += sizeof(*bth);

	return crc32_le(CRC_AFTER_LRH, buf, len);
}
