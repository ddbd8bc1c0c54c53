#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Takes the kernel down.
echo c >/proc/sysrq-trigger
sleep 10
