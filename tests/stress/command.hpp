// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Single uverbs commands, write() and ioctl(), with everything in them as the test wants it: handles,
// driver data of any length, answers to anywhere.
#ifndef TESTS_COMMAND_HPP
#define TESTS_COMMAND_HPP

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace raw {

// What nobody writes into answers: to see which bytes the kernel did.
constexpr uint8_t kUntouched = 0xa5;

// A write() command. @core is the core's structure, beginning with the address of the answer if
// @core_out, the length of the core's answer, is not 0.
class Command {
public:
	template <typename Core>
	Command(uint32_t number, const Core &core, size_t core_out = 0, size_t driver_out = 0)
	    : number_(number), core_out_(core_out), driver_out(driver_out)
	{
		in_.resize(sizeof(core));
		memcpy(in_.data(), &core, sizeof(core));
	}

	Command &data(const void *bytes, size_t length)
	{
		driver_in.assign(static_cast<const uint8_t *>(bytes),
				 static_cast<const uint8_t *>(bytes) + length);
		return *this;
	}
	// Another value at a place in the core's structure
	template <typename T>
	Command &set(size_t offset, T value)
	{
		memcpy(in_.data() + offset, &value, sizeof(value));
		return *this;
	}
	int send(int fd); // errno

	size_t room() const // for the answer
	{
		return core_out_ + driver_out;
	}
	// Of the answer, after send()
	uint32_t handle() const
	{
		return at<uint32_t>(0);
	}
	template <typename T>
	T at(size_t offset) const
	{
		T value = {};

		memcpy(&value, out_.data() + offset, sizeof(value));
		return value;
	}
	template <typename T>
	T driver() const
	{
		return at<T>(core_out_);
	}
	// Bytes of the answer, from @offset of the driver's part on, that were written
	size_t written_from(size_t offset) const;

private:
	uint32_t number_;
	size_t core_out_;
	std::vector<uint8_t> in_, out_;

public:
	size_t driver_out; // room for the driver's answer
	std::vector<uint8_t> driver_in;
	uint64_t answer_to = 0; // not 0: another address than that of room for it
};

// An ioctl() method of a uverbs object.
class Method {
public:
	Method(uint16_t object, uint16_t method) : object_(object), method_(method) {}

	Method &handle(uint16_t id, uint32_t value)
	{
		return attr(id, value, 0);
	}
	Method &in(uint16_t id, const void *data, uint16_t length)
	{
		uint64_t value = 0;

		// what fits travels in place
		if (length <= sizeof(value))
			memcpy(&value, data, length);
		else
			value = reinterpret_cast<uintptr_t>(data);
		return attr(id, value, length);
	}
	template <typename T>
	Method &in(uint16_t id, const T &value)
	{
		return in(id, &value, sizeof(value));
	}
	Method &out(uint16_t id, void *data, uint16_t length)
	{
		return attr(id, reinterpret_cast<uintptr_t>(data), length);
	}
	Method &attr(uint16_t id, uint64_t value, uint16_t length);
	// errno. The first attribute comes back with a new object's handle, to *@first.
	int send(int fd, uint32_t *first = nullptr);

private:
	uint16_t object_, method_;
	std::vector<ib_uverbs_attr> attrs_;
};

// A uverbs file of the device of @context with nothing in it, not even a context; closed with the
// object.
class File {
public:
	explicit File(const char *ibdev);
	File(const File &) = delete;
	~File();

	int get_context(); // errno

	int fd = -1, async_fd = -1;
};

} // namespace raw

#endif
