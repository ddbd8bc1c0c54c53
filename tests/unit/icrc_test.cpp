// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The invariant CRC: which bits it covers. Its values are compared with scapy's in
// icrc_scapy_test.py.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

extern "C" {
#include "icrc.h"
}
#include "crc32_user.h"

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint32_t kUdp = 8, kBth = 12;

uint32_t icrc(const Bytes &packet, int version)
{
	uint32_t ip = version == 4 ? 20 : 40;
	uint32_t head = ip + kUdp + kBth;
	uint32_t crc = uroce_icrc_start(packet.data(), version, packet.data() + ip);

	crc = crc32_le(crc, packet.data() + head, packet.size() - head);
	return uroce_icrc_finish(crc);
}

Bytes packet(int version, uint32_t payload)
{
	Bytes p((version == 4 ? 20 : 40) + kUdp + kBth + payload);

	for (uint32_t i = 0; i < p.size(); i++)
		p[i] = i * 37 + 11;
	p[0] = version == 4 ? 0x45 : 0x60 | (p[0] & 0x0f);
	return p;
}

// Bits that routers may change, as (byte, mask) from the IP header on.
uint8_t variant_mask(int version, uint32_t at)
{
	uint32_t udp = version == 4 ? 20 : 40;

	if (version == 4 && (at == 1 || at == 8 || at == 10 || at == 11))
		return 0xff; // TOS, TTL, header checksum
	if (version == 6 && at == 0)
		return 0x0f; // traffic class, upper half
	if (version == 6 && (at == 1 || at == 2 || at == 3 || at == 7))
		return 0xff; // traffic class, flow label, hop limit
	if (at == udp + 6 || at == udp + 7)
		return 0xff; // UDP checksum
	if (at == udp + kUdp + 4)
		return 0xff; // FECN, BECN and six reserved bits
	return 0;
}

TEST(Icrc, Crc32CheckValue)
{
	EXPECT_EQ(~crc32_le(~0u, "123456789", 9), 0xcbf43926u);
}

TEST(Icrc, CoversEveryBitExceptTheVariantOnes)
{
	for (int version : {4, 6}) {
		Bytes p = packet(version, 21);
		uint32_t base = icrc(p, version);

		for (uint32_t at = 0; at < p.size(); at++)
			for (int bit = 0; bit < 8; bit++) {
				bool variant = variant_mask(version, at) & 1 << bit;

				p[at] ^= 1 << bit;
				EXPECT_EQ(icrc(p, version) == base, variant)
					<< "IPv" << version << " byte " << at << " bit " << bit;
				p[at] ^= 1 << bit;
			}
	}
}

TEST(Icrc, BytesOnTheWireAreLittleEndian)
{
	__le32 wire = uroce_icrc_finish(~0x11223344u);
	const uint8_t want[4] = {0x44, 0x33, 0x22, 0x11};

	EXPECT_EQ(memcmp(&wire, want, 4), 0);
}

TEST(Icrc, DoesNotChangeThePacket)
{
	for (int version : {4, 6}) {
		Bytes p = packet(version, 8), before = p;

		icrc(p, version);
		EXPECT_EQ(p, before);
	}
}

} // namespace
