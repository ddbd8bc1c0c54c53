// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libFuzzer target over uroce_parse(). The first input byte says how much of
 * the packet is linear beyond what the contract demands.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "wire.h"

static void check_accepted(const struct uroce_pkt *pkt, uint32_t len)
{
	uint32_t flags = uroce_pkt_flags(pkt);

	assert(flags);
	assert(uroce_pkt_hdr_len(pkt) >= sizeof(struct uroce_bth));
	assert(uroce_pkt_hdr_len(pkt) <= UROCE_MAX_HDR);
	assert(pkt->pad < 4);
	assert((pkt->payload_len + pkt->pad) % 4 == 0);
	assert(uroce_pkt_hdr_len(pkt) + pkt->payload_len + pkt->pad + UROCE_ICRC_LEN == len);
	assert(pkt->payload_len == 0 || flags & UROCE_F_PAYLOAD);
	assert(!(flags & UROCE_F_DETH) || pkt->src_qp <= 0xffffff);
	assert(!(flags & UROCE_F_AETH) || pkt->msn <= 0xffffff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uroce_pkt pkt;
	uint32_t len, linear;
	uint8_t *exact;
	int ret;

	if (!size)
		return 0;
	len = size - 1;
	linear = len < UROCE_MAX_HDR ? len : UROCE_MAX_HDR;
	linear += data[0] % (len - linear + 1);

	exact = malloc(linear ? linear : 1);
	memcpy(exact, data + 1, linear);
	ret = uroce_parse(exact, linear, len, &pkt);
	assert(ret >= -1 && ret < UROCE_NUM_COUNTERS);
	if (ret < 0)
		check_accepted(&pkt, len);
	free(exact);
	return 0;
}
