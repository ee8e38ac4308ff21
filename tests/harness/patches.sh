#!/bin/bash
# SPDX-License-Identifier: MIT
# The series passes its checks, and the checks find what is planted.
. "$(dirname "$0")/common.sh"

run 0 "$SCRIPTS/check-patches"

# A copy of the project, with something wrong in its series.
copy=$WORK/copy
mkdir "$copy"
cp -r "$ROOT/scripts" "$ROOT/patches" "$copy"
series=$copy/patches/v6.12
last=$(sed 's/#.*//; /^[[:space:]]*$/d' "$series/series" | tail -n1)

cp "$series/$last" "$series/9999-stray.patch"
run 1 "$copy/scripts/check-patches"
says '9999-stray.patch is not in series'
rm "$series/9999-stray.patch"

sed -i '/^Signed-off-by:/d' "$series/$last"
run 1 "$copy/scripts/check-patches"
says "$last: no Signed-off-by"
cp "$ROOT/patches/v6.12/$last" "$series/$last"

sed -i 's/^+bool preempt_delay_unguarded;$/& /' "$series/$last"
run 1 "$copy/scripts/check-patches"
says 'trailing whitespace'
