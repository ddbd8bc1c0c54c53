#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Passes, after a program that took the VM down.
. "${0%/*}/../../lib/ktap.sh"
ktap_pass "always"
ktap_finish
