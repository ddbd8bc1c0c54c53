// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// PSN arithmetic, above all around the 24-bit wrap.
#include <gtest/gtest.h>

extern "C" {
#include "psn.h"
}

namespace {

constexpr uint32_t kRange = 1u << 24;

// The interesting places: around zero, the half, and the wrap.
const uint32_t kPlaces[] = {
	0, 1, 2, 3, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xfffff0, 0xfffffe, 0xffffff,
};

TEST(Psn, AddWraps)
{
	for (uint32_t psn : kPlaces)
		for (uint32_t n : {0u, 1u, 15u, 16u, 0x7fffffu, 0x800000u, 0xffffffu})
			EXPECT_EQ(uroce_psn_add(psn, n), (uint64_t(psn) + n) % kRange)
				<< psn << "+" << n;
	EXPECT_EQ(uroce_psn_add(0xffffff, 1), 0u);
}

TEST(Psn, AddTakesNegativeStepsAsTwosComplement)
{
	EXPECT_EQ(uroce_psn_add(0, uint32_t(-1)), 0xffffffu);
	EXPECT_EQ(uroce_psn_add(5, uint32_t(-6)), 0xffffffu);
}

TEST(Psn, DiffInvertsAdd)
{
	for (uint32_t psn : kPlaces)
		for (int32_t d : {0, 1, -1, 2, -2, 4096, -4096, 0x7fffff, -0x7fffff, -0x800000})
			EXPECT_EQ(uroce_psn_diff(uroce_psn_add(psn, uint32_t(d)), psn), d)
				<< psn << " " << d;
}

TEST(Psn, DiffIsAntisymmetricExceptAtTheHalf)
{
	for (uint32_t a : kPlaces)
		for (uint32_t b : kPlaces) {
			if (((a - b) & 0xffffff) == 0x800000)
				EXPECT_EQ(uroce_psn_diff(a, b), -0x800000);
			else
				EXPECT_EQ(uroce_psn_diff(a, b), -uroce_psn_diff(b, a))
					<< a << " " << b;
		}
}

TEST(Psn, DiffIgnoresBitsAbove24)
{
	EXPECT_EQ(uroce_psn_diff(0xab000005, 0x12000003), 2);
	EXPECT_EQ(uroce_psn_diff(0x01000000, 0x00ffffff), 1);
}

TEST(Psn, DistCountsForwards)
{
	for (uint32_t psn : kPlaces) {
		EXPECT_EQ(uroce_psn_dist(psn, psn), 0u);
		EXPECT_EQ(uroce_psn_dist(psn, uroce_psn_add(psn, 1)), 0xffffffu);
		for (uint32_t n : {1u, 0x7fffffu, 0x800000u, 0xffffffu})
			EXPECT_EQ(uroce_psn_dist(uroce_psn_add(psn, n), psn), n) << psn << " " << n;
	}
}

TEST(Psn, InWindow)
{
	for (uint32_t first : kPlaces)
		for (uint32_t n : {0u, 1u, 2u, 128u, 0x7fffffu}) {
			EXPECT_EQ(!!uroce_psn_in(first, first, n), n > 0);
			EXPECT_FALSE(uroce_psn_in(uroce_psn_add(first, n), first, n))
				<< first << " " << n;
			EXPECT_FALSE(uroce_psn_in(uroce_psn_add(first, uint32_t(-1)), first, n))
				<< first << " " << n;
			if (n) {
				EXPECT_TRUE(uroce_psn_in(uroce_psn_add(first, n - 1), first, n))
					<< first << " " << n;
			}
		}
}

} // namespace
