// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// QPs and CQs made by uverbs commands of our own, without the provider: the memory shared with the
// kernel is ours to spoil, and what the kernel answers is seen as it is (uapi/uroce-abi.h).
#ifndef TESTS_RAW_HPP
#define TESTS_RAW_HPP

#include <rdma/ib_user_verbs.h>

#include <optional>
#include <utility>

#include "uroce-abi.h"
#include "verbs.hpp"

namespace raw {

// A shared mapping of a uverbs file; unmapped with the object.
class Mapping {
public:
	Mapping() = default;
	// Throws when mmap() fails.
	Mapping(int fd, uint64_t offset, size_t len);
	Mapping(Mapping &&other);
	Mapping &operator=(Mapping &&other);
	~Mapping();

	uint8_t *data() const
	{
		return data_;
	}
	size_t size() const
	{
		return size_;
	}
	template <typename T>
	T *at(size_t offset) const
	{
		return reinterpret_cast<T *>(data_ + offset);
	}

private:
	uint8_t *data_ = nullptr;
	size_t size_ = 0;
};

// A piece of memory to write to, by address and length in bytes
using Span = std::pair<uint8_t *, size_t>;

// All mappings of uverbs files in this process, the provider's included.
std::vector<Span> mappings();

// The kick of a doorbell slot; 0 or errno.
int kick(int fd, uint32_t slot);
// The same with an attribute of any length at any address, and any ids.
struct KickShape {
	uint16_t object = UROCE_OBJECT_DOORBELL, method = UROCE_METHOD_KICK;
	uint16_t attr = UROCE_ATTR_KICK_SLOT, attrs = 1, len = sizeof(uint32_t);
	uint32_t driver = UROCE_DRIVER_ID;
	uint64_t data = 0;
};
int kick(int fd, const KickShape &shape);

/*
 * The next asynchronous event of the type within the patience; others are thrown away. Raw objects
 * are unknown to libibverbs, which would look for the one that an event is about.
 */
bool wait_event(verbs::Device &dev, ibv_event_type type);
void drain_events(verbs::Device &dev);

class Cq {
public:
	// @channel: fd of a completion channel, or -1
	Cq(ibv_context *context, uint32_t entries, int channel = -1);
	Cq(const Cq &) = delete;
	~Cq();

	int destroy(); // errno; once
	// The next CQE, taken off the ring; none is there when empty.
	std::optional<uroce_cqe> poll();
	// The same, waiting; throws when the patience is over.
	uroce_cqe wait();
	// Gives what was polled back to the kernel; poll() does, unless @ci was spoilt since.
	void publish();

	uroce_cq_ctrl *ctrl() const
	{
		return map.at<uroce_cq_ctrl>(0);
	}

	uroce_create_cq_resp resp = {};
	uint32_t handle = 0;
	Mapping map;

private:
	int fd_;
	bool alive_ = false;
	uint32_t ci_ = 0;
};

struct QpSize {
	uint32_t send_wr = 16, recv_wr = 16, send_sge = 2, recv_sge = 2, inline_data = 64;
};

// An RC QP and what it needs to be connected and spoilt.
class Qp {
public:
	Qp(ibv_pd *pd, const Cq &send, const Cq &recv, const QpSize &size = {});
	Qp(const Qp &) = delete;
	~Qp();

	int modify(ibv_qp_attr attr, int mask); // errno
	int to(ibv_qp_state state);
	// From any state to RTS, by RESET; errno.
	int connect(verbs::Device &own, verbs::Device &peer_dev, uint32_t peer_qpn,
		    const verbs::Path &path, uint32_t sq_psn, uint32_t rq_psn);
	ibv_qp_state state();
	int destroy();

	uroce_qp_ctrl *ctrl() const
	{
		return map.at<uroce_qp_ctrl>(0);
	}
	uroce_send_wqe *send_slot(uint32_t index) const;
	uroce_recv_wqe *recv_slot(uint32_t index) const;
	// Copies a WQE into the next slot and moves the tail on; no kick.
	void put_send(const uroce_send_wqe &wqe, const std::vector<uroce_sge> &sges = {});
	void put_recv(uint64_t id, const std::vector<uroce_sge> &sges = {});
	int kick() const
	{
		return raw::kick(fd_, resp.db_slot);
	}

	uroce_create_qp_resp resp = {};
	uint32_t handle = 0, qpn = 0;
	uint32_t sq_tail = 0, rq_tail = 0; // behind what put_*() wrote
	Mapping map;

private:
	int fd_;
	bool alive_ = false;
};

inline uroce_sge sge(const verbs::Memory &memory, size_t offset, uint32_t length)
{
	return {memory.addr(offset), length, memory.lkey()};
}

// Two raw QPs, one of each device, connected, with memory at both ends.
struct Rig {
	explicit Rig(const QpSize &size = {}, uint32_t cq_entries = 64);

	int connect();
	// The same while somebody scribbles: what one QP sends already may bring its peer, not yet
	// connected, into the error state again. Then once more.
	int connect_anew();
	uroce_send_wqe wqe(unsigned int opcode, uint64_t id, uint32_t num_sge = 1) const;
	// Takes whatever is on the CQs
	void poll();
	// Everything shared with the kernel
	std::vector<Span> shared() const;

	verbs::Path path;
	verbs::Pd pd_a, pd_b;
	Cq send_a, recv_a, send_b, recv_b;
	verbs::Memory local, remote;
	Qp a, b;
};

constexpr size_t kMemory = 64 << 10;

} // namespace raw

#endif
