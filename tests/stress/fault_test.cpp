// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Page faults of on-demand regions that nobody answers: one process' hold up no other process.
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "transfer.hpp"

namespace verbs {
namespace {

constexpr size_t kPage = 4096;
// More faults than a workqueue of the kernel has under way on two CPUs (2 * 256)
constexpr unsigned kFaults = 560;

// A file system with one file, of kFaults pages, which cannot be read: it never answers.
class SilentFile {
public:
	SilentFile()
	{
		char options[80];

		fd_ = open("/dev/fuse", O_RDWR | O_CLOEXEC);
		if (fd_ < 0 || !mkdtemp(folder_))
			return;
		snprintf(options, sizeof(options),
			 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd_);
		if (mount("silent", folder_, "fuse", MS_NOSUID | MS_NODEV, options))
			return;
		server_ = std::thread([this] { serve(); });
		mounted_ = true;
	}
	~SilentFile()
	{
		end();
		if (fd_ >= 0)
			close(fd_);
		rmdir(folder_);
	}
	SilentFile(const SilentFile &) = delete;

	bool mounted() const
	{
		return mounted_;
	}
	std::string path() const
	{
		return std::string(folder_) + "/file";
	}
	// Somebody waits for it, or soon does.
	void expect_read()
	{
		auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience());

		while (!reads && std::chrono::steady_clock::now() < end)
			usleep(1000);
		EXPECT_GT(reads, 0u) << "nothing waits for the file";
	}
	// Whoever waits for it gets an error.
	void end()
	{
		if (mounted_)
			umount2(folder_, MNT_FORCE | MNT_DETACH);
		if (server_.joinable())
			server_.join();
		mounted_ = false;
	}

	std::atomic<unsigned> reads{0};

private:
	void serve()
	{
		static char request[1 << 18];
		auto header = reinterpret_cast<const fuse_in_header *>(request);

		for (;;) {
			ssize_t n = read(fd_, request, sizeof(request));

			if (n > 0)
				answer(*header);
			else if (errno == ENODEV) // unmounted
				return;
		}
	}

	void answer(const fuse_in_header &in)
	{
		struct {
			fuse_out_header header;
			union {
				fuse_init_out init;
				fuse_entry_out entry;
				fuse_attr_out attr;
				fuse_open_out open;
			};
		} out = {};
		fuse_attr attr = {};
		size_t length = 0;

		attr.ino = in.opcode == FUSE_LOOKUP ? 2 : in.nodeid;
		attr.mode = attr.ino == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
		attr.size = kFaults * kPage;
		attr.nlink = 1;
		switch (in.opcode) {
		case FUSE_INIT:
			out.init.major = FUSE_KERNEL_VERSION;
			out.init.minor = 31;
			out.init.max_write = kPage; // and no reading ahead
			length = sizeof(out.init);
			break;
		case FUSE_LOOKUP:
			out.entry.nodeid = 2;
			out.entry.attr_valid = out.entry.entry_valid = 1000; // seconds
			out.entry.attr = attr;
			length = sizeof(out.entry);
			break;
		case FUSE_GETATTR:
			out.attr.attr_valid = 1000;
			out.attr.attr = attr;
			length = sizeof(out.attr);
			break;
		case FUSE_OPEN:
			length = sizeof(out.open);
			break;
		case FUSE_READ:
			reads++;
			return;
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			return;
		case FUSE_FLUSH:
		case FUSE_RELEASE:
			break;
		default:
			out.header.error = -ENOSYS;
		}
		out.header.unique = in.unique;
		out.header.len = sizeof(out.header) + length;
		if (write(fd_, &out, out.header.len) < 0)
			perror("fuse");
	}

	char folder_[20] = "/tmp/silentXXXXXX";
	bool mounted_ = false;
	int fd_ = -1;
	std::thread server_;
};

void run_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % std::thread::hardware_concurrency(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

// All of the file
uint8_t *map_file(const std::string &path)
{
	int fd = open(path.c_str(), O_RDONLY);

	return static_cast<uint8_t *>(
		mmap(nullptr, kFaults * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
}

// A context of this process' own
Device own_device()
{
	return Device(ibv_get_device_name(device_a().get()->device), device_a().gid_index);
}

// A fault for each of @count QPs, from every CPU
void fault_often(const std::string &path, unsigned count)
{
	// never freed: the kernel holds this process' mmap_lock once a fault is under way
	auto &dev = *new Device(own_device());
	auto &ends = *new std::vector<std::unique_ptr<Endpoint>>;
	auto &targets = *new std::vector<std::unique_ptr<Memory>>;
	uint8_t *data = map_file(path);
	const Path way;

	for (unsigned i = 0; i < count; i++) {
		run_on(i);
		ends.push_back(std::make_unique<Endpoint>(dev));
		ends[i]->to_init();
		ends[i]->to_rtr(*ends[i], way, way.psn_a);
		ends[i]->to_rts(way, way.psn_a);
	}
	auto &posts = *new std::vector<SendWr>;
	for (unsigned i = 0; i < count; i++) {
		ibv_mr *mr = check(
			ibv_reg_mr(ends[i]->pd.get(), data, kFaults * kPage, IBV_ACCESS_ON_DEMAND),
			"reg_mr");
		ibv_sge sge = {reinterpret_cast<uintptr_t>(data) + i * kPage, 8, mr->lkey};

		targets.push_back(std::make_unique<Memory>(ends[i]->pd.get(), kPage));
		posts.emplace_back(IBV_WR_RDMA_WRITE, i, std::vector<ibv_sge>{sge});
		posts[i].remote(targets[i]->addr(), targets[i]->rkey());
	}
	for (unsigned i = 0; i < count; i++) {
		run_on(i);
		ends[i]->post(posts[i]);
	}
}

void become_nobody()
{
	const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	check(setrlimit(RLIMIT_MEMLOCK, &unlimited), "setrlimit");
	check(setuid(65534), "setuid");
}

// The same by a user who has taken first whatever there is to wait in.
void fault_often_and_hoard(const std::string &path, unsigned count)
{
	become_nobody();
	for (int i = 0; i < 600; i++)
		open_xrcd(device_a().get());
	fault_often(path, count);
}

// Messages to memory that never comes, of more packets than may wait for QPs of a device.
void fill_queues(const std::string &path)
{
	constexpr int kContexts = 6, kPairs = 12;
	constexpr uint32_t kLength = 511 * kPage;
	become_nobody();
	uint8_t *data = map_file(path);
	auto &posts = *new std::vector<std::pair<Endpoint *, SendWr>>; // as above
	QpConfig config;
	Path way;

	config.type = IBV_QPT_UC;
	way.mtu = mtu_at_most(IBV_MTU_4096);
	for (int c = 0; c < kContexts; c++) {
		auto &dev = *new Device(own_device());

		for (int i = 0; i < kPairs; i++) {
			auto &from = *new Endpoint(dev, config), &to = *new Endpoint(dev, config);
			auto &source = *new Memory(from.pd.get(), kLength);
			ibv_mr *mr = check(ibv_reg_mr(to.pd.get(), data, kLength,
						      kAllAccess | IBV_ACCESS_ON_DEMAND),
					   "reg_mr");

			from.to_init();
			to.to_init();
			from.to_rtr(to, way, way.psn_b);
			to.to_rtr(from, way, way.psn_a);
			from.to_rts(way, way.psn_a);
			posts.emplace_back(
				&from,
				SendWr(IBV_WR_RDMA_WRITE, i, {source.sge(0, kLength)})
					.remote(reinterpret_cast<uintptr_t>(data), mr->rkey));
		}
	}
	for (auto &[from, wr] : posts)
		from->post(wr);
	for (auto &[from, wr] : posts)
		expect_wc(from->wait_send(), wr.wr.wr_id);
}

// A process that does @what, and is there until this goes. Its end, too, waits for the file's.
class Hostile {
public:
	explicit Hostile(const std::function<void(const std::string &path)> &what)
	{
		int ready[2];
		char byte;

		check(pipe(ready), "pipe");
		pid_ = fork();
		check(pid_ < 0 ? -1 : 0, "fork");
		if (!pid_) {
			close(ready[0]);
			try {
				what(file.path());
				if (!testing::Test::HasFailure() && write(ready[1], "", 1) == 1)
					pause();
			} catch (const std::exception &e) {
				fprintf(stderr, "hostile: %s\n", e.what());
			}
			_exit(1);
		}
		close(ready[1]);
		EXPECT_EQ(read(ready[0], &byte, 1), 1) << "the hostile process died";
		close(ready[0]);

		file.expect_read();
	}
	~Hostile()
	{
		kill(pid_, SIGKILL);
		file.end();
		waitpid(pid_, nullptr, 0);
	}
	Hostile(const Hostile &) = delete;

	SilentFile file;

private:
	pid_t pid_;
};

class Fault : public testing::Test {
protected:
	void SetUp() override
	{
		ibv_device_attr_ex caps = {};

		if (!SilentFile().mounted())
			GTEST_SKIP() << "no FUSE: modprobe fuse";
		ASSERT_EQ(ibv_query_device_ex(device_a().get(), nullptr, &caps), 0);
		if (!(caps.odp_caps.general_caps & IBV_ODP_SUPPORT))
			GTEST_SKIP() << "no on-demand paging";
	}
};

// The device cannot go before the fault is over: moves.sh says when.
TEST_F(Fault, EndsWhenTold)
{
	const char *ready = getenv("stress_ready");

	if (!ready)
		GTEST_SKIP() << "moves.sh runs this";
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6 * patience());
	const std::string told = std::string(ready) + ".end";
	Hostile process([](auto &path) { fault_often(path, 1); });
	FILE *f = fopen(ready, "w");

	ASSERT_TRUE(f);
	fclose(f);
	while (access(told.c_str(), F_OK)) {
		usleep(10000);
		ASSERT_LT(std::chrono::steady_clock::now(), end) << "nobody made " << told;
	}
}

// A forked process registers memory of the file for a QP of this one, for whoever writes there to
// wait for. The region is this process' as well.
class SilentTarget {
public:
	explicit SilentTarget(ibv_pd *pd)
	{
		uint32_t handle = 0;
		int ready[2];

		check(pipe(ready), "pipe");
		pid_ = fork();
		check(pid_ < 0 ? -1 : 0, "fork");
		if (!pid_) {
			int fd = open(file.path().c_str(), O_RDONLY);
			void *data =
				mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
			ibv_mr *mr = ibv_reg_mr(pd, data, kPage, kAllAccess | IBV_ACCESS_ON_DEMAND);

			if (mr && write(ready[1], &data, sizeof(data)) == sizeof(data) &&
			    write(ready[1], &mr->rkey, sizeof(mr->rkey)) == sizeof(mr->rkey) &&
			    write(ready[1], &mr->handle, sizeof(handle)) == sizeof(handle))
				pause();
			_exit(1);
		}
		close(ready[1]);
		EXPECT_EQ(read(ready[0], &addr, sizeof(addr)), ssize_t{sizeof(addr)});
		EXPECT_EQ(read(ready[0], &rkey, sizeof(rkey)), ssize_t{sizeof(rkey)});
		EXPECT_EQ(read(ready[0], &handle, sizeof(handle)), ssize_t{sizeof(handle)});
		close(ready[0]);
		mr_ = check(ibv_import_mr(pd, handle), "import_mr");
	}
	~SilentTarget()
	{
		file.end();
		kill(pid_, SIGKILL);
		waitpid(pid_, nullptr, 0);
		EXPECT_EQ(ibv_dereg_mr(mr_), 0);
	}
	SilentTarget(const SilentTarget &) = delete;

	SilentFile file;
	uint64_t addr = 0;
	uint32_t rkey = 0;

private:
	pid_t pid_;
	ibv_mr *mr_;
};

// Whoever is acknowledged is told that nobody answers; whoever is not has sent.
TEST_F(Fault, SenderGivesUp)
{
	for (ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
		SCOPED_TRACE(type);
		QpConfig config;
		Path way;

		config.type = type;
		way.timeout = 12; // 17 ms
		Pair pair(config, way);
		Memory from(pair.a.pd.get(), kPage);
		SilentTarget target(pair.b.pd.get());

		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, 1, {from.sge(0, 8)})
				    .remote(target.addr, target.rkey));
		expect_wc(pair.a.wait_send(), 1,
			  type == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
		target.file.expect_read();
	}
}

// Somebody else's faults, in a context that is newer than all others, on each CPU
void expect_served()
{
	Device dev = own_device();
	{
		Endpoint from(dev), to(device_b());
		const Path way;
		const size_t size = 16 * kPage;
		auto data = static_cast<uint8_t *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
							MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		Mr mr(check(
			ibv_reg_mr(from.pd.get(), data, size, kAllAccess | IBV_ACCESS_ON_DEMAND),
			"reg_mr"));
		Memory target(to.pd.get(), size);

		from.to_init();
		to.to_init();
		from.to_rtr(to, way, way.psn_b);
		to.to_rtr(from, way, way.psn_a);
		from.to_rts(way, way.psn_a);
		for (unsigned i = 0; i < 4; i++) {
			run_on(i);
			madvise(data, size, MADV_DONTNEED);
			from.post(SendWr(IBV_WR_RDMA_WRITE, i,
					 {{reinterpret_cast<uintptr_t>(data), size, mr->lkey}})
					  .remote(target.addr(), target.rkey()));
			expect_wc(from.wait_send(), i);
		}
		mr.reset();
		munmap(data, size);
	}
}

TEST_F(Fault, UnansweredHoldsUpNobodyElse)
{
	Hostile process([](auto &path) { fault_often(path, kFaults); });

	expect_served();
}

class FaultUser : public Fault {};

// As many XRC domains as one likes, each of which has faults of its own to wait for
TEST_F(FaultUser, HoldsUpNoOther)
{
	Hostile process([](auto &path) { fault_often_and_hoard(path, kFaults); });

	expect_served();
}

class FaultPackets : public Fault {};

// What waits for one process leaves room for what waits for another: all of it is there when the
// memory is.
TEST_F(FaultPackets, RoomIsLeft)
{
	constexpr uint32_t kSize = 16 * kPage;
	CounterDelta full(device_a(), "drop_queue_full");
	Hostile process(fill_queues);

	EXPECT_GT(full.moved(), 0u) << "there was room for all of it";
	Path way;
	way.mtu = mtu_at_most(IBV_MTU_4096);
	way.timeout = 20; // 4 s: nothing is sent again for being slow
	Pair pair({}, way);
	Memory source(pair.a.pd.get(), kSize);
	auto data = static_cast<uint8_t *>(
		mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	Mr mr(check(ibv_reg_mr(pair.b.pd.get(), data, kSize, kAllAccess | IBV_ACCESS_ON_DEMAND),
		    "reg_mr"));
	CounterDelta lost(device_b(), "out_of_sequence"),
		timeouts(device_a(), "local_ack_timeout_err");

	for (int round = 0; round < 8; round++) {
		memset(source.data(), round + 1, kSize);
		madvise(data, kSize, MADV_DONTNEED);
		pair.a.post(SendWr(IBV_WR_RDMA_WRITE, round, {source.sge(0, kSize)})
				    .remote(reinterpret_cast<uintptr_t>(data), mr->rkey));
		expect_wc(pair.a.wait_send(), round);
		EXPECT_EQ(memcmp(source.data(), data, kSize), 0);
	}
	EXPECT_EQ(lost.moved(), 0u);
	EXPECT_EQ(timeouts.moved(), 0u);
	mr.reset();
	munmap(data, kSize);
}

} // namespace
} // namespace verbs
