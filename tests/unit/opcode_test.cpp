// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The opcode table is total and agrees with the IBTA's; parts of a message.
#include <gtest/gtest.h>

extern "C" {
#include "opcode.h"
#include "wire.h"
}
#include "ibta.h"

namespace {

uint32_t kind_flag(const ibta::Row &row)
{
	if (ibta::is(row, "READ response"))
		return UROCE_F_READ_RESP;
	if (ibta::is(row, "READ request"))
		return UROCE_F_READ;
	if (ibta::is(row, "acknowledge"))
		return UROCE_F_ACK;
	if (ibta::is(row, "ATOMIC WRITE"))
		return UROCE_F_ATOMIC_WRITE;
	if (ibta::is(row, "SEND"))
		return UROCE_F_SEND;
	if (ibta::is(row, "WRITE"))
		return UROCE_F_WRITE;
	return UROCE_F_ATOMIC;
}

uint32_t part_flags(const ibta::Row &row)
{
	if (ibta::is(row, "first"))
		return UROCE_F_FIRST;
	if (ibta::is(row, "middle"))
		return 0;
	if (ibta::is(row, "last"))
		return UROCE_F_LAST;
	return UROCE_F_FIRST | UROCE_F_LAST; // only, and what has no parts
}

uint32_t header_flags(const ibta::Row &row)
{
	const struct {
		char letter;
		uint32_t flag;
	} map[] = {
		{'D', UROCE_F_DETH}, {'R', UROCE_F_RETH},	    {'T', UROCE_F_ATOMIC_ETH},
		{'A', UROCE_F_AETH}, {'O', UROCE_F_ATOMIC_ACK_ETH}, {'I', UROCE_F_IMM},
		{'V', UROCE_F_IETH}, {'p', UROCE_F_PAYLOAD},	    {'X', UROCE_F_XRCETH},
	};
	uint32_t flags = 0;

	for (auto &m : map)
		if (ibta::has(row, m.letter))
			flags |= m.flag;
	return flags;
}

TEST(Opcode, HeaderStructsHaveTheirWireSizes)
{
	EXPECT_EQ(sizeof(uroce_bth), 12u);
	EXPECT_EQ(sizeof(uroce_deth), ibta::header_size('D'));
	EXPECT_EQ(sizeof(uroce_xrceth), ibta::header_size('X'));
	EXPECT_EQ(sizeof(uroce_reth), ibta::header_size('R'));
	EXPECT_EQ(sizeof(uroce_atomic_eth), ibta::header_size('T'));
	EXPECT_EQ(sizeof(uroce_aeth), ibta::header_size('A'));
	EXPECT_EQ(sizeof(uroce_atomic_ack_eth), ibta::header_size('O'));
}

TEST(Opcode, FlagsAreDistinct)
{
	const uint32_t flags[] = {
		UROCE_F_SEND,	      UROCE_F_WRITE,	  UROCE_F_READ, UROCE_F_ATOMIC,
		UROCE_F_ATOMIC_WRITE, UROCE_F_READ_RESP,  UROCE_F_ACK,	UROCE_F_FIRST,
		UROCE_F_LAST,	      UROCE_F_PAYLOAD,	  UROCE_F_DETH, UROCE_F_XRCETH,
		UROCE_F_RETH,	      UROCE_F_ATOMIC_ETH, UROCE_F_AETH, UROCE_F_ATOMIC_ACK_ETH,
		UROCE_F_IMM,	      UROCE_F_IETH,
	};
	uint32_t seen = 0;

	for (uint32_t flag : flags) {
		EXPECT_EQ(seen & flag, 0u) << std::hex << flag;
		seen |= flag;
	}
}

TEST(Opcode, TableAgreesWithTheSpecification)
{
	for (int op = 0; op < 256; op++) {
		const uroce_opcode &row = uroce_opcodes[op];
		const ibta::Row *spec = ibta::find(op);
		SCOPED_TRACE(spec ? spec->name : "opcode " + std::to_string(op));

		if (!row.flags)
			continue; // the next test says which may be missing
		ASSERT_TRUE(spec) << "a reserved opcode has a row";
		EXPECT_EQ(row.hdr_len, ibta::header_length(*spec));
		EXPECT_EQ(row.flags, kind_flag(*spec) | part_flags(*spec) | header_flags(*spec));
		EXPECT_LE(row.hdr_len, UROCE_MAX_HDR);
	}
}

TEST(Opcode, EveryServiceIsComplete)
{
	for (const ibta::Row &spec : ibta::kRows)
		EXPECT_TRUE(uroce_opcodes[spec.opcode].flags) << spec.name;
}

TEST(Opcode, PartsOfAMessage)
{
	// ONLY opcode: its FIRST, MIDDLE, LAST
	const struct {
		const char *name;
		uint8_t only, first, middle, last;
	} ops[] = {
		{"send", 0x04, 0x00, 0x01, 0x02},      {"send imm", 0x05, 0x00, 0x01, 0x03},
		{"send inv", 0x17, 0x00, 0x01, 0x16},  {"write", 0x0a, 0x06, 0x07, 0x08},
		{"write imm", 0x0b, 0x06, 0x07, 0x09}, {"read response", 0x10, 0x0d, 0x0e, 0x0f},
	};

	for (auto &op : ops) {
		SCOPED_TRACE(op.name);
		EXPECT_EQ(uroce_opcode_part(op.only, 1, 1), op.only);
		EXPECT_EQ(uroce_opcode_part(op.only, 1, 0), op.first);
		EXPECT_EQ(uroce_opcode_part(op.only, 0, 0), op.middle);
		EXPECT_EQ(uroce_opcode_part(op.only, 0, 1), op.last);
	}
	for (uint8_t whole : {0x0c, 0x11, 0x12, 0x13, 0x14})
		EXPECT_EQ(uroce_opcode_part(whole, 1, 1), whole);
}

TEST(Opcode, PadBringsToAMultipleOfFour)
{
	for (uint32_t len = 0; len < 100; len++) {
		EXPECT_LT(uroce_pad(len), 4);
		EXPECT_EQ((len + uroce_pad(len)) % 4, 0u);
	}
}

TEST(Opcode, AethFields)
{
	for (uint32_t syndrome : {0x00, 0x1f, 0x2e, 0x60, 0x63}) {
		struct uroce_aeth aeth = uroce_aeth_make(syndrome, 0xab123456);
		const uint8_t want[4] = {uint8_t(syndrome), 0x12, 0x34, 0x56};
		EXPECT_EQ(memcmp(&aeth, want, 4), 0);
	}
}

} // namespace
