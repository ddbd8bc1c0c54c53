// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef TESTS_HOLD_HPP
#define TESTS_HOLD_HPP

// The mode --hold; argv: ADDRESS QPN PSN [OWN-PSN [rc|uc|ud]]. See README.md.
int hold_main(int argc, char **argv);

#endif
