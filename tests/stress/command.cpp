// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "command.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include "raw.hpp"

namespace raw {

int Command::send(int fd)
{
	const size_t out_len = core_out_ + driver_out;
	std::vector<uint8_t> text(sizeof(ib_uverbs_cmd_hdr));

	out_.assign(out_len, kUntouched);
	if (core_out_) {
		uint64_t to = answer_to ? answer_to : reinterpret_cast<uintptr_t>(out_.data());

		memcpy(in_.data(), &to, sizeof(to));
	}
	text.insert(text.end(), in_.begin(), in_.end());
	text.insert(text.end(), driver_in.begin(), driver_in.end());
	ib_uverbs_cmd_hdr hdr = {number_, static_cast<uint16_t>(text.size() / 4),
				 static_cast<uint16_t>(out_len / 4)};
	memcpy(text.data(), &hdr, sizeof(hdr));
	return write(fd, text.data(), text.size()) == ssize_t(text.size()) ? 0 : errno;
}

size_t Command::written_from(size_t offset) const
{
	return std::count_if(out_.begin() + std::min(core_out_ + offset, out_.size()), out_.end(),
			     [](uint8_t byte) { return byte != kUntouched; });
}

Method &Method::attr(uint16_t id, uint64_t value, uint16_t length)
{
	ib_uverbs_attr attr = {};

	attr.attr_id = id;
	attr.len = length;
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	attr.data = value;
	attrs_.push_back(attr);
	return *this;
}

int Method::send(int fd, uint32_t *first)
{
	std::vector<uint64_t> space(
		(sizeof(ib_uverbs_ioctl_hdr) + attrs_.size() * sizeof(ib_uverbs_attr)) /
		sizeof(uint64_t));
	auto *hdr = reinterpret_cast<ib_uverbs_ioctl_hdr *>(space.data());

	hdr->length = space.size() * sizeof(uint64_t);
	hdr->object_id = object_;
	hdr->method_id = method_;
	hdr->num_attrs = attrs_.size();
	hdr->driver_id = UROCE_DRIVER_ID;
	std::copy(attrs_.begin(), attrs_.end(), hdr->attrs);
	int err = ioctl(fd, RDMA_VERBS_IOCTL, hdr) ? errno : 0;

	if (first)
		*first = hdr->attrs[0].data;
	return err;
}

// "uverbs0" of "uroce0"
static std::string uverbs_name(const char *ibdev)
{
	for (int i = 0; i < 256; i++) {
		std::string name = "uverbs" + std::to_string(i), found;
		std::ifstream file("/sys/class/infiniband_verbs/" + name + "/ibdev");

		if (file >> found && found == ibdev)
			return name;
	}
	return "none";
}

File::File(const char *ibdev)
{
	fd = open(("/dev/infiniband/" + uverbs_name(ibdev)).c_str(), O_RDWR | O_CLOEXEC);
	verbs::check(fd < 0 ? -1 : 0, "uverbs");
}

int File::get_context()
{
	uroce_alloc_ucontext_req req = {};
	Command command(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context(),
			sizeof(ib_uverbs_get_context_resp), sizeof(uroce_alloc_ucontext_resp));
	int err = command.data(&req, sizeof(req)).send(fd);

	if (!err)
		async_fd = command.at<ib_uverbs_get_context_resp>(0).async_fd;
	return err;
}

File::~File()
{
	if (async_fd >= 0)
		close(async_fd);
	close(fd);
}

} // namespace raw
