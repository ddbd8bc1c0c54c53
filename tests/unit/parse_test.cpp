// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The packet parser: every reason of rejecting, every opcode at every small length, fields.
// Packets lie in heap blocks of exactly the readable size, so that ASan sees a step too far.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

extern "C" {
#include "parse.h"
#include "wire.h"
}
#include "ibta.h"

namespace {

constexpr uint32_t kIcrc = 4;
constexpr uint32_t kBth = 12;

using Bytes = std::vector<uint8_t>;

int parse(const Bytes &packet, uint32_t linear, uroce_pkt *pkt)
{
	std::unique_ptr<uint8_t[]> exact(new uint8_t[linear]);

	std::copy_n(packet.begin(), linear, exact.get());
	return uroce_parse(exact.get(), linear, packet.size(), pkt);
}

int parse(const Bytes &packet, uroce_pkt *pkt)
{
	return parse(packet, packet.size(), pkt);
}

// A packet whose byte i is i, to the default P_Key; opcode and flags byte as given.
Bytes make(uint8_t opcode, uint8_t flags, uint32_t len)
{
	Bytes p(len);

	for (uint32_t i = 0; i < len; i++)
		p[i] = i == 2 || i == 3 ? 0xff : i;
	if (len > 0)
		p[0] = opcode;
	if (len > 1)
		p[1] = flags;
	return p;
}

// What the parser has to say, from the specification's table. -1: well formed
int expected(uint8_t opcode, uint8_t flags, uint32_t len)
{
	const ibta::Row *row = ibta::find(opcode);
	uint32_t pad = flags >> 4 & 3;
	uint32_t behind;

	if (len < kBth + kIcrc)
		return UROCE_CNT_DROP_SHORT;
	if (flags & 0x0f)
		return UROCE_CNT_DROP_VERSION;
	if (!row || !uroce_opcodes[opcode].flags)
		return UROCE_CNT_DROP_OPCODE;
	if (len < ibta::header_length(*row) + kIcrc)
		return UROCE_CNT_DROP_SHORT;
	behind = len - ibta::header_length(*row) - kIcrc;
	if (behind % 4)
		return UROCE_CNT_DROP_LENGTH;
	if (behind && !ibta::has(*row, 'p'))
		return UROCE_CNT_DROP_LENGTH;
	// pad bytes belong to a last word that has at least one byte of payload
	if (pad && behind < 4)
		return UROCE_CNT_DROP_LENGTH;
	return -1;
}

TEST(Parse, EveryOpcodeLengthPadAndVersion)
{
	for (int opcode = 0; opcode < 256; opcode++)
		for (uint32_t len = 0; len <= 100; len++)
			for (uint32_t flags = 0; flags < 0x40; flags++) {
				uroce_pkt pkt;
				int want = expected(opcode, flags, len);
				int got = parse(make(opcode, flags, len), &pkt);

				ASSERT_EQ(got, want) << "opcode " << opcode << " len " << len
						     << " flags " << flags;
				if (got >= 0)
					continue;
				const ibta::Row &row = *ibta::find(opcode);
				ASSERT_EQ(pkt.opcode, opcode);
				ASSERT_EQ(uroce_pkt_flags(&pkt), uroce_opcodes[opcode].flags);
				ASSERT_EQ(uroce_pkt_hdr_len(&pkt), ibta::header_length(row));
				ASSERT_EQ(pkt.pad, flags >> 4);
				ASSERT_EQ(pkt.payload_len + pkt.pad + uroce_pkt_hdr_len(&pkt) +
						  kIcrc,
					  len);
			}
}

// Only the headers need to be readable: payload may lie in other fragments.
TEST(Parse, ReadsOnlyTheLinearPart)
{
	for (const ibta::Row &row : ibta::kRows) {
		uroce_pkt pkt;

		if (!uroce_opcodes[row.opcode].flags)
			continue;
		for (uint32_t len : {64u, 1024u + 64, 4096u + 64}) {
			Bytes packet = make(row.opcode, 0, len);
			int want = expected(row.opcode, 0, len);

			EXPECT_EQ(parse(packet, UROCE_MAX_HDR, &pkt), want) << row.name << len;
		}
		// A caller that breaks the contract gets a drop, not a read beyond the end.
		Bytes packet = make(row.opcode, 0, 256);
		for (uint32_t linear = 0; linear < ibta::header_length(row); linear++)
			EXPECT_EQ(parse(packet, linear, &pkt), UROCE_CNT_DROP_SHORT) << row.name;
	}
}

uint64_t be(const Bytes &p, uint32_t at, uint32_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | p[at++];
	return v;
}

TEST(Parse, Fields)
{
	for (const ibta::Row &row : ibta::kRows) {
		uint32_t len = ibta::header_length(row) + (ibta::has(row, 'p') ? 8 : 0) + kIcrc;
		uint32_t at = kBth;
		uroce_pkt pkt;
		SCOPED_TRACE(row.name);

		if (!uroce_opcodes[row.opcode].flags)
			continue;
		Bytes p = make(row.opcode, 0, len);
		for (uint32_t i = 4; i < len; i++)
			p[i] = 0x80 + i; // top bits set: sign extension would show
		memset(&pkt, 0xa5, sizeof(pkt));
		ASSERT_EQ(parse(p, &pkt), -1);
		EXPECT_EQ(pkt.qpn, be(p, 5, 3));
		EXPECT_EQ(pkt.psn, be(p, 9, 3));
		for (const char *h = row.headers; *h; at += ibta::header_size(*h++)) {
			switch (*h) {
			case 'D':
				EXPECT_EQ(pkt.qkey, be(p, at, 4));
				EXPECT_EQ(pkt.src_qp, be(p, at + 5, 3));
				break;
			case 'X':
				EXPECT_EQ(pkt.srqn, be(p, at + 1, 3));
				break;
			case 'R':
				EXPECT_EQ(pkt.va, be(p, at, 8));
				EXPECT_EQ(pkt.rkey, be(p, at + 8, 4));
				EXPECT_EQ(pkt.dma_len, be(p, at + 12, 4));
				break;
			case 'T':
				EXPECT_EQ(pkt.va, be(p, at, 8));
				EXPECT_EQ(pkt.rkey, be(p, at + 8, 4));
				EXPECT_EQ(pkt.swap_add, be(p, at + 12, 8));
				EXPECT_EQ(pkt.compare, be(p, at + 20, 8));
				break;
			case 'A':
				EXPECT_EQ(pkt.syndrome, p[at]);
				EXPECT_EQ(pkt.msn, be(p, at + 1, 3));
				break;
			case 'O':
				EXPECT_EQ(pkt.orig, be(p, at, 8));
				break;
			case 'I':
				EXPECT_EQ(memcmp(&pkt.imm, &p[at], 4), 0);
				break;
			case 'V':
				EXPECT_EQ(pkt.inv_rkey, be(p, at, 4));
				break;
			}
		}
	}
}

// One P_Key, the default one; full (0xffff) and limited (0x7fff) members.
TEST(Parse, Pkey)
{
	for (uint32_t pkey = 0; pkey <= 0xffff; pkey++) {
		uroce_pkt pkt;
		Bytes p = make(0x04, 0, kBth + kIcrc);

		p[2] = pkey >> 8;
		p[3] = pkey;
		ASSERT_EQ(parse(p, &pkt), (pkey & 0x7fff) == 0x7fff ? -1 : UROCE_CNT_DROP_PKEY)
			<< pkey;
	}
}

// Fits skb->cb.
TEST(Parse, Size)
{
	EXPECT_LE(sizeof(uroce_pkt), 48u);
}

TEST(Parse, SingleBits)
{
	uroce_pkt pkt;
	Bytes p(kBth + kIcrc);

	p[0] = 0x04;
	p[2] = p[3] = 0xff;
	ASSERT_EQ(parse(p, &pkt), -1);
	EXPECT_FALSE(pkt.solicited);
	EXPECT_FALSE(pkt.ack_req);

	p[1] = UROCE_BTH_SE;
	ASSERT_EQ(parse(p, &pkt), -1);
	EXPECT_EQ(pkt.solicited, 1);

	p[1] = UROCE_BTH_MIGREQ; // either value is accepted
	ASSERT_EQ(parse(p, &pkt), -1);
	EXPECT_EQ(pkt.solicited, 0);

	p[8] = 0x80;
	ASSERT_EQ(parse(p, &pkt), -1);
	EXPECT_EQ(pkt.ack_req, 1);
	EXPECT_EQ(pkt.psn, 0u);
}

// IBTA 9.2: reserved bits are ignored on receive.
TEST(Parse, ReservedBitsAreIgnored)
{
	uroce_pkt pkt;
	Bytes p(kBth + kIcrc);

	p[0] = 0x04;
	p[2] = p[3] = 0xff;
	p[4] = 0xff; // FECN, BECN, six reserved bits
	p[8] = 0x7f; // seven reserved bits beside AckReq
	ASSERT_EQ(parse(p, &pkt), -1);
	EXPECT_EQ(pkt.qpn, 0u);
	EXPECT_EQ(pkt.psn, 0u);
	EXPECT_EQ(pkt.ack_req, 0);
}

} // namespace
