// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transfer.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace verbs {

namespace {

constexpr size_t kGuard = 64; // bytes kept free at both ends of a window
constexpr size_t kMaxGap = 9; // bytes between pieces

ibv_wr_opcode wr_opcode(Op op)
{
	switch (op) {
	case Op::Send:
		return IBV_WR_SEND;
	case Op::SendImm:
		return IBV_WR_SEND_WITH_IMM;
	case Op::SendInv:
		return IBV_WR_SEND_WITH_INV;
	case Op::Write:
		return IBV_WR_RDMA_WRITE;
	case Op::WriteImm:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case Op::Read:
		return IBV_WR_RDMA_READ;
	case Op::CmpSwap:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case Op::FetchAdd:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	}
	abort();
}

bool is_send(Op op)
{
	return op == Op::Send || op == Op::SendImm || op == Op::SendInv;
}

bool has_imm(Op op)
{
	return op == Op::SendImm || op == Op::WriteImm;
}

uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

void store64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

// Says where the first difference is; the whole of it would be too long.
void expect_same(const uint8_t *got, const std::vector<uint8_t> &want, const char *where)
{
	// a copy: what failed once may still be under way
	const std::vector<uint8_t> now(got, got + want.size());

	if (now == want)
		return;
	size_t first = std::mismatch(want.begin(), want.end(), now.begin()).first - want.begin();
	size_t last = want.size() - 1;

	while (now[last] == want[last])
		last--;
	ADD_FAILURE() << where << " memory differs in bytes " << first << " to " << last
		      << " of its window of " << want.size() << "; first: got " << int(now[first])
		      << ", wanted " << int(want[first]);
}

} // namespace

const char *op_name(Op op)
{
	static const char *const names[] = {"Send",	"SendImm", "SendInv", "Write",
					    "WriteImm", "Read",	   "CmpSwap", "FetchAdd"};

	return names[static_cast<int>(op)];
}

bool is_atomic(Op op)
{
	return op == Op::CmpSwap || op == Op::FetchAdd;
}

bool takes_recv(Op op)
{
	return is_send(op) || op == Op::WriteImm;
}

ibv_wc_opcode wc_opcode(Op op)
{
	switch (op) {
	case Op::Write:
	case Op::WriteImm:
		return IBV_WC_RDMA_WRITE;
	case Op::Read:
		return IBV_WC_RDMA_READ;
	case Op::CmpSwap:
		return IBV_WC_COMP_SWAP;
	case Op::FetchAdd:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

uint64_t pick(Rng &rng, uint64_t low, uint64_t high)
{
	return std::uniform_int_distribution<uint64_t>(low, high)(rng);
}

void fill_random(Rng &rng, uint8_t *to, size_t length)
{
	uint64_t v;

	for (; length >= sizeof(v); to += sizeof(v), length -= sizeof(v)) {
		v = rng();
		memcpy(to, &v, sizeof(v));
	}
	v = rng();
	memcpy(to, &v, length);
}

size_t Window::need(size_t length, int pieces)
{
	return length + (pieces + 1) * kMaxGap + 2 * kGuard + 16;
}

Transfer::Transfer(Rng &rng, Endpoint &from, Endpoint &to, Window local, Window remote, uint64_t id,
		   const Shape &shape)
    : from_(from), to_(to), local_(local), remote_(remote), id_(id), shape_(shape),
      wr_(wr_opcode(shape.op), id, {}, shape.flags)
{
	if (is_atomic(shape.op))
		shape_.length = 8;
	if (has_imm(shape.op))
		wr_.imm(imm_ = rng());
	if (shape.op == Op::SendInv)
		wr_.wr.invalidate_rkey = shape.inv_rkey;

	fill_random(rng, local_.data(), local_.size);
	fill_random(rng, remote_.data(), remote_.size);
	local_pieces_ =
		scatter(rng, local_, shape_.length, is_atomic(shape.op) ? 1 : shape.local_pieces);
	if (is_send(shape.op)) {
		remote_pieces_ =
			scatter(rng, remote_, shape_.length + shape.recv_spare, shape.recv_pieces);
		recv_sges_ = sges(remote_, remote_pieces_);
	} else {
		remote_pieces_ = scatter(rng, remote_, shape_.length, 1);
	}
	wr_.sges = sges(local_, local_pieces_);

	local_want_.assign(local_.data(), local_.data() + local_.size);
	remote_want_.assign(remote_.data(), remote_.data() + remote_.size);
	if (is_atomic(shape.op))
		expect_atomic(rng);
	else
		expect_copy();
	if (!is_send(shape.op))
		wr_.remote(remote_.memory.addr(remote_.offset + remote_pieces_[0].offset),
			   remote_.memory.rkey());
	if (shape.flags & IBV_SEND_INLINE)
		for (ibv_sge &sge : wr_.sges) // the process's address, and no key
			sge = {sge.addr - local_.memory.addr() +
				       reinterpret_cast<uint64_t>(local_.memory.data()),
			       sge.length, 0xdeadbeef};
}

// Cuts @length bytes at random places and lays the pieces out with random gaps, in order.
std::vector<Transfer::Piece> Transfer::scatter(Rng &rng, const Window &window, size_t length,
					       int pieces)
{
	std::vector<size_t> cuts = {0, length};
	std::vector<Piece> result;
	size_t at = kGuard + pick(rng, 0, 7);

	if (pieces == 0)
		return result;
	for (int i = 1; i < pieces; i++)
		cuts.push_back(pick(rng, 0, length));
	std::sort(cuts.begin(), cuts.end());
	if (is_atomic(shape_.op)) // naturally aligned in the address space of the key
		at = kGuard + (-window.memory.addr(window.offset + kGuard) & 7);
	for (int i = 0; i < pieces; i++) {
		result.push_back({at, cuts[i + 1] - cuts[i]});
		at += result.back().length + pick(rng, 0, kMaxGap);
	}
	EXPECT_LE(result.back().offset + result.back().length + kGuard, window.size)
		<< "window too small";
	return result;
}

std::vector<ibv_sge> Transfer::sges(const Window &window, const std::vector<Piece> &pieces) const
{
	std::vector<ibv_sge> list;

	for (const Piece &piece : pieces)
		list.push_back(window.memory.sge(window.offset + piece.offset, piece.length));
	return list;
}

void Transfer::expect_atomic(Rng &rng)
{
	uint8_t *target = &remote_want_[remote_pieces_[0].offset];
	uint64_t before = load64(target);
	uint64_t operand = rng();

	store64(&local_want_[local_pieces_[0].offset], before);
	if (shape_.op == Op::FetchAdd) {
		wr_.atomic(operand);
		store64(target, before + operand);
	} else if (pick(rng, 0, 1)) {
		wr_.atomic(before, operand);
		store64(target, operand);
	} else {
		wr_.atomic(before ^ 1ull << pick(rng, 0, 63), operand); // does not match
	}
}

void Transfer::expect_copy()
{
	bool read = shape_.op == Op::Read;
	const std::vector<Piece> &from = read ? remote_pieces_ : local_pieces_;
	const std::vector<Piece> &to = read ? local_pieces_ : remote_pieces_;
	const std::vector<uint8_t> &source = read ? remote_want_ : local_want_;
	std::vector<uint8_t> &sink = read ? local_want_ : remote_want_;
	std::vector<uint8_t> message;
	size_t done = 0;

	for (const Piece &piece : from)
		message.insert(message.end(), &source[piece.offset],
			       &source[piece.offset] + piece.length);
	for (const Piece &piece : to) {
		size_t n = std::min(piece.length, message.size() - done);

		std::copy_n(message.begin() + done, n, sink.begin() + piece.offset);
		done += n;
	}
	EXPECT_EQ(done, message.size());
}

void Transfer::post()
{
	if (takes_recv(shape_.op))
		to_.recv(id_, recv_sges_);
	from_.post(wr_);
	if (shape_.flags & IBV_SEND_INLINE) {
		// inline data was taken when the WR was posted
		for (const Piece &piece : local_pieces_) {
			memset(local_.data() + piece.offset, 0x5a, piece.length);
			memset(&local_want_[piece.offset], 0x5a, piece.length);
		}
	}
}

void Transfer::check_send_wc(const ibv_wc &wc) const
{
	expect_wc(wc, id_);
	EXPECT_EQ(wc.opcode, wc_opcode(shape_.op));
	EXPECT_EQ(wc.qp_num, from_.qp->qp_num);
	if (shape_.op == Op::Read || is_atomic(shape_.op)) {
		EXPECT_EQ(wc.byte_len, shape_.length);
	}
}

void Transfer::check_recv_wc(const ibv_wc &wc) const
{
	unsigned int flags = has_imm(shape_.op)	      ? IBV_WC_WITH_IMM :
			     shape_.op == Op::SendInv ? IBV_WC_WITH_INV :
							0;

	expect_wc(wc, id_);
	EXPECT_EQ(wc.opcode, shape_.op == Op::WriteImm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	EXPECT_EQ(wc.qp_num, to_.qp->qp_num);
	EXPECT_EQ(wc.byte_len, shape_.length);
	EXPECT_EQ(wc.wc_flags & ~IBV_WC_GRH, flags);
	if (has_imm(shape_.op)) {
		EXPECT_EQ(ntohl(wc.imm_data), imm_);
	}
	if (shape_.op == Op::SendInv) {
		EXPECT_EQ(wc.invalidated_rkey, shape_.inv_rkey);
	}
}

void Transfer::check_memory() const
{
	expect_same(local_.data(), local_want_, "local");
	expect_same(remote_.data(), remote_want_, "remote");
}

// On UC a WRITE is complete when sent; nothing but its data tells that it has arrived.
void Transfer::wait_memory() const
{
	auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(patience());
	std::vector<uint8_t> now;

	// memcmp() of what changes meanwhile may call it equal when it is not: it looks twice
	do {
		sched_yield();
		now.assign(remote_.data(), remote_.data() + remote_want_.size());
	} while (now != remote_want_ && std::chrono::steady_clock::now() < deadline);
}

void Transfer::run()
{
	post();
	check_send_wc(from_.wait_send());
	if (takes_recv(shape_.op))
		check_recv_wc(to_.wait_recv());
	else if (from_.type == IBV_QPT_UC)
		wait_memory();
	check_memory();
}

Bench::Bench(Pair &pair, size_t max_length, int max_pieces, uint64_t seed)
    : rng(seed), pair_(pair), local_(pair.a.pd.get(), Window::need(max_length, max_pieces)),
      remote_(pair.b.pd.get(), Window::need(max_length, max_pieces),
	      kAllAccess | IBV_ACCESS_MW_BIND)
{
}

Bench::~Bench()
{
	if (mw_)
		ibv_dealloc_mw(mw_);
}

// Binds the window anew, which works only if it has been invalidated since. Its key.
uint32_t Bench::bind_window()
{
	if (!mw_)
		mw_ = check(ibv_alloc_mw(pair_.b.pd.get(), IBV_MW_TYPE_2), "alloc_mw");
	mw_->rkey = ibv_inc_rkey(mw_->rkey);
	pair_.b.post(SendWr(IBV_WR_BIND_MW, 0)
			     .bind(mw_, mw_->rkey, remote_.mr(), remote_.addr(), remote_.size(),
				   IBV_ACCESS_REMOTE_WRITE));
	expect_wc(pair_.b.wait_send(), 0);
	return mw_->rkey;
}

void Bench::run(const Shape &wanted)
{
	Shape shape = wanted;

	if (shape.op == Op::SendInv && !shape.inv_rkey)
		shape.inv_rkey = bind_window();
	size_t size = Window::need(shape.length + shape.recv_spare,
				   std::max(shape.local_pieces, shape.recv_pieces));
	Window local = {local_, 0, std::min(size, local_.size())};
	Window remote = {remote_, 0, std::min(size, remote_.size())};

	SCOPED_TRACE(std::string(op_name(shape.op)) + " of " + std::to_string(shape.length) +
		     " bytes, " + std::to_string(shape.local_pieces) + " and " +
		     std::to_string(shape.recv_pieces) + " pieces");
	Transfer(rng, pair_.a, pair_.b, local, remote, next_id_++, shape).run();
}

} // namespace verbs
