#!/bin/bash
# SPDX-License-Identifier: MIT
# The front door of the laboratory says what is wrong before it does anything.
. "$(dirname "$0")/common.sh"
latency=$SCRIPTS/latency

run 0 "$latency" --list
prints '^t1 '
prints '^phase '
run 0 "$latency" --help
run 2 "$latency"
says 'which experiments'
run 2 "$latency" t9
says 'no experiment t9; there are t1 t2 t6 phase'
run 2 "$latency" t1 --model fast
says 'preempt, rt or all'
run 2 "$latency" t1 --output
says 'needs a value'
run 2 "$latency" t1 --host --twice
says 'virtual time'
run 1 "$latency" t1 --no-build --programs "$WORK/nothing" --output "$WORK/out"
says 'leave --no-build out'
