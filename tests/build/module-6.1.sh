#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module builds for the distribution's own kernel, W=1, without warnings.
. "${0%/*}/lib.sh"

release=$(tests/vm/stock-release) || ktap_skip_all "linux-image-amd64 is not installed"
check_module "/lib/modules/$release/build"

ktap_finish
