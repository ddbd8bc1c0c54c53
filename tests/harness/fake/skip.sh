#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Has nothing to test.
. "${0%/*}/../../lib/ktap.sh"
ktap_skip_all "nothing to do"
