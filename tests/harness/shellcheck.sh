#!/bin/bash
# SPDX-License-Identifier: MIT
# Every shell script of the repository is clean.
. "$(dirname "$0")/common.sh"

mapfile -t scripts < <(
	find "$ROOT/scripts" "$ROOT/tests" "$ROOT/.ci" -type f -exec grep -l -I -m1 -E '^#!/bin/(ba)?sh|^# shellcheck shell' {} +
)
[ "${#scripts[@]}" -ge 20 ] || fail "only ${#scripts[@]} scripts found"
run 0 shellcheck -x -P SCRIPTDIR "${scripts[@]}"
