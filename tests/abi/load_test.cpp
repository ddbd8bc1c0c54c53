// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The real libibverbs loads the real provider: run by load_test.sh, which
 * fakes /sys and /dev with one device that nothing else claims.
 *
 * The driver id, by which the provider is matched, comes over netlink alone,
 * where there is nothing to fake. So the registration passes through here, and
 * goes on with one more way to match: by the name of the device. Everything
 * after that is the library's and the provider's own.
 */
#include <cstring>
#include <fstream>
#include <string>

#include <dlfcn.h>

#include <gtest/gtest.h>

#include "pabi.hpp"

#include "uroce-abi.h"

namespace {

const verbs_device_ops *registered;
verbs_device_ops extended;
verbs_match_ent matches[3];

bool is_mapped(const char *name)
{
	std::ifstream maps("/proc/self/maps");
	std::string line;

	while (std::getline(maps, line)) {
		if (line.find(name) != std::string::npos)
			return true;
	}
	return false;
}

} /* namespace */

extern "C" __attribute__((visibility("default"))) void
UROCE_REGISTER_DRIVER(const verbs_device_ops *ops)
{
	const char *symbol = "verbs_register_driver_" UROCE_PABI_STRING;
	auto real = reinterpret_cast<void (*)(const verbs_device_ops *)>(dlsym(RTLD_NEXT, symbol));

	if (strcmp(ops->name, "uroce")) { /* libibverbs loads all that are installed */
		real(ops);
		return;
	}
	registered = ops;
	extended = *ops;
	matches[0] = ops->match_table[0];
	matches[1].u.modalias = "rdma_device:*Nuroce_fake*";
	matches[1].kind = VERBS_MATCH_MODALIAS;
	extended.match_table = matches;
	real(&extended);
}

TEST(Load, DeviceIsFoundThroughTheProvider)
{
	int num = -1;
	ibv_device **list = ibv_get_device_list(&num);

	ASSERT_NE(list, nullptr);
	EXPECT_TRUE(is_mapped("/liburoce-rdmav" UROCE_PABI_STRING ".so"));
	ASSERT_NE(registered, nullptr);
	ASSERT_EQ(num, 1);
	EXPECT_STREQ(ibv_get_device_name(list[0]), "uroce_fake0");
	EXPECT_EQ(list[0]->node_type, IBV_NODE_CA);
	EXPECT_EQ(ibv_get_device_guid(list[0]), htobe64(0x0200000000000001));

	/* There is no kernel behind it. */
	EXPECT_EQ(ibv_open_device(list[0]), nullptr);
	ibv_free_device_list(list);
}

TEST(Load, WhatTheProviderRegisters)
{
	ASSERT_NE(registered, nullptr);
	EXPECT_STREQ(registered->name, "uroce");
	EXPECT_EQ(registered->match_min_abi_version, unsigned{UROCE_ABI_VERSION});
	EXPECT_EQ(registered->match_max_abi_version, unsigned{UROCE_ABI_VERSION});
	EXPECT_EQ(registered->match_table[0].kind, VERBS_MATCH_DRIVER_ID);
	EXPECT_EQ(registered->match_table[0].u.driver_id, uint64_t{UROCE_DRIVER_ID});
	EXPECT_EQ(registered->match_table[1].kind, VERBS_MATCH_SENTINEL);
}

/* Only where libibverbs is a copy with another name: CMakeLists.txt. */
TEST(Load, DISABLED_OfAnotherSeries)
{
	int num = -1;
	ibv_device **list;

	testing::internal::CaptureStderr();
	list = ibv_get_device_list(&num);
	EXPECT_NE(testing::internal::GetCapturedStderr().find(
			  "the provider was built for rdma-core 44, this is 56"),
		  std::string::npos);
	EXPECT_TRUE(is_mapped("/liburoce-rdmav" UROCE_PABI_STRING ".so"));
	EXPECT_EQ(registered, nullptr);
	EXPECT_EQ(num, 0);
	ibv_free_device_list(list);
}

/* Only where the kernel says another version: CMakeLists.txt. */
TEST(Load, DISABLED_OfAnotherAbi)
{
	int num = -1;
	ibv_device **list;

	testing::internal::CaptureStderr();
	list = ibv_get_device_list(&num);
	EXPECT_NE(testing::internal::GetCapturedStderr().find("does not support the kernel ABI of"),
		  std::string::npos);
	ASSERT_NE(registered, nullptr);
	EXPECT_EQ(num, 0);
	ibv_free_device_list(list);
}
