// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The user half of the memory that uapi/uroce-abi.h describes: access to
 * shared words with the orders that header names, the mappings themselves, and
 * the work queues as rings of slots. The ordering pairs are numbered there.
 */
#ifndef UROCE_RING_HPP
#define UROCE_RING_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace uroce {

template <class T>
inline T load_relaxed(const T *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

template <class T>
inline T load_acquire(const T *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

template <class T>
inline T load_seq_cst(const T *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

template <class T, class V>
inline void store_release(T *word, V value)
{
	__atomic_store_n(word, static_cast<T>(value), __ATOMIC_RELEASE);
}

template <class T, class V>
inline void or_seq_cst(T *word, V bits)
{
	__atomic_fetch_or(word, static_cast<T>(bits), __ATOMIC_SEQ_CST);
}

/* Orders earlier stores against later loads (smp_mb() of the kernel). */
inline void full_fence()
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * A region of kernel memory in this process. It needs no fork handling: the
 * kernel leaves it out of a child (VM_DONTCOPY), which could spoil it else.
 */
struct Mapping {
	void *base;
	size_t len; /* bytes; 0: nothing is mapped */
	pid_t pid; /* a forked child does not have it, and perhaps another one there by now */

	/* Maps len bytes at the offset the kernel handed out; 0 or errno. */
	int map(int fd, uint64_t offset, size_t map_len)
	{
		void *p = mmap(nullptr, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			       static_cast<off_t>(offset));

		if (p == MAP_FAILED)
			return errno;
		base = p;
		len = map_len;
		pid = getpid();
		return 0;
	}

	void unmap()
	{
		if (len && pid == getpid())
			munmap(base, len);
		len = 0;
	}

	/* What lies at a byte offset of the region. */
	template <class T>
	T *at(size_t offset) const
	{
		return reinterpret_cast<T *>(static_cast<unsigned char *>(base) + offset);
	}
};

/*
 * A queue of WQEs. Indices run free; the slot of index i is i modulo
 * the number of entries. `tail` belongs to whoever holds the queue's lock,
 * `head` is stored by whoever polls the CQ (under the CQ's lock) and loaded by
 * whoever posts, hence the release and acquire: a slot is written again only
 * after the completion that retired it was seen.
 */
struct Ring {
	unsigned char *slots;
	uint32_t *shared_tail; /* sq_tail or rq_tail of a QP, tail of an SRQ */
	uint32_t entries; /* power of two; 0: the QP has no such queue */
	uint32_t stride; /* bytes */
	uint32_t tail; /* index behind the last published WQE */
	uint32_t head; /* index of the oldest WQE that is not retired; not for an SRQ */

	template <class T>
	T *slot(uint32_t index) const
	{
		return reinterpret_cast<T *>(slots + size_t{index & (entries - 1)} * stride);
	}

	/* May index be written, or does a WQE in flight have its slot? */
	bool has_room(uint32_t index) const
	{
		return index - load_acquire(&head) < entries;
	}

	/* Hands everything before next to the kernel. Ordering pair 1. */
	void publish(uint32_t next)
	{
		tail = next;
		store_release(shared_tail, next);
	}

	/* The WQE at index and all before it are done. */
	void retire(uint32_t index)
	{
		store_release(&head, index + 1);
	}

	/*
	 * After a modify to RESET, by which the kernel has put the shared tail
	 * back; but somebody who posted meanwhile may have published his since.
	 * No poller has anything to retire now.
	 */
	void reset()
	{
		publish(0);
		store_release(&head, 0);
	}
};

} /* namespace uroce */

#endif /* UROCE_RING_HPP */
