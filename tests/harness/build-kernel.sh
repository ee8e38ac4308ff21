#!/bin/bash
# SPDX-License-Identifier: MIT
# build-kernel.sh again|pristine
# The second call takes seconds; what cannot be built says why.
. "$(dirname "$0")/common.sh"
build=$SCRIPTS/build-kernel
need_kernel vm vm-rt vm-off

case $1 in
again)
	for config in vm vm-rt vm-off; do
		image=$CACHE/kernels/6.12/$config/bzImage
		before=$(stat -c '%y %i' "$image")
		SECONDS=0
		run 0 "$build" --config "$config"
		[ "$SECONDS" -le 15 ] || fail "a call with nothing to do took $SECONDS s"
		[ "$(tail -n1 "$OUT")" = "$image" ] || fail "the last line is not the path of the image"
		[ "$(stat -c '%y %i' "$image")" = "$before" ] || fail "built again"
		[ -s "${image%/*}/System.map" ] || fail "no System.map beside the image"
		[ -s "${image%/*}/config" ] || fail "no configuration beside the image"
	done
	;;
pristine)
	# The tree that fetch-kernel gives is as it was unpacked.
	run 0 "$SCRIPTS/apply-series" --check "$(pristine)"
	says 'apply to'
	;;
*) fail "no case $1" ;;
esac
