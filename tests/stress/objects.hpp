// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One object of each kind, made by uverbs commands without libibverbs, which would keep handles from
// being used wrongly and things from being destroyed in the wrong order.
#ifndef TESTS_OBJECTS_HPP
#define TESTS_OBJECTS_HPP

#include <array>
#include <vector>

#include "command.hpp"
#include "raw.hpp"

namespace raw {

enum Kind {
	kPd,
	kCq,
	kRecvCq,
	kXrcd,
	kSrq,
	kXrcSrq,
	kDm,
	kMr,
	kDmMr,
	kMw,
	kAh,
	kQp, // RC, with the SRQ
	kUdQp,
	kIniQp,
	kTgtQp,
	kKinds,
	kNone = kKinds
};

const char *kind_name(Kind kind);

using Handles = std::array<uint32_t, kKinds>;

// The commands with which they are made; @h has what they need.
Command create_pd();
Command create_cq(uint32_t cqe = 16);
Command create_xrcd();
Command create_srq(const Handles &h, uint32_t wr = 4);
Command create_xrc_srq(const Handles &h);
Command create_mr(const Handles &h);
Command create_mw(const Handles &h);
Command create_ah(const Handles &h);
Command create_qp(const Handles &h, ibv_qp_type type);
Command create_tgt_qp(const Handles &h);

// 0 or errno; the handle goes to @h.
int create(int fd, Kind kind, Handles &h);
int destroy(int fd, Kind kind, uint32_t handle);

// What keeps an object of a kind from going
std::vector<Kind> users_of(Kind kind);

// All kinds
class Objects {
public:
	explicit Objects(int fd);
	Objects(const Objects &) = delete;
	~Objects(); // those that are left; each must go

	int fd;
	Handles h = {};
	std::array<bool, kKinds> alive = {};
};

} // namespace raw

#endif
