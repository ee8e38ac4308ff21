#!/bin/bash
# SPDX-License-Identifier: MIT
#
# lab-guest PROGRAMS
#
# The way of a lab machine, in a guest that takes its place: it has booted the patched kernel, and
# the tests of the preset lab run on it through ctest.
. "$(dirname "$0")/common.sh"
need_kernel vm

ctest=$(command -v ctest)
# shellcheck disable=SC2016
echo 'message("${CMAKE_ROOT}")' >"$WORK/root.cmake"
modules=$(cmake -P "$WORK/root.cmake" 2>&1)
[ -n "$modules" ] || fail "cmake does not say where it is"
lab=$WORK/lab
cmake -S "$ROOT" -B "$lab" -G Ninja -DSLICE_EXT_PLACE=lab -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$OUT" 2>&1 ||
	fail "the preset lab does not configure"
# The programs are the same in both presets, and the guest has them already.
rm -rf "${lab:?}/bin" "$lab/CMakeFiles"
ln -s /opt/slice-ext/bin "$lab/bin"

run 0 "$SCRIPTS/vm" --kernel vm --deterministic --timeout 500 --programs "$1" \
	--add "$lab" --add "$ctest" --add "$modules/Modules/CMake.cmake" \
	--add "$ROOT/tests/latency/on-this-machine" -- \
	"$ctest" --test-dir "$lab" --output-on-failure -V -R '^(latency\.(t1|t6|phase)|kernel\.grant|kernel\.deterministic|lab\.offers)'
prints 'Kernel:.*slice-ext|release.*slice-ext|6\.12.*slice-ext'
prints 'latency\.t1 .*Passed'
prints 'latency\.phase .*Passed'
prints 'kernel\.grant .*Passed'
prints '100% tests passed'
