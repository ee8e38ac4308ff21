#!/bin/bash
# SPDX-License-Identifier: MIT
# A guest command's own status and output come through.
. "$(dirname "$0")/common.sh"
need_kernel vm

run 0 vm -- true
[ ! -s "$OUT" ] || fail "output of a command that prints nothing"

for status in 1 42 77; do
	run "$status" vm -- sh -c "exit $status"
	says "ended with status $status"
done

run 127 vm -- no-such-program

# Status and console do not mix with what the command prints, whatever it prints.
run 3 vm -- sh -c 'echo 0; echo 0 >&2; exit 3'
prints '^0$'
