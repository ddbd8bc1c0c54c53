// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Owners of libibverbs objects, and two connected QPs in one process. Setting up throws
// std::system_error, which GoogleTest reports; destroying checks that the verb succeeds.
#ifndef TESTS_VERBS_HPP
#define TESTS_VERBS_HPP

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

std::ostream &operator<<(std::ostream &out, const ibv_wc &wc);

namespace verbs {

// Seconds after which something that must happen is given up on; never decides a race.
constexpr int default_patience = 20;
int patience();
// A machine on which everything takes many times as long: a debug kernel. Tests of many similar
// rounds make do with some of them there.
bool slow();
inline int rounds(int number)
{
	return slow() ? number / 5 : number;
}
// 4.096 us * 2^this without an answer and a requester sends again: 67 ms, or 0.3 s where everything
// is slow, so that it happens for what is lost.
inline uint8_t ack_timeout()
{
	return slow() ? 16 : 14;
}

// --odp: register memory on demand
bool on_demand();

// The GID of an IPv6 address, or of an IPv4 one, mapped.
ibv_gid gid_of(const std::string &address);

inline void check(int err, const char *what)
{
	if (err)
		throw std::system_error(err < 0 ? errno : err, std::generic_category(), what);
}

template <typename T>
T *check(T *object, const char *what)
{
	if (!object)
		throw std::system_error(errno, std::generic_category(), what);
	return object;
}

template <auto destroy>
struct Destroy {
	template <typename T>
	void operator()(T *object) const
	{
		int err = destroy(object);

		if (err)
			ADD_FAILURE() << "destroying failed: " << strerror(err < 0 ? errno : err);
	}
};

using Context = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using Pd = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;
using Cq = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using Qp = std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>>;
using Srq = std::unique_ptr<ibv_srq, Destroy<ibv_destroy_srq>>;
inline int close_xrcd(ibv_xrcd *xrcd)
{
	return ibv_close_xrcd(xrcd);
}
using Xrcd = std::unique_ptr<ibv_xrcd, Destroy<close_xrcd>>;
using Ah = std::unique_ptr<ibv_ah, Destroy<ibv_destroy_ah>>;
using Mr = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
using Mw = std::unique_ptr<ibv_mw, Destroy<ibv_dealloc_mw>>;

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kQpAccess = kAllAccess & ~IBV_ACCESS_LOCAL_WRITE;

class Device {
public:
	Device(const std::string &name, int gid_index);

	ibv_context *get() const
	{
		return context_.get();
	}
	bool has_mw_2b() const;
	bool has_xrc() const
	{
		return attr.device_cap_flags & IBV_DEVICE_XRC;
	}

	// The next asynchronous event of type @type within the patience; others are thrown away.
	bool wait_event(ibv_event_type type);
	// Takes away what happened so far.
	void drain_events();
	// The next event that has happened or does within @timeout_ms
	std::optional<ibv_event_type> next_event(int timeout_ms);

	ibv_device_attr attr = {};
	ibv_port_attr port = {};
	ibv_gid gid = {};
	const int gid_index;

private:
	Context context_;
};

// The devices of the command line: both ends of every pair. May be the same one.
Device &device_a();
Device &device_b();

// Registered, page-aligned memory. Not pinned when rc-test was called with --odp and there is no
// reason against it.
class Memory {
public:
	Memory(ibv_pd *pd, size_t size, int access = kAllAccess,
	       std::optional<uint64_t> iova = std::nullopt);

	uint8_t *data()
	{
		return data_.get();
	}
	size_t size() const
	{
		return size_;
	}
	uint32_t lkey() const
	{
		return mr_->lkey;
	}
	uint32_t rkey() const
	{
		return mr_->rkey;
	}
	// Address of byte @offset as SGEs and remote operations name it
	uint64_t addr(size_t offset = 0) const
	{
		return iova_ + offset;
	}
	ibv_sge sge(size_t offset, uint32_t length) const
	{
		return {addr(offset), length, lkey()};
	}
	ibv_mr *mr() const
	{
		return mr_.get();
	}
	void deregister()
	{
		mr_.reset();
	}

private:
	struct Unmap {
		size_t size;
		void operator()(uint8_t *p) const;
	};

	size_t size_;
	std::unique_ptr<uint8_t, Unmap> data_;
	uint64_t iova_;
	Mr mr_;
};

constexpr uint32_t kQkey = 0x11112222; // of UD QPs

// A send work request with its SGEs.
struct SendWr {
	SendWr(ibv_wr_opcode opcode, uint64_t id, std::vector<ibv_sge> sges = {},
	       int flags = IBV_SEND_SIGNALED);

	SendWr &remote(uint64_t addr, uint32_t rkey);
	SendWr &imm(uint32_t value); // host byte order
	SendWr &atomic(uint64_t compare_add, uint64_t swap = 0); // ATOMIC_WRITE: swap
	SendWr &bind(ibv_mw *mw, uint32_t rkey, ibv_mr *mr, uint64_t addr, uint64_t length,
		     int access);
	SendWr &invalidate(uint32_t rkey);
	SendWr &srqn(uint32_t number); // XRC
	SendWr &to(ibv_ah *ah, uint32_t qpn, uint32_t qkey = kQkey); // datagram

	ibv_send_wr wr = {};
	std::vector<ibv_sge> sges;
};

struct QpConfig {
	ibv_qp_type type = IBV_QPT_RC;
	uint32_t create_flags = 0;
	uint32_t send_wr = 64, recv_wr = 64;
	uint32_t send_sge = 1, recv_sge = 1;
	uint32_t inline_data = 0;
	uint32_t srq_wr = 0; // not 0: an SRQ of the endpoint's own in place of the RQ
	ibv_srq *srq = nullptr; // somebody else's SRQ
	ibv_xrcd *xrcd = nullptr; // of an XRC target and its SRQ; nullptr: one of its own
	bool sig_all = false;
	bool wr_api = false; // post with ibv_wr_*
	uint64_t more_ops = 0; // IBV_QP_EX_WITH_* that not every device has
	bool events = false; // CQs on a completion channel
	// Other CQs than the plain ones, another PD; null: plain. The arguments are at least the
	// number of entries and the channel.
	std::function<ibv_cq *(ibv_context *, uint32_t, ibv_comp_channel *)> make_cq;
	std::function<ibv_pd *(ibv_context *)> make_pd;
	ibv_cq *shared_cq = nullptr; // somebody else's CQ for both queues; no CQs of its own
};

// How two QPs are connected. PSNs start near the wrap so that every test crosses it.
struct Path {
	ibv_mtu mtu = IBV_MTU_1024;
	uint32_t psn_a = 0xfffff0, psn_b = 0xfffff8; // first PSN that a, b send
	uint8_t timeout = ack_timeout();
	uint8_t retry_cnt = 7, rnr_retry = 7;
	uint8_t min_rnr_timer = 1; // 10 us
	uint8_t rd_atomic = 16, dest_rd_atomic = 16; // cut down to what the devices have
	int access = kQpAccess;
};

// A new XRC domain, of an open file or of nobody else; an SRQ in it, and its number.
ibv_xrcd *open_xrcd(ibv_context *context, int fd = -1);
ibv_srq *create_xrc_srq(ibv_pd *pd, ibv_xrcd *xrcd, ibv_cq *cq, uint32_t wr, uint32_t sge = 1);
uint32_t srq_number(ibv_srq *srq);

/*
 * A QP with its CQs and PD; RC, UC, UD, or one end of XRC. An XRC target (XRC_RECV) comes with an
 * XRC SRQ that completes to recv_cq; an initiator names the SRQ in remote_srqn, unless a WR does.
 */
class Endpoint {
public:
	explicit Endpoint(Device &dev, const QpConfig &config = {});

	Device &dev;
	Pd pd;
	Channel channel;
	Cq send_cq, recv_cq;
	Xrcd own_xrcd;
	ibv_xrcd *xrcd = nullptr;
	uint32_t remote_srqn = 0;
	Srq own_srq;
	ibv_srq *srq = nullptr; // that receives are posted to: own_srq, another's, or none
	Qp qp;
	ibv_qp_cap cap = {}; // granted
	const ibv_qp_type type;

	void to_init(int access = kQpAccess);
	void to_rtr(const Endpoint &peer, const Path &path, uint32_t rq_psn);
	void to_rts(const Path &path, uint32_t sq_psn);
	int to(ibv_qp_state state); // without attributes; returns the verb's result
	ibv_qp_state state() const;
	ibv_qp_attr query(int mask, ibv_qp_init_attr *init = nullptr) const;

	// A handle for the address of @peer's device, or for any other
	Ah ah_for(const Endpoint &peer) const;
	Ah ah_for(const ibv_gid &gid) const;

	int try_post(const SendWr &wr);
	void post(const SendWr &wr)
	{
		check(try_post(wr), "post_send");
	}
	int try_recv(uint64_t id, std::vector<ibv_sge> sges = {});
	void recv(uint64_t id, std::vector<ibv_sge> sges = {})
	{
		check(try_recv(id, sges), "post_recv");
	}

	// The next completion; throws when none comes within the patience.
	ibv_wc wait_send()
	{
		return wait(send_cq.get());
	}
	ibv_wc wait_recv()
	{
		return wait(recv_cq.get());
	}
	// Neither CQ has anything more.
	void expect_quiet();

	static ibv_wc wait(ibv_cq *cq);

private:
	void create_srq(const QpConfig &config);
	int post_wr_api(const SendWr &wr);
	ibv_qp_ex *ex_ = nullptr;
};

// One receive to an SRQ; returns the verb's result.
int post_srq_recv(ibv_srq *srq, uint64_t id, std::vector<ibv_sge> sges = {});

// Attributes and mask of the step INIT to RTR; tests of the state machine spoil them.
ibv_qp_attr rtr_attr(const Device &dev, const Device &peer_dev, uint32_t peer_qpn, const Path &path,
		     uint32_t rq_psn);
ibv_qp_attr rts_attr(const Device &dev, const Path &path, uint32_t sq_psn);
int init_mask(ibv_qp_type type);
int rtr_mask(ibv_qp_type type);
int rts_mask(ibv_qp_type type);
// The same for RC
constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

// Two endpoints, connected.
struct Pair {
	explicit Pair(const QpConfig &config = {}, const Path &path = {});
	Pair(const QpConfig &config_a, const QpConfig &config_b, const Path &path);

	// RESET both and connect them anew
	void reconnect(const Path &path);

	Endpoint a, b;

private:
	void connect(const Path &path);
};

// How far a counter of the port has moved; for devices that have it.
class CounterDelta {
public:
	CounterDelta(const Device &dev, const char *name);

	// It has moved by @by, or does so within the patience.
	void expect(uint64_t by) const;
	uint64_t moved() const; // so far; 0 for a device without it

private:
	std::optional<uint64_t> read() const;

	std::string path_;
	unsigned int lifespan_ms_ = 0;
	std::optional<uint64_t> before_;
};

int mtu_bytes(ibv_mtu mtu);

// @mtu, or the largest both devices can do
ibv_mtu mtu_at_most(ibv_mtu mtu);

// Checks status and id of a completion.
void expect_wc(const ibv_wc &wc, uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS);

} // namespace verbs

#endif
