// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The private ABI of libibverbs, as far as this provider uses it.
 *
 * No distribution ships rdma-core's driver.h, and its layout changes between
 * releases (sometimes without a new symbol version), so each rdma-core series
 * has a header of its own here. CMake looks at the installed libibverbs,
 * defines UROCE_RDMA_CORE_SERIES, and refuses a series without a header.
 *
 * To add a series: write pabi-NN.hpp from the facts of that release, adapt the
 * selection below, and run tests/abi, which compare the header with the
 * installed library.
 */
#ifndef UROCE_PABI_HPP
#define UROCE_PABI_HPP

#if UROCE_RDMA_CORE_SERIES == 44
#include "pabi-44.hpp"
#else
#error "UROCE_RDMA_CORE_SERIES names no supported rdma-core series"
#endif

namespace uroce {

/*
 * Command and response blocks of ibv_cmd_*(): a core part, which libibverbs
 * fills and reads, and behind it what the driver adds (uapi/uroce-abi.h). The
 * core part is opaque here; only its size matters, which is that of the
 * kernel's own struct, and for a command a header more: 8 bytes, 24 for one of
 * the "ex" commands.
 */
constexpr size_t CMD_HDR_LEN = sizeof(struct ib_uverbs_cmd_hdr);
constexpr size_t EX_CMD_HDR_LEN = CMD_HDR_LEN + sizeof(struct ib_uverbs_ex_cmd_hdr);

template <class Core>
struct Cmd {
	alignas(8) unsigned char core[CMD_HDR_LEN + sizeof(Core)];
};

template <class Core>
struct ExCmd {
	alignas(8) unsigned char core[EX_CMD_HDR_LEN + sizeof(Core)];
};

template <class Core, class Drv>
struct DrvCmd {
	alignas(8) unsigned char core[CMD_HDR_LEN + sizeof(Core)];
	Drv drv;
};

/* No gap between the two: a core part may be 4 bytes, with a driver's of such words behind. */
template <class Core, class Drv>
struct DrvResp {
	alignas(Drv) unsigned char core[sizeof(Core)];
	Drv drv;

	static_assert(sizeof(Core) % alignof(Drv) == 0, "the driver's part follows at once");
};

/* The block as the incomplete type that libibverbs' prototype asks for. */
template <class Want, class Block>
Want *cmd_core(Block &block)
{
	return reinterpret_cast<Want *>(&block);
}

} /* namespace uroce */

#endif /* UROCE_PABI_HPP */
