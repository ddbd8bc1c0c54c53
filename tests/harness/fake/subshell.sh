#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A check behind a pipe fails.
. "${0%/*}/../../lib/ktap.sh"
ktap_pass "always"
echo | check_eq "three" 3 4
ktap_finish
