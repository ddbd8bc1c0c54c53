// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Threads beside a test's own. They are waited for when they go, also when the test throws, and
// what they throw is a failure of the test.
#ifndef TESTS_BACKGROUND_HPP
#define TESTS_BACKGROUND_HPP

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <thread>

namespace verbs {

// Calls @work once.
class Thread {
public:
	template <typename Work>
	explicit Thread(Work work)
	    : thread_([work]() mutable {
		      try {
			      work();
		      } catch (const std::exception &e) {
			      ADD_FAILURE() << "in a thread: " << e.what();
		      }
	      })
	{
	}
	~Thread()
	{
		join();
	}
	void join()
	{
		if (thread_.joinable())
			thread_.join();
	}

private:
	std::thread thread_;
};

// Calls @step again and again, until it is stopped or goes.
class Background {
public:
	template <typename Step>
	explicit Background(Step step)
	    : thread_([this, step]() mutable {
		      while (!stop_.load(std::memory_order_relaxed))
			      step();
	      })
	{
	}
	~Background()
	{
		stop_ = true;
	}
	void stop()
	{
		stop_ = true;
		thread_.join();
	}

private:
	std::atomic<bool> stop_{false};
	Thread thread_; // last: uses the rest
};

} // namespace verbs

#endif
