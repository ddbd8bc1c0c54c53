#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One check of two fails.
. "${0%/*}/../../lib/ktap.sh"
check_eq "two" 2 2
check_eq "three" 3 4
ktap_finish
