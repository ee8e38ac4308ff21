#!/bin/bash
# SPDX-License-Identifier: MIT
# Wrong command lines end with 2 and say what is wrong; --help does not.
. "$(dirname "$0")/common.sh"

wrong() {
	local message=$1
	shift
	run 2 "$@"
	says "$message"
	[ ! -s "$OUT" ] || fail "an error on standard output"
}
wrong 'which --kernel' "$SCRIPTS/vm" -- true
wrong 'which CMD' "$SCRIPTS/vm" --kernel vm
wrong 'which CMD' "$SCRIPTS/vm" --kernel vm --
wrong 'unknown argument --nonsense' "$SCRIPTS/vm" --kernel vm --nonsense -- true
wrong 'unknown argument true' "$SCRIPTS/vm" --kernel vm true
wrong 'needs a value' "$SCRIPTS/vm" --kernel
wrong 'from 1 to 8' "$SCRIPTS/vm" --kernel vm --smp 9 -- true
wrong 'from 1 to 8' "$SCRIPTS/vm" --kernel vm --smp two -- true
wrong 'even number' "$SCRIPTS/vm" --kernel vm --smp 3 --smt -- true
wrong 'even number' "$SCRIPTS/vm" --kernel vm --deterministic --smt -- true
wrong 'one processor' "$SCRIPTS/vm" --kernel vm --deterministic --smp 2 -- true
wrong 'needs seconds' "$SCRIPTS/vm" --kernel vm --timeout 1.5 -- true
wrong 'NAME=VALUE' "$SCRIPTS/vm" --kernel vm --env 1=2 -- true
wrong 'which --config' "$SCRIPTS/build-kernel"
wrong 'no configuration nonsense' "$SCRIPTS/build-kernel" --config nonsense
wrong 'needs a value' "$SCRIPTS/build-kernel" --config
wrong 'needs a number' "$SCRIPTS/build-kernel" --config vm --jobs 0
wrong 'for --config host' "$SCRIPTS/build-kernel" --config vm --base /dev/null
wrong 'VERSION is' "$SCRIPTS/fetch-kernel"
wrong 'VERSION is' "$SCRIPTS/fetch-kernel" latest
wrong 'exclude each other' "$SCRIPTS/fetch-kernel" 6.12 --source "$WORK"
wrong 'which TREE' "$SCRIPTS/apply-series"
wrong 'not a kernel source tree' "$SCRIPTS/apply-series" "$WORK"
wrong 'unknown option' "$SCRIPTS/apply-series" --nonsense "$WORK"
wrong 'unknown argument' "$SCRIPTS/demo" nonsense
wrong 'needs a value' "$SCRIPTS/test" --source
wrong 'needs a value' "$SCRIPTS/torture" --kernel
wrong 'needs a number' "$SCRIPTS/torture" --minutes 0
wrong 'needs a number' "$SCRIPTS/torture" --fuzz --seed one
wrong 'unknown argument' "$SCRIPTS/torture" nonsense

run 1 "$SCRIPTS/fetch-kernel" --source "$WORK"
says 'not a kernel source tree'

for script in vm build-kernel fetch-kernel apply-series demo test; do
	run 0 "$SCRIPTS/$script" --help
	prints "^$script "
	prints '^Exit status'
done
