// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rc-test: tests of reliable connections on any RDMA devices; see README.md.
 *
 *   rc-test --dev A --gid-index I [--peer-dev B --peer-gid-index J] [--odp] [--gtest_filter=...]
 *   rc-test --dev A --gid-index I --hold ADDRESS QPN PSN [OWN-PSN]
 *
 * Prints TAP. Exit status: 0 passed, 1 failed, 2 usage, 4 nothing was tested.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "group.hpp"
#include "hold.hpp"
#include "verbs.hpp"

namespace {

std::unique_ptr<verbs::Device> dev_a, dev_b;
bool odp;

// GoogleTest's results as TAP: one line for each test, what failed as notes before it.
class Tap : public testing::EmptyTestEventListener {
	void OnTestProgramStart(const testing::UnitTest &unit) override
	{
		printf("TAP version 13\n1..%d\n", unit.test_to_run_count());
	}

	void OnTestPartResult(const testing::TestPartResult &result) override
	{
		if (result.skipped()) {
			skip_reason_ = result.message();
			return;
		}
		if (result.failed())
			note(std::string(result.file_name() ? result.file_name() : "?") + ":" +
			     std::to_string(result.line_number()) + ": " + result.message());
	}

	void OnTestEnd(const testing::TestInfo &info) override
	{
		const testing::TestResult &result = *info.result();
		const std::string name = std::string(info.test_suite_name()) + "." + info.name();

		count_++;
		if (result.Skipped()) {
			std::string reason = skip_reason_.substr(0, skip_reason_.find('\n'));
			printf("ok %d %s # SKIP %s\n", count_, name.c_str(), reason.c_str());
		} else {
			printf("%s %d %s # %lld ms\n", result.Passed() ? "ok" : "not ok", count_,
			       name.c_str(), static_cast<long long>(result.elapsed_time()));
		}
		fflush(stdout);
	}

	static void note(const std::string &text)
	{
		fputs("# ", stdout);
		for (char c : text)
			fputs(c == '\n' ? "\n# " : std::string(1, c).c_str(), stdout);
		putchar('\n');
	}

	int count_ = 0;
	std::string skip_reason_;
};

[[noreturn]] void usage()
{
	fprintf(stderr,
		"usage: rc-test --dev A --gid-index I [--peer-dev B --peer-gid-index J] [--odp] [--gtest_filter=F]\n"
		"       rc-test --dev A --gid-index I --hold ADDRESS QPN PSN [OWN-PSN [rc|uc|ud]]\n"
		"       rc-test --dev A --gid-index I --group ADDRESS receive N | send\n");
	exit(2);
}

} // namespace

namespace verbs {

int patience()
{
	const char *scale = getenv("time_scale"), *seconds = getenv("rc_test_patience");

	return (seconds ? atoi(seconds) : default_patience) *
	       (scale ? std::max(1, atoi(scale)) : 1);
}

bool slow()
{
	const char *scale = getenv("time_scale");

	return scale && atoi(scale) > 1;
}

bool on_demand()
{
	return odp;
}

Device &device_a()
{
	return *dev_a;
}

Device &device_b()
{
	return dev_b ? *dev_b : *dev_a;
}

} // namespace verbs

int main(int argc, char **argv)
{
	std::string dev, peer;
	int gid_index = -1, peer_gid_index = -1;

	testing::InitGoogleTest(&argc, argv);
	for (int i = 1; i < argc; i++) {
		std::string arg = argv[i];

		if (arg == "--odp") {
			odp = true;
			continue;
		}
		if (i + 1 >= argc)
			usage();
		if (arg == "--dev") {
			dev = argv[++i];
		} else if (arg == "--gid-index") {
			gid_index = atoi(argv[++i]);
		} else if (arg == "--peer-dev") {
			peer = argv[++i];
		} else if (arg == "--peer-gid-index") {
			peer_gid_index = atoi(argv[++i]);
		} else if (arg == "--hold") {
			dev_a = std::make_unique<verbs::Device>(dev, gid_index);
			return hold_main(argc - i - 1, argv + i + 1);
		} else if (arg == "--group") {
			dev_a = std::make_unique<verbs::Device>(dev, gid_index);
			return group_main(argc - i - 1, argv + i + 1);
		} else {
			usage();
		}
	}
	if (dev.empty() || gid_index < 0 || (!peer.empty() && peer_gid_index < 0))
		usage();
	dev_a = std::make_unique<verbs::Device>(dev, gid_index);
	if (!peer.empty())
		dev_b = std::make_unique<verbs::Device>(peer, peer_gid_index);

	testing::TestEventListeners &listeners = testing::UnitTest::GetInstance()->listeners();
	delete listeners.Release(listeners.default_result_printer());
	listeners.Append(new Tap);
	int rc = RUN_ALL_TESTS();
	const testing::UnitTest &unit = *testing::UnitTest::GetInstance();
	if (!rc && unit.skipped_test_count() == unit.test_to_run_count())
		rc = 4;
	dev_b.reset();
	dev_a.reset();
	return rc;
}
