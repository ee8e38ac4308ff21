#!/bin/bash
# SPDX-License-Identifier: MIT
#
# latency-stopped PROGRAMS
#
# However scripts/latency is ended, its guests end with it.
. "$(dirname "$0")/common.sh"
need_kernel vm vm-unpatched
programs=$1

guests() { pgrep -f -- "--results $WORK/out/run" | wc -l; }
for signal in TERM HUP INT KILL; do
	# As from a shell with job control: in a group of its own, with its signals not ignored.
	(set -m; exec "$SCRIPTS/latency" t2 --no-build --model preempt --programs "$programs" \
		--output "$WORK/out" >"$OUT" 2>"$ERR") &
	latency=$!
	for _ in $(seq 100); do
		[ "$(guests)" -lt 2 ] || break
		sleep 0.2
	done
	[ "$(guests)" -ge 2 ] || fail "no guests were started"
	kill "-$signal" "$latency"
	for _ in $(seq 100); do
		[ "$(guests)" -gt 0 ] || break
		# A shell started in the background ignores SIGINT.
		[ "$signal" != INT ] || kill -TERM "$latency" 2>/dev/null || true
		sleep 0.2
	done
	[ "$(guests)" -eq 0 ] || fail "guests went on after SIG$signal: $(pgrep -a -f -- "--results $WORK/out/run")"
	wait "$latency" 2>/dev/null || true
done
