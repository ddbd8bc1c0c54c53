/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's crc32_le() for user-space builds of the leaf files: CRC-32,
 * least significant bit first, neither seed nor result inverted.
 */
#ifndef UROCE_CRC32_USER_H
#define UROCE_CRC32_USER_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t crc32_le(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = (const uint8_t *)data;
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

#endif
