# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# For the tests of the scripts. Sourced. A test ends at the first thing that is not as it
# should be, with the output of the last command it ran.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034
SCRIPTS=$ROOT/scripts
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/slice-ext
WORK=$(mktemp -d)
OUT=$WORK/.out
ERR=$WORK/.err
trap 'rm -rf "$WORK"' EXIT

fail() {
	printf 'FAILED: %s\n' "$*"
	for file in "$OUT" "$ERR"; do
		[ ! -s "$file" ] || { printf -- '--- %s\n' "${file##*/.}" && tail -n 60 "$file"; }
	done
	exit 1
}

# run STATUS COMMAND...: COMMAND must end with STATUS. Its output is in $OUT and $ERR.
run() {
	local wanted=$1 status=0
	shift
	"$@" >"$OUT" 2>"$ERR" </dev/null || status=$?
	[ "$status" -eq "$wanted" ] || fail "status $status instead of $wanted from: $*"
}

# says REGEX: the last command's standard error has a line that matches.
says() { grep -q -E -- "$1" "$ERR" || fail "standard error does not say: $1"; }

# prints REGEX: the same for standard output.
prints() { grep -q -E -- "$1" "$OUT" || fail "standard output does not have: $1"; }

# vm ARGUMENT...: scripts/vm with the kernel of the suite and the smallest guest.
vm() { "$SCRIPTS/vm" --kernel vm --smp 1 --timeout 120 --programs "$WORK/no-programs" "$@"; }

# A kernel that scripts/test has not built is a failure, not a reason to skip.
need_kernel() {
	local config
	for config in "$@"; do
		[ -f "$CACHE/kernels/6.12/$config/bzImage" ] ||
			fail "no kernel $config: run scripts/build-kernel --config $config"
	done
}

# pristine: path of the kernel source that the suite builds from.
pristine() { "$SCRIPTS/fetch-kernel" 6.12 2>/dev/null | tail -n1; }
