// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "verbs.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

std::ostream &operator<<(std::ostream &out, const ibv_wc &wc)
{
	return out << "wr_id " << wc.wr_id << " status " << ibv_wc_status_str(wc.status)
		   << " opcode " << int(wc.opcode) << " byte_len " << wc.byte_len << " vendor_err "
		   << wc.vendor_err;
}

namespace verbs {

namespace {

using Clock = std::chrono::steady_clock;

ibv_context *open_device(const std::string &name)
{
	int n = 0;
	std::unique_ptr<ibv_device *, void (*)(ibv_device **)> list(
		check(ibv_get_device_list(&n), "get_device_list"), ibv_free_device_list);

	for (int i = 0; i < n; i++)
		if (name == ibv_get_device_name(list.get()[i]))
			return check(ibv_open_device(list.get()[i]), "open_device");
	throw std::system_error(ENODEV, std::generic_category(), name);
}

} // namespace

ibv_gid gid_of(const std::string &address)
{
	ibv_gid gid = {};

	if (inet_pton(AF_INET6, address.c_str(), gid.raw) == 1)
		return gid;
	gid.raw[10] = gid.raw[11] = 0xff;
	if (inet_pton(AF_INET, address.c_str(), gid.raw + 12) != 1)
		throw std::runtime_error("no address: " + address);
	return gid;
}

int mtu_bytes(ibv_mtu mtu)
{
	return 128 << mtu;
}

ibv_mtu mtu_at_most(ibv_mtu mtu)
{
	return std::min({mtu, device_a().port.active_mtu, device_b().port.active_mtu});
}

Device::Device(const std::string &name, int index) : gid_index(index), context_(open_device(name))
{
	check(ibv_query_device(get(), &attr), "query_device");
	check(ibv_query_port(get(), 1, &port), "query_port");
	check(ibv_query_gid(get(), 1, gid_index, &gid), "query_gid");
	check(fcntl(get()->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
}

bool Device::has_mw_2b() const
{
	return attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B && attr.max_mw > 0;
}

std::optional<ibv_event_type> Device::next_event(int timeout_ms)
{
	pollfd fd = {get()->async_fd, POLLIN, 0};
	ibv_async_event event;

	if (poll(&fd, 1, timeout_ms) <= 0 || ibv_get_async_event(get(), &event))
		return std::nullopt;
	ibv_ack_async_event(&event);
	return event.event_type;
}

bool Device::wait_event(ibv_event_type type)
{
	while (auto event = next_event(patience() * 1000))
		if (*event == type)
			return true;
	return false;
}

void Device::drain_events()
{
	while (next_event(0))
		;
}

void Memory::Unmap::operator()(uint8_t *p) const
{
	munmap(p, size);
}

Memory::Memory(ibv_pd *pd, size_t size, int access, std::optional<uint64_t> iova)
    : size_(size), data_(nullptr, Unmap{size})
{
	void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p == MAP_FAILED ? -1 : 0, "mmap");
	data_.reset(static_cast<uint8_t *>(p));
	iova_ = iova ? *iova : reinterpret_cast<uint64_t>(p);
	if (on_demand() && !(access & IBV_ACCESS_MW_BIND))
		access |= IBV_ACCESS_ON_DEMAND;
	mr_.reset(check(iova ? ibv_reg_mr_iova(pd, p, size, *iova, access) :
			       ibv_reg_mr(pd, p, size, access),
			"reg_mr"));
}

SendWr::SendWr(ibv_wr_opcode opcode, uint64_t id, std::vector<ibv_sge> list, int flags)
    : sges(std::move(list))
{
	wr.wr_id = id;
	wr.opcode = opcode;
	wr.send_flags = flags;
}

SendWr &SendWr::remote(uint64_t addr, uint32_t rkey)
{
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    wr.opcode == IBV_WR_ATOMIC_WRITE) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return *this;
}

SendWr &SendWr::imm(uint32_t value)
{
	wr.imm_data = htonl(value);
	return *this;
}

SendWr &SendWr::atomic(uint64_t compare_add, uint64_t swap)
{
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return *this;
}

SendWr &SendWr::bind(ibv_mw *mw, uint32_t rkey, ibv_mr *mr, uint64_t addr, uint64_t length,
		     int access)
{
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = {mr, addr, length, static_cast<unsigned int>(access)};
	return *this;
}

SendWr &SendWr::invalidate(uint32_t rkey)
{
	wr.invalidate_rkey = rkey;
	return *this;
}

SendWr &SendWr::srqn(uint32_t number)
{
	wr.qp_type.xrc.remote_srqn = number;
	return *this;
}

SendWr &SendWr::to(ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	return *this;
}

// IBV_QP_EX_WITH_* of what the tests use
static uint64_t send_ops(ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ops;
}

static ibv_cq *make_cq(const QpConfig &config, Device &dev, uint32_t wr, ibv_comp_channel *channel)
{
	// Room for what the device rounds the queues up to, too
	uint32_t cqe = 2 * std::max(wr, 1u) + 2;

	return check(config.make_cq ? config.make_cq(dev.get(), cqe, channel) :
				      ibv_create_cq(dev.get(), cqe, nullptr, channel, 0),
		     "create_cq");
}

Endpoint::Endpoint(Device &device, const QpConfig &config) : dev(device), type(config.type)
{
	ibv_qp_init_attr_ex init = {};

	pd.reset(check(config.make_pd ? config.make_pd(dev.get()) : ibv_alloc_pd(dev.get()),
		       "alloc_pd"));
	if (config.events) {
		channel.reset(check(ibv_create_comp_channel(dev.get()), "create_comp_channel"));
		check(fcntl(channel->fd, F_SETFL, O_NONBLOCK), "fcntl");
	}
	if (!config.shared_cq) {
		send_cq.reset(make_cq(config, dev, config.send_wr, channel.get()));
		recv_cq.reset(make_cq(config, dev, std::max(config.recv_wr, config.srq_wr),
				      channel.get()));
	}

	xrcd = config.xrcd;
	if (type == IBV_QPT_XRC_RECV && !xrcd) {
		own_xrcd.reset(open_xrcd(dev.get()));
		xrcd = own_xrcd.get();
	}
	create_srq(config);

	init.send_cq = config.shared_cq ? config.shared_cq : send_cq.get();
	init.recv_cq = config.shared_cq ? config.shared_cq : recv_cq.get();
	init.srq = xrcd ? nullptr : srq;
	init.cap = {config.send_wr, config.recv_wr, config.send_sge, config.recv_sge,
		    config.inline_data};
	init.qp_type = type;
	init.sq_sig_all = config.sig_all;
	init.pd = pd.get();
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	if (type == IBV_QPT_XRC_RECV) {
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = xrcd;
	} else if (config.wr_api) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = send_ops(type) | config.more_ops;
		if (type == IBV_QPT_RC && device.has_mw_2b())
			init.send_ops_flags |= IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
					       IBV_QP_EX_WITH_SEND_WITH_INV;
	}
	if (config.create_flags) {
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		init.create_flags = config.create_flags;
	}
	qp.reset(check(ibv_create_qp_ex(dev.get(), &init), "create_qp"));
	cap = init.cap;
	if (config.wr_api && type != IBV_QPT_XRC_RECV)
		ex_ = check(ibv_qp_to_qp_ex(qp.get()), "qp_to_qp_ex");
}

void Endpoint::create_srq(const QpConfig &config)
{
	ibv_srq_init_attr attr = {nullptr, {config.srq_wr, config.recv_sge, 0}};

	srq = config.srq;
	if (type == IBV_QPT_XRC_RECV)
		own_srq.reset(create_xrc_srq(pd.get(), xrcd, recv_cq.get(),
					     std::max(config.recv_wr, 1u), config.recv_sge));
	else if (config.srq_wr)
		own_srq.reset(check(ibv_create_srq(pd.get(), &attr), "create_srq"));
	if (own_srq)
		srq = own_srq.get();
}

ibv_xrcd *open_xrcd(ibv_context *context, int fd)
{
	ibv_xrcd_init_attr attr = {};

	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	attr.fd = fd;
	attr.oflags = O_CREAT;
	return check(ibv_open_xrcd(context, &attr), "open_xrcd");
}

ibv_srq *create_xrc_srq(ibv_pd *pd, ibv_xrcd *xrcd, ibv_cq *cq, uint32_t wr, uint32_t sge)
{
	ibv_srq_init_attr_ex attr = {};

	attr.attr = {wr, sge, 0};
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			 IBV_SRQ_INIT_ATTR_CQ;
	attr.srq_type = IBV_SRQT_XRC;
	attr.pd = pd;
	attr.xrcd = xrcd;
	attr.cq = cq;
	return check(ibv_create_srq_ex(pd->context, &attr), "create_srq_ex");
}

uint32_t srq_number(ibv_srq *srq)
{
	uint32_t number = 0;

	check(ibv_get_srq_num(srq, &number), "get_srq_num");
	return number;
}

int init_mask(ibv_qp_type type)
{
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int rtr_mask(ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return IBV_QP_STATE;
	if (type == IBV_QPT_UC)
		return kRtrMask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	return kRtrMask;
}

int rts_mask(ibv_qp_type type)
{
	return type == IBV_QPT_UC || type == IBV_QPT_UD ? IBV_QP_STATE | IBV_QP_SQ_PSN : kRtsMask;
}

void Endpoint::to_init(int access)
{
	ibv_qp_attr attr = {};

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = access;
	attr.qkey = kQkey;
	check(ibv_modify_qp(qp.get(), &attr, init_mask(type)), "modify_qp INIT");
}

ibv_qp_attr rtr_attr(const Device &dev, const Device &peer_dev, uint32_t peer_qpn, const Path &path,
		     uint32_t rq_psn)
{
	ibv_qp_attr attr = {};

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = mtu_at_most(path.mtu);
	attr.dest_qp_num = peer_qpn;
	attr.rq_psn = rq_psn;
	attr.max_dest_rd_atomic = std::min<int>(path.dest_rd_atomic, dev.attr.max_qp_rd_atom);
	attr.min_rnr_timer = path.min_rnr_timer;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = peer_dev.gid;
	attr.ah_attr.grh.sgid_index = dev.gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	return attr;
}

ibv_qp_attr rts_attr(const Device &dev, const Path &path, uint32_t sq_psn)
{
	ibv_qp_attr attr = {};
	int peer_limit = (&dev == &device_a() ? device_b() : device_a()).attr.max_qp_rd_atom;

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = path.timeout;
	attr.retry_cnt = path.retry_cnt;
	attr.rnr_retry = path.rnr_retry;
	attr.sq_psn = sq_psn;
	attr.max_rd_atomic =
		std::min<int>({path.rd_atomic, dev.attr.max_qp_init_rd_atom, peer_limit});
	return attr;
}

void Endpoint::to_rtr(const Endpoint &peer, const Path &path, uint32_t rq_psn)
{
	ibv_qp_attr attr = rtr_attr(dev, peer.dev, peer.qp->qp_num, path, rq_psn);

	check(ibv_modify_qp(qp.get(), &attr, rtr_mask(type)), "modify_qp RTR");
}

void Endpoint::to_rts(const Path &path, uint32_t sq_psn)
{
	ibv_qp_attr attr = rts_attr(dev, path, sq_psn);

	check(ibv_modify_qp(qp.get(), &attr, rts_mask(type)), "modify_qp RTS");
}

int Endpoint::to(ibv_qp_state state)
{
	ibv_qp_attr attr = {};

	attr.qp_state = state;
	return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE);
}

ibv_qp_attr Endpoint::query(int mask, ibv_qp_init_attr *init) const
{
	ibv_qp_attr attr = {};
	ibv_qp_init_attr unused;

	check(ibv_query_qp(qp.get(), &attr, mask, init ? init : &unused), "query_qp");
	return attr;
}

ibv_qp_state Endpoint::state() const
{
	return query(IBV_QP_STATE).qp_state;
}

Ah Endpoint::ah_for(const Endpoint &peer) const
{
	return ah_for(peer.dev.gid);
}

Ah Endpoint::ah_for(const ibv_gid &gid) const
{
	ibv_ah_attr attr = {};

	attr.is_global = 1;
	attr.port_num = 1;
	attr.grh.dgid = gid;
	attr.grh.sgid_index = dev.gid_index;
	attr.grh.hop_limit = 64;
	return Ah(check(ibv_create_ah(pd.get(), &attr), "create_ah"));
}

int Endpoint::try_post(const SendWr &w)
{
	ibv_send_wr wr = w.wr, *bad = nullptr;
	int err;

	if (ex_)
		return post_wr_api(w);
	wr.sg_list = const_cast<ibv_sge *>(w.sges.data());
	wr.num_sge = w.sges.size();
	if (type == IBV_QPT_XRC_SEND && !wr.qp_type.xrc.remote_srqn)
		wr.qp_type.xrc.remote_srqn = remote_srqn;
	err = ibv_post_send(qp.get(), &wr, &bad);
	EXPECT_EQ(bad, err ? &wr : nullptr) << "bad_wr";
	return err;
}

int Endpoint::post_wr_api(const SendWr &w)
{
	const ibv_send_wr &wr = w.wr;

	ibv_wr_start(ex_);
	ex_->wr_id = wr.wr_id;
	ex_->wr_flags = wr.send_flags & ~IBV_SEND_INLINE;
	switch (wr.opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex_);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex_, wr.imm_data);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex_, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex_, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, wr.imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex_, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex_, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr,
				      wr.wr.atomic.compare_add, wr.wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex_, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr,
					wr.wr.atomic.compare_add);
		break;
	case IBV_WR_ATOMIC_WRITE:
		ibv_wr_atomic_write(ex_, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr,
				    &wr.wr.atomic.swap);
		return ibv_wr_complete(ex_);
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex_, wr.invalidate_rkey);
		break;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(ex_, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
		return ibv_wr_complete(ex_);
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex_, wr.invalidate_rkey);
		return ibv_wr_complete(ex_);
	default:
		ibv_wr_abort(ex_);
		return EOPNOTSUPP;
	}
	if (type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(ex_, wr.qp_type.xrc.remote_srqn ?: remote_srqn);
	if (type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(ex_, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
	if (wr.send_flags & IBV_SEND_INLINE) {
		std::vector<ibv_data_buf> bufs;

		for (const ibv_sge &sge : w.sges)
			bufs.push_back({reinterpret_cast<void *>(sge.addr), sge.length});
		ibv_wr_set_inline_data_list(ex_, bufs.size(), bufs.data());
	} else if (w.sges.size() == 1) {
		ibv_wr_set_sge(ex_, w.sges[0].lkey, w.sges[0].addr, w.sges[0].length);
	} else {
		ibv_wr_set_sge_list(ex_, w.sges.size(), w.sges.data());
	}
	return ibv_wr_complete(ex_);
}

int post_srq_recv(ibv_srq *srq, uint64_t id, std::vector<ibv_sge> sges)
{
	ibv_recv_wr wr = {}, *bad = nullptr;
	int err;

	wr.wr_id = id;
	wr.sg_list = sges.data();
	wr.num_sge = sges.size();
	err = ibv_post_srq_recv(srq, &wr, &bad);
	EXPECT_EQ(bad, err ? &wr : nullptr) << "bad_wr";
	return err;
}

int Endpoint::try_recv(uint64_t id, std::vector<ibv_sge> sges)
{
	if (srq)
		return post_srq_recv(srq, id, sges);

	ibv_recv_wr wr = {}, *bad = nullptr;
	int err;

	wr.wr_id = id;
	wr.sg_list = sges.data();
	wr.num_sge = sges.size();
	err = ibv_post_recv(qp.get(), &wr, &bad);
	EXPECT_EQ(bad, err ? &wr : nullptr) << "bad_wr";
	return err;
}

ibv_wc Endpoint::wait(ibv_cq *cq)
{
	auto deadline = Clock::now() + std::chrono::seconds(patience());
	ibv_wc wc = {};
	int n;

	for (uint32_t spins = 0; (n = ibv_poll_cq(cq, 1, &wc)) == 0; spins++) {
		if (spins % 64 == 63)
			sched_yield();
		if (spins % 1024 == 1023 && Clock::now() > deadline)
			throw std::system_error(ETIMEDOUT, std::generic_category(),
						"no completion");
	}
	check(n < 0 ? -1 : 0, "poll_cq");
	return wc;
}

void Endpoint::expect_quiet()
{
	ibv_wc wc;

	state(); // a verb that runs after what the kernel has under way on this QP
	for (int i = 0; i < 200; i++) {
		sched_yield();
		ASSERT_EQ(ibv_poll_cq(send_cq.get(), 1, &wc), 0) << "SQ: " << wc;
		ASSERT_EQ(ibv_poll_cq(recv_cq.get(), 1, &wc), 0) << "RQ: " << wc;
	}
}

Pair::Pair(const QpConfig &config, const Path &path) : Pair(config, config, path) {}

Pair::Pair(const QpConfig &config_a, const QpConfig &config_b, const Path &path)
    : a(device_a(), config_a), b(device_b(), config_b)
{
	if (b.type == IBV_QPT_XRC_RECV)
		a.remote_srqn = srq_number(b.srq);
	connect(path);
}

void Pair::connect(const Path &path)
{
	a.to_init(path.access);
	b.to_init(path.access);
	a.to_rtr(b, path, path.psn_b);
	b.to_rtr(a, path, path.psn_a);
	a.to_rts(path, path.psn_a);
	b.to_rts(path, path.psn_b);
}

void Pair::reconnect(const Path &path)
{
	check(a.to(IBV_QPS_RESET), "modify_qp RESET");
	check(b.to(IBV_QPS_RESET), "modify_qp RESET");
	connect(path);
}

CounterDelta::CounterDelta(const Device &dev, const char *name)
    : path_(std::string("/sys/class/infiniband/") + ibv_get_device_name(dev.get()->device) +
	    "/ports/1/hw_counters/")
{
	std::ifstream(path_ + "lifespan") >> lifespan_ms_;
	path_ += name;
	before_ = read();
}

// The kernel shows values up to their lifespan old: only after that is a new one new.
std::optional<uint64_t> CounterDelta::read() const
{
	uint64_t value;

	std::this_thread::sleep_for(std::chrono::milliseconds(2 * lifespan_ms_));
	std::ifstream in(path_);
	if (in >> value)
		return value;
	return std::nullopt;
}

void CounterDelta::expect(uint64_t by) const
{
	auto deadline = Clock::now() + std::chrono::seconds(patience());
	std::optional<uint64_t> now;

	if (!before_)
		return;
	do
		now = read();
	while (*now < *before_ + by && Clock::now() < deadline);
	EXPECT_EQ(*now - *before_, by) << path_;
}

uint64_t CounterDelta::moved() const
{
	return before_ ? *read() - *before_ : 0;
}

void expect_wc(const ibv_wc &wc, uint64_t id, ibv_wc_status status)
{
	EXPECT_TRUE(wc.wr_id == id && wc.status == status)
		<< "got " << wc << "\nwanted wr_id " << id << " status "
		<< ibv_wc_status_str(status);
}

} // namespace verbs
