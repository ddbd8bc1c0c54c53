#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Does not end, nor does its child on being asked.
(trap '' TERM; sleep 1000) &
sleep 1000
