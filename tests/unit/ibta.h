/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The opcodes as the IBTA specification lists them (volume 1, table 38,
 * annexes 14 and 17), written down once more and in another form than kmod/opcode.c:
 * the headers behind the BTH as a string of letters.
 *
 *	D DETH 8, X XRCETH 4, R RETH 16, T atomic ETH 28, A AETH 4, O atomic ACK ETH 8,
 *	I immediate 4, V invalidate key 4; p: payload may follow
 */
#ifndef TESTS_IBTA_H
#define TESTS_IBTA_H

#include <cstdint>
#include <cstring>
#include <string>

namespace ibta {

struct Row {
	uint8_t opcode;
	const char *name;
	const char *headers;
};

const Row kRows[] = {
	{0x00, "RC SEND first", "p"},
	{0x01, "RC SEND middle", "p"},
	{0x02, "RC SEND last", "p"},
	{0x03, "RC SEND last with immediate", "Ip"},
	{0x04, "RC SEND only", "p"},
	{0x05, "RC SEND only with immediate", "Ip"},
	{0x06, "RC WRITE first", "Rp"},
	{0x07, "RC WRITE middle", "p"},
	{0x08, "RC WRITE last", "p"},
	{0x09, "RC WRITE last with immediate", "Ip"},
	{0x0a, "RC WRITE only", "Rp"},
	{0x0b, "RC WRITE only with immediate", "RIp"},
	{0x0c, "RC READ request", "R"},
	{0x0d, "RC READ response first", "Ap"},
	{0x0e, "RC READ response middle", "p"},
	{0x0f, "RC READ response last", "Ap"},
	{0x10, "RC READ response only", "Ap"},
	{0x11, "RC acknowledge", "A"},
	{0x12, "RC atomic acknowledge", "AO"},
	{0x13, "RC compare and swap", "T"},
	{0x14, "RC fetch and add", "T"},
	{0x16, "RC SEND last with invalidate", "Vp"},
	{0x17, "RC SEND only with invalidate", "Vp"},
	{0x1d, "RC ATOMIC WRITE", "Rp"},
	{0x20, "UC SEND first", "p"},
	{0x21, "UC SEND middle", "p"},
	{0x22, "UC SEND last", "p"},
	{0x23, "UC SEND last with immediate", "Ip"},
	{0x24, "UC SEND only", "p"},
	{0x25, "UC SEND only with immediate", "Ip"},
	{0x26, "UC WRITE first", "Rp"},
	{0x27, "UC WRITE middle", "p"},
	{0x28, "UC WRITE last", "p"},
	{0x29, "UC WRITE last with immediate", "Ip"},
	{0x2a, "UC WRITE only", "Rp"},
	{0x2b, "UC WRITE only with immediate", "RIp"},
	{0x64, "UD SEND only", "Dp"},
	{0x65, "UD SEND only with immediate", "DIp"},
	{0xa0, "XRC SEND first", "Xp"},
	{0xa1, "XRC SEND middle", "Xp"},
	{0xa2, "XRC SEND last", "Xp"},
	{0xa3, "XRC SEND last with immediate", "XIp"},
	{0xa4, "XRC SEND only", "Xp"},
	{0xa5, "XRC SEND only with immediate", "XIp"},
	{0xa6, "XRC WRITE first", "XRp"},
	{0xa7, "XRC WRITE middle", "Xp"},
	{0xa8, "XRC WRITE last", "Xp"},
	{0xa9, "XRC WRITE last with immediate", "XIp"},
	{0xaa, "XRC WRITE only", "XRp"},
	{0xab, "XRC WRITE only with immediate", "XRIp"},
	{0xac, "XRC READ request", "XR"},
	{0xad, "XRC READ response first", "Ap"},
	{0xae, "XRC READ response middle", "p"},
	{0xaf, "XRC READ response last", "Ap"},
	{0xb0, "XRC READ response only", "Ap"},
	{0xb1, "XRC acknowledge", "A"},
	{0xb2, "XRC atomic acknowledge", "AO"},
	{0xb3, "XRC compare and swap", "XT"},
	{0xb4, "XRC fetch and add", "XT"},
	{0xb6, "XRC SEND last with invalidate", "XVp"},
	{0xb7, "XRC SEND only with invalidate", "XVp"},
};

inline const Row *find(uint8_t opcode)
{
	for (const Row &row : kRows)
		if (row.opcode == opcode)
			return &row;
	return nullptr;
}

inline uint32_t header_size(char letter)
{
	switch (letter) {
	case 'D':
		return 8;
	case 'X':
		return 4;
	case 'R':
		return 16;
	case 'T':
		return 28;
	case 'A':
		return 4;
	case 'O':
		return 8;
	case 'I':
		return 4;
	case 'V':
		return 4;
	default:
		return 0;
	}
}

inline uint32_t header_length(const Row &row)
{
	uint32_t len = 12; // BTH

	for (const char *h = row.headers; *h; h++)
		len += header_size(*h);
	return len;
}

inline bool has(const Row &row, char letter)
{
	return std::strchr(row.headers, letter) != nullptr;
}

// Word in the opcode's name, e.g. "first"
inline bool is(const Row &row, const char *word)
{
	return std::string(row.name).find(word) != std::string::npos;
}

} // namespace ibta

#endif
