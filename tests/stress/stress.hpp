// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How long a stress test goes on, and the seed to repeat it with.
#ifndef TESTS_STRESS_HPP
#define TESTS_STRESS_HPP

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "background.hpp"
#include "transfer.hpp"

namespace stress {

using verbs::Background;
using verbs::pick;
using verbs::Rng;

inline long env_number(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

/*
 * Rounds of a test: `for (Rounds round("what"); round.next();)`. Goes on for $stress_seconds
 * (default 4) or, if that is set, until there is a file $stress_until; at least @least rounds, until
 * something failed. Each round has a seed of its own, which a failure names; $stress_seed starts
 * with that one.
 */
class Rounds {
public:
	explicit Rounds(const char *what, unsigned long least = 3)
	    : what_(what), least_(least), seed_(env_number("stress_seed", 1)),
	      end_(Clock::now() + std::chrono::seconds(env_number("stress_seconds", 4)))
	{
	}
	~Rounds()
	{
		if (testing::Test::HasFailure())
			printf("# %s: failed in the round of stress_seed=%lu\n", what_, seed_ - 1);
		else
			printf("# %s: %lu rounds\n", what_, count_);
	}
	bool next()
	{
		if (testing::Test::HasFailure() || (count_ >= least_ && over()))
			return false;
		count_++;
		rng.seed(seed_++);
		return true;
	}
	unsigned long count() const
	{
		return count_;
	}

	Rng rng;

private:
	using Clock = std::chrono::steady_clock;

	bool over() const
	{
		const char *until = getenv("stress_until");

		return until ? access(until, F_OK) == 0 : Clock::now() >= end_;
	}

	const char *what_;
	unsigned long least_, count_ = 0, seed_;
	Clock::time_point end_;
};

// Waits for what must happen; false when the patience is over.
template <typename Condition>
bool wait_until(Condition condition)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(verbs::patience());

	while (!condition()) {
		if (std::chrono::steady_clock::now() > end)
			return false;
		std::this_thread::yield();
	}
	return true;
}

// Lets some time pass, without the scheduler's help.
inline void spin(uint64_t loops)
{
	for (uint64_t i = 0; i < loops; i++)
		asm volatile("" ::: "memory");
}

} // namespace stress

#endif
