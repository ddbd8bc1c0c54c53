// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One operation of one endpoint on another, with memory of a random layout at both ends that is
// compared byte by byte afterwards, what lies around and between the pieces included.
#ifndef TESTS_TRANSFER_HPP
#define TESTS_TRANSFER_HPP

#include <random>

#include "verbs.hpp"

namespace verbs {

enum class Op { Send, SendImm, SendInv, Write, WriteImm, Read, CmpSwap, FetchAdd };

constexpr Op kPlainOps[] = {Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read};
constexpr Op kAllOps[] = {Op::Send, Op::SendImm, Op::Write,   Op::WriteImm,
			  Op::Read, Op::CmpSwap, Op::FetchAdd};

const char *op_name(Op op);
bool is_atomic(Op op);
bool takes_recv(Op op);
ibv_wc_opcode wc_opcode(Op op);

using Rng = std::mt19937_64;

// Number in [low, high]
uint64_t pick(Rng &rng, uint64_t low, uint64_t high);

void fill_random(Rng &rng, uint8_t *to, size_t length);

// Part of a Memory that one transfer has for itself.
struct Window {
	Memory &memory;
	size_t offset, size;

	uint8_t *data() const
	{
		return memory.data() + offset;
	}
	// Bytes that a transfer of @length in @pieces needs at most
	static size_t need(size_t length, int pieces);
};

struct Shape {
	Op op = Op::Write;
	size_t length = 0; // ignored by atomics
	int local_pieces = 1; // SGEs of the send WR
	int recv_pieces = 1; // SGEs of the receive, for SEND
	size_t recv_spare = 0; // bytes by which the receive is longer than the message
	int flags = IBV_SEND_SIGNALED;
	uint32_t inv_rkey = 0; // SendInv; 0: a Bench takes a window of its own
};

class Transfer {
public:
	Transfer(Rng &rng, Endpoint &from, Endpoint &to, Window local, Window remote, uint64_t id,
		 const Shape &shape);

	// Posts the receive, if the operation takes one, then the send WR.
	void post();
	// Fields of the completions that belong to this transfer
	void check_send_wc(const ibv_wc &wc) const;
	void check_recv_wc(const ibv_wc &wc) const;
	// Both windows are what they have to be after the operation.
	void check_memory() const;
	void wait_memory() const;
	// All of the above, waiting for the completions.
	void run();

	const Shape &shape() const
	{
		return shape_;
	}

private:
	struct Piece {
		size_t offset, length; // within a window
	};

	std::vector<Piece> scatter(Rng &rng, const Window &window, size_t length, int pieces);
	std::vector<ibv_sge> sges(const Window &window, const std::vector<Piece> &pieces) const;
	void expect_atomic(Rng &rng);
	void expect_copy();

	Endpoint &from_, &to_;
	Window local_, remote_;
	uint64_t id_;
	Shape shape_;
	std::vector<Piece> local_pieces_, remote_pieces_;
	std::vector<ibv_sge> recv_sges_;
	uint32_t imm_ = 0;
	SendWr wr_;
	std::vector<uint8_t> local_want_, remote_want_;
};

// Memory at both ends of a pair, and transfers on it one after the other.
class Bench {
public:
	Bench(Pair &pair, size_t max_length, int max_pieces, uint64_t seed = 1);
	~Bench();
	Bench(const Bench &) = delete;

	// Transfer of @shape by a on b; fails the test when anything is not as it has to be.
	void run(const Shape &shape);

	Rng rng;

private:
	uint32_t bind_window();

	Pair &pair_;
	Memory local_, remote_;
	uint64_t next_id_ = 1;
	ibv_mw *mw_ = nullptr; // b's, for SendInv
};

} // namespace verbs

#endif
