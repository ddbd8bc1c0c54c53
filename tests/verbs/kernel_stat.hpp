// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the kernel says of its memory and of this process' own.
#ifndef TESTS_KERNEL_STAT_HPP
#define TESTS_KERNEL_STAT_HPP

#include <fstream>
#include <initializer_list>
#include <string>

namespace verbs {

// Sum of the numbers behind @names in a file of "name number" lines.
inline long stat_sum(const char *path, std::initializer_list<const char *> names)
{
	std::ifstream file(path);
	std::string name, rest;
	long value, sum = 0;

	while (file >> name) {
		// a name may be followed by words
		if (file >> value) {
			for (const char *wanted : names)
				sum += name == wanted ? value : 0;
		}
		file.clear();
		std::getline(file, rest);
	}
	return sum;
}

// kB that the kernel has for itself
inline long kernel_memory()
{
	return stat_sum("/proc/meminfo", {"Slab:", "VmallocUsed:", "Percpu:", "PageTables:"});
}

// Pages of processes that have been pinned since the machine began, and given back
struct Pins {
	long taken, given;
};

inline Pins pins()
{
	// what CPUs have counted for themselves counts, too
	std::ofstream("/proc/sys/vm/stat_refresh") << 1;
	return {stat_sum("/proc/vmstat", {"nr_foll_pin_acquired"}),
		stat_sum("/proc/vmstat", {"nr_foll_pin_released"})};
}

// kB that this process has pinned for devices
inline long pinned_memory()
{
	return stat_sum("/proc/self/status", {"VmPin:"});
}

} // namespace verbs

#endif
