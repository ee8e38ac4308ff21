#!/bin/bash
# SPDX-License-Identifier: MIT
# vm-boots.sh CONFIG
# shellcheck disable=SC2016
# Each kernel is the one its name says, has the processors it was given, and what the tests of
# the feature stand on.
. "$(dirname "$0")/common.sh"
need_kernel "$1"

run 0 "$SCRIPTS/vm" --kernel "$1" --smp 2 --timeout 120 --programs "$WORK/no-programs" -- sh -c '
	uname -r -v
	echo "processors $(nproc)"
	grep -m1 resolution: /proc/timer_list
	grep "hres_active" /proc/timer_list
	cat /sys/fs/cgroup/cgroup.controllers
	test -d /sys/kernel/tracing/events/sched && echo "events"
	test -d /sys/kernel/debug/sched && echo "scheduler debugfs"
	test -e /proc/preempt_delay && echo "the feature"
	ping -c 1 127.0.0.1
	exit 0'
prints "^6\.12\..*-slice-ext-$1 "
case $1 in
vm-rt) prints 'PREEMPT_RT' ;;
*) prints ' PREEMPT ' ;;
esac
prints '^processors 2$'
prints 'hres_active *: 1$'
! grep -q 'hres_active *: 0$' "$OUT" || fail "a processor without high-resolution timers"
prints '(^| )cpu( |$)'
prints '^events$'
prints '^scheduler debugfs$'
prints ' 0% packet loss'
case $1 in
vm-off) ! grep -q '^the feature$' "$OUT" || fail "vm-off has the feature" ;;
*) prints '^the feature$' ;;
esac

# Pairs of threads, as asked for.
run 0 "$SCRIPTS/vm" --kernel "$1" --programs "$WORK/no-programs" --smp 2 --smt -- cat /sys/devices/system/cpu/smt/active
prints '^1$'
run 0 "$SCRIPTS/vm" --kernel "$1" --programs "$WORK/no-programs" --smp 2 -- cat /sys/devices/system/cpu/smt/active
prints '^0$'
