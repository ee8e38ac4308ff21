#!/bin/bash
# SPDX-License-Identifier: MIT
# Two deterministic runs are the same bit for bit: latencies, interrupts, random numbers, time.
. "$(dirname "$0")/common.sh"
need_kernel vm

measure='
	cyclictest -q -t1 -p95 -i 997 -l 300 -h 50
	head -c 64 /dev/urandom | od -x
	cat /proc/interrupts /proc/uptime /proc/self/maps
	date +%s'
for attempt in 1 2; do
	run 0 "$SCRIPTS/vm" --kernel vm --deterministic --programs "$WORK/no-programs" -- sh -c "$measure"
	cp "$OUT" "$WORK/run$attempt"
done
cmp "$WORK/run1" "$WORK/run2" || {
	diff "$WORK/run1" "$WORK/run2" || true
	fail "two runs differ"
}
OUT=$WORK/run1
prints '^# Histogram'
prints '^# Max Latencies: 000'
