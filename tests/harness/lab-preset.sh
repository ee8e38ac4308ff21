#!/bin/bash
# SPDX-License-Identifier: MIT
# The preset for a lab machine configures, and has the tests that the one for guests has.
. "$(dirname "$0")/common.sh"

run 0 cmake -S "$ROOT" -B "$WORK/lab" -G Ninja -DSLICE_EXT_PLACE=lab
run 0 ctest --test-dir "$WORK/lab" -N
for name in lab.offers abi.protocol kernel.grant kernel.bound kernel.stress kernel.gain latency.t1; do
	prints ": $name\$"
done
if grep -q -E ': [a-z_.]+\.vm(-rt|-off)?$' "$OUT"; then fail "tests of a lab machine boot guests"; fi
