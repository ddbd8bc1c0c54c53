// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "raw.hpp"

#include <poll.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>

namespace raw {

namespace {

using verbs::check;

// A write() command: header, core structure, no driver data; the answer goes to @resp.
template <typename Core>
int command(int fd, uint32_t number, Core core, void *resp, size_t resp_len)
{
	struct {
		ib_uverbs_cmd_hdr hdr;
		Core core;
	} __attribute__((packed)) cmd;

	static_assert(sizeof(cmd) % 4 == 0);
	cmd.hdr = {number, sizeof(cmd) / 4, static_cast<uint16_t>(resp_len / 4)};
	if constexpr (!std::is_same_v<Core, ib_uverbs_modify_qp>)
		core.response = reinterpret_cast<uint64_t>(resp);
	cmd.core = core;
	return write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

template <typename Core, typename Driver>
struct Response {
	Core core;
	Driver driver;
} __attribute__((packed));

} // namespace

// ---- mappings ----

Mapping::Mapping(int fd, uint64_t offset, size_t len)
{
	void *p = mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       static_cast<off_t>(offset));

	check(p == MAP_FAILED ? -1 : 0, "mmap");
	data_ = static_cast<uint8_t *>(p);
	size_ = len;
}

Mapping::Mapping(Mapping &&other)
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0))
{
}

Mapping &Mapping::operator=(Mapping &&other)
{
	std::swap(data_, other.data_);
	std::swap(size_, other.size_);
	return *this;
}

Mapping::~Mapping()
{
	if (size_)
		munmap(data_, size_);
}

std::vector<Span> mappings()
{
	std::unique_ptr<FILE, int (*)(FILE *)> maps(check(fopen("/proc/self/maps", "r"), "maps"),
						    fclose);
	std::vector<Span> found;
	char line[512];

	while (fgets(line, sizeof(line), maps.get())) {
		uint64_t from, to;

		if (strstr(line, "/infiniband/uverbs") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) == 2)
			found.push_back({reinterpret_cast<uint8_t *>(from), to - from});
	}
	return found;
}

// ---- kick ----

int kick(int fd, const KickShape &shape)
{
	alignas(ib_uverbs_ioctl_hdr)
		uint8_t space[sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr)] = {};
	auto *hdr = reinterpret_cast<ib_uverbs_ioctl_hdr *>(space);
	ib_uverbs_attr &attr = hdr->attrs[0];

	hdr->length = sizeof(*hdr) + shape.attrs * sizeof(attr);
	hdr->object_id = shape.object;
	hdr->method_id = shape.method;
	hdr->num_attrs = shape.attrs;
	hdr->driver_id = shape.driver;
	attr.attr_id = shape.attr;
	attr.len = shape.len;
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	attr.data = shape.data;
	return ioctl(fd, RDMA_VERBS_IOCTL, hdr) ? errno : 0;
}

int kick(int fd, uint32_t slot)
{
	KickShape shape;

	shape.data = slot;
	return kick(fd, shape);
}

// ---- events ----

static std::optional<ibv_event_type> next_event(verbs::Device &dev, int timeout_ms)
{
	pollfd fd = {dev.get()->async_fd, POLLIN, 0};
	ib_uverbs_async_event_desc event;

	if (poll(&fd, 1, timeout_ms) <= 0 ||
	    read(fd.fd, &event, sizeof(event)) != ssize_t(sizeof(event)))
		return std::nullopt;
	return static_cast<ibv_event_type>(event.event_type);
}

bool wait_event(verbs::Device &dev, ibv_event_type type)
{
	while (auto event = next_event(dev, verbs::patience() * 1000))
		if (*event == type)
			return true;
	return false;
}

void drain_events(verbs::Device &dev)
{
	while (next_event(dev, 0))
		;
}

// ---- CQ ----

Cq::Cq(ibv_context *context, uint32_t entries, int channel) : fd_(context->cmd_fd)
{
	Response<ib_uverbs_create_cq_resp, uroce_create_cq_resp> out = {};
	ib_uverbs_create_cq in = {};

	in.cqe = entries;
	in.comp_channel = channel;
	check(command(fd_, IB_USER_VERBS_CMD_CREATE_CQ, in, &out, sizeof(out)), "CREATE_CQ");
	alive_ = true;
	handle = out.core.cq_handle;
	resp = out.driver;
	map = Mapping(fd_, resp.mmap_offset, resp.mmap_len);
}

int Cq::destroy()
{
	ib_uverbs_destroy_cq_resp out = {};
	ib_uverbs_destroy_cq in = {};

	in.cq_handle = handle;
	alive_ = false;
	return command(fd_, IB_USER_VERBS_CMD_DESTROY_CQ, in, &out, sizeof(out));
}

Cq::~Cq()
{
	if (alive_) {
		EXPECT_EQ(destroy(), 0) << "DESTROY_CQ";
	}
}

void Cq::publish()
{
	__atomic_store_n(&ctrl()->ci, ci_, __ATOMIC_RELEASE);
}

std::optional<uroce_cqe> Cq::poll()
{
	auto *slot = map.at<uroce_cqe>(resp.cqe_offset) + (ci_ & (resp.cqe_entries - 1));
	std::optional<uroce_cqe> cqe;

	if (__atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) != ci_ / resp.cqe_entries + 1)
		return cqe;
	cqe = *slot;
	ci_++;
	publish();
	return cqe;
}

uroce_cqe Cq::wait()
{
	auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(verbs::patience());

	while (true) {
		if (auto cqe = poll())
			return *cqe;
		sched_yield();
		if (std::chrono::steady_clock::now() > deadline)
			throw std::system_error(ETIMEDOUT, std::generic_category(), "no CQE");
	}
}

// ---- QP ----

Qp::Qp(ibv_pd *pd, const Cq &send, const Cq &recv, const QpSize &size) : fd_(pd->context->cmd_fd)
{
	Response<ib_uverbs_create_qp_resp, uroce_create_qp_resp> out = {};
	ib_uverbs_create_qp in = {};

	in.pd_handle = pd->handle;
	in.send_cq_handle = send.handle;
	in.recv_cq_handle = recv.handle;
	in.max_send_wr = size.send_wr;
	in.max_recv_wr = size.recv_wr;
	in.max_send_sge = size.send_sge;
	in.max_recv_sge = size.recv_sge;
	in.max_inline_data = size.inline_data;
	in.qp_type = IBV_QPT_RC;
	check(command(fd_, IB_USER_VERBS_CMD_CREATE_QP, in, &out, sizeof(out)), "CREATE_QP");
	alive_ = true;
	handle = out.core.qp_handle;
	qpn = out.core.qpn;
	resp = out.driver;
	map = Mapping(fd_, resp.mmap_offset, resp.mmap_len);
}

int Qp::destroy()
{
	ib_uverbs_destroy_qp_resp out = {};
	ib_uverbs_destroy_qp in = {};

	in.qp_handle = handle;
	alive_ = false;
	return command(fd_, IB_USER_VERBS_CMD_DESTROY_QP, in, &out, sizeof(out));
}

Qp::~Qp()
{
	if (alive_) {
		EXPECT_EQ(destroy(), 0) << "DESTROY_QP";
	}
}

int Qp::modify(ibv_qp_attr attr, int mask)
{
	ib_uverbs_modify_qp in = {};

	memcpy(in.dest.dgid, attr.ah_attr.grh.dgid.raw, sizeof(in.dest.dgid));
	in.dest.sgid_index = attr.ah_attr.grh.sgid_index;
	in.dest.hop_limit = attr.ah_attr.grh.hop_limit;
	in.dest.is_global = attr.ah_attr.is_global;
	in.dest.port_num = attr.ah_attr.port_num;
	in.qp_handle = handle;
	in.attr_mask = mask;
	in.rq_psn = attr.rq_psn;
	in.sq_psn = attr.sq_psn;
	in.dest_qp_num = attr.dest_qp_num;
	in.qp_access_flags = attr.qp_access_flags;
	in.qp_state = attr.qp_state;
	in.cur_qp_state = attr.cur_qp_state;
	in.path_mtu = attr.path_mtu;
	in.max_rd_atomic = attr.max_rd_atomic;
	in.max_dest_rd_atomic = attr.max_dest_rd_atomic;
	in.min_rnr_timer = attr.min_rnr_timer;
	in.port_num = attr.port_num;
	in.timeout = attr.timeout;
	in.retry_cnt = attr.retry_cnt;
	in.rnr_retry = attr.rnr_retry;
	return command(fd_, IB_USER_VERBS_CMD_MODIFY_QP, in, nullptr, 0);
}

int Qp::to(ibv_qp_state state)
{
	ibv_qp_attr attr = {};

	attr.qp_state = state;
	if (state == IBV_QPS_RESET)
		sq_tail = rq_tail = 0;
	return modify(attr, IBV_QP_STATE);
}

int Qp::connect(verbs::Device &own, verbs::Device &peer_dev, uint32_t peer_qpn,
		const verbs::Path &path, uint32_t sq_psn, uint32_t rq_psn)
{
	ibv_qp_attr init = {};
	int err = to(IBV_QPS_RESET);

	init.qp_state = IBV_QPS_INIT;
	init.port_num = 1;
	init.qp_access_flags = path.access;
	if (!err)
		err = modify(init, verbs::kInitMask);
	if (!err)
		err = modify(verbs::rtr_attr(own, peer_dev, peer_qpn, path, rq_psn),
			     verbs::kRtrMask);
	if (!err)
		err = modify(verbs::rts_attr(own, path, sq_psn), verbs::kRtsMask);
	return err;
}

ibv_qp_state Qp::state()
{
	ib_uverbs_query_qp_resp out = {};
	ib_uverbs_query_qp in = {};

	in.qp_handle = handle;
	in.attr_mask = IBV_QP_STATE;
	check(command(fd_, IB_USER_VERBS_CMD_QUERY_QP, in, &out, sizeof(out)), "QUERY_QP");
	return static_cast<ibv_qp_state>(out.qp_state);
}

uroce_send_wqe *Qp::send_slot(uint32_t index) const
{
	return map.at<uroce_send_wqe>(resp.sq_offset +
				      (index & (resp.sq_entries - 1)) * resp.sq_stride);
}

uroce_recv_wqe *Qp::recv_slot(uint32_t index) const
{
	return map.at<uroce_recv_wqe>(resp.rq_offset +
				      (index & (resp.rq_entries - 1)) * resp.rq_stride);
}

// The elements go where they fit; num_sge may say anything.
void Qp::put_send(const uroce_send_wqe &wqe, const std::vector<uroce_sge> &sges)
{
	uroce_send_wqe *slot = send_slot(sq_tail);

	*slot = wqe;
	if (!sges.empty())
		memcpy(slot + 1, sges.data(), sges.size() * sizeof(uroce_sge));
	__atomic_store_n(&ctrl()->sq_tail, ++sq_tail, __ATOMIC_RELEASE);
}

void Qp::put_recv(uint64_t id, const std::vector<uroce_sge> &sges)
{
	uroce_recv_wqe *slot = recv_slot(rq_tail);

	*slot = {id, static_cast<uint32_t>(sges.size()), 0};
	if (!sges.empty())
		memcpy(slot + 1, sges.data(), sges.size() * sizeof(uroce_sge));
	__atomic_store_n(&ctrl()->rq_tail, ++rq_tail, __ATOMIC_RELEASE);
}

// ---- rig ----

Rig::Rig(const QpSize &size, uint32_t cq_entries)
    : pd_a(check(ibv_alloc_pd(verbs::device_a().get()), "alloc_pd")),
      pd_b(check(ibv_alloc_pd(verbs::device_b().get()), "alloc_pd")),
      send_a(verbs::device_a().get(), cq_entries), recv_a(verbs::device_a().get(), cq_entries),
      send_b(verbs::device_b().get(), cq_entries), recv_b(verbs::device_b().get(), cq_entries),
      local(pd_a.get(), kMemory), remote(pd_b.get(), kMemory), a(pd_a.get(), send_a, recv_a, size),
      b(pd_b.get(), send_b, recv_b, size)
{
	path.timeout = 10; // 4 ms
	path.retry_cnt = 7;
	path.rnr_retry = 0; // no receive: the next thing that happens is an error
}

int Rig::connect()
{
	int err = a.connect(verbs::device_a(), verbs::device_b(), b.qpn, path, path.psn_a,
			    path.psn_b);

	return err ? err :
		     b.connect(verbs::device_b(), verbs::device_a(), a.qpn, path, path.psn_b,
			       path.psn_a);
}

int Rig::connect_anew()
{
	int err, tries = 100;

	do
		err = connect();
	while (err == EINVAL && --tries && (a.state() == IBV_QPS_ERR || b.state() == IBV_QPS_ERR));
	return err;
}

uroce_send_wqe Rig::wqe(unsigned int opcode, uint64_t id, uint32_t num_sge) const
{
	uroce_send_wqe wqe = {};

	wqe.wr_id = id;
	wqe.opcode = opcode;
	wqe.flags = UROCE_SEND_SIGNALED;
	wqe.num_sge = num_sge;
	wqe.rkey = remote.rkey();
	wqe.remote_addr = remote.addr();
	return wqe;
}

void Rig::poll()
{
	for (Cq *cq : {&send_a, &recv_a, &send_b, &recv_b})
		while (cq->poll())
			;
}

std::vector<Span> Rig::shared() const
{
	std::vector<Span> spans;

	for (const Mapping *map :
	     {&a.map, &b.map, &send_a.map, &recv_a.map, &send_b.map, &recv_b.map})
		spans.push_back({map->data(), map->size()});
	return spans;
}

} // namespace raw
