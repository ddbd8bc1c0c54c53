// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_GROUP_HPP
#define TESTS_GROUP_HPP

// The mode --group; argv: ADDRESS receive N | ADDRESS send. See README.md.
int group_main(int argc, char **argv);

#endif
