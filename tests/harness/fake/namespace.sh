#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Passes, but leaves a network namespace behind.
. "${0%/*}/../../lib/ktap.sh"
check "namespace" ip netns add left
ktap_finish
