// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The lock of the data path: a spinlock that is not taken at all where the
 * application promised to use the object from one thread only.
 */
#ifndef UROCE_LOCK_HPP
#define UROCE_LOCK_HPP

#include <pthread.h>

namespace uroce {

class Lock {
public:
	/* needed = false: lock() and unlock() do nothing. */
	void init(bool is_needed)
	{
		needed = is_needed;
		pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	}

	void destroy()
	{
		pthread_spin_destroy(&spin);
	}

	void lock()
	{
		if (needed)
			pthread_spin_lock(&spin);
	}

	void unlock()
	{
		if (needed)
			pthread_spin_unlock(&spin);
	}

private:
	pthread_spinlock_t spin;
	bool needed;
};

/* Holds a Lock for a scope. */
class Guard {
public:
	explicit Guard(Lock &l) : held(l)
	{
		held.lock();
	}

	~Guard()
	{
		held.unlock();
	}

	Guard(const Guard &) = delete;
	Guard &operator=(const Guard &) = delete;

private:
	Lock &held;
};

} /* namespace uroce */

#endif /* UROCE_LOCK_HPP */
