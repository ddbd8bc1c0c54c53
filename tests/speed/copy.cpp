// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What one copy costs here: MiB/s of copying SIZE bytes from one buffer to another, by the C library
// and by 64-bit string moves. The better one bounds what a device can do on one host.
//
// usage: copy-rate SIZE
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void by_words(char *to, const char *from, size_t size)
{
	size_t words = size / 8;

	asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

void by_library(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	asm volatile("" : : "r"(to) : "memory");
}

double rate(void (*copy)(char *, const char *, size_t), size_t size)
{
	std::vector<char> from(size, 1), to(size);
	const auto start = Clock::now();
	std::chrono::duration<double> took{};
	size_t copies = 0;

	while (took.count() < 0.3) {
		for (int i = 0; i < 16; i++)
			copy(to.data(), from.data(), size);
		copies += 16;
		took = Clock::now() - start;
	}
	return double(copies) * double(size) / took.count() / (1 << 20);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: copy-rate SIZE\n");
		return 2;
	}
	const size_t size = strtoul(argv[1], nullptr, 0) & ~size_t(7);

	printf("%.0f %.0f\n", rate(by_library, size), rate(by_words, size));
}
