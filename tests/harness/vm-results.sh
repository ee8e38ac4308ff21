#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016
# What the job leaves in /results arrives whole, also from a job that fails, and from a guest that
# is lost nothing does. Files taken in with --add are where they were.
. "$(dirname "$0")/common.sh"
need_kernel vm

seq 1 50000 >"$WORK/wanted"
run 7 vm --results "$WORK/results" -- sh -c \
	'seq 1 50000 >/results/numbers; mkdir "/results/a b"; echo x >"/results/a b/c"; exit 7'
cmp "$WORK/results/numbers" "$WORK/wanted" || fail "a result was changed on the way"
[ "$(cat "$WORK/results/a b/c")" = x ] || fail "a directory was lost"
# What was there under the same name gives way.
run 0 vm --results "$WORK/results" -- sh -c 'mkdir /results/numbers && echo y >/results/numbers/.hidden'
[ "$(cat "$WORK/results/numbers/.hidden")" = y ] || fail "a result did not replace an older one"
[ -z "$(find "$WORK/results" -name '.new*')" ] || fail "something half unpacked was left"

run 125 vm --results "$WORK/lost" -- sh -c 'echo x >/results/x; echo c >/proc/sysrq-trigger; sleep 100'
[ ! -e "$WORK/lost/x" ] || fail "a result came from a guest that was lost"

# Not a results run: there is no such directory.
run 0 vm -- sh -c '[ ! -e /results ]'

mkdir -p "$WORK/in/deep"
echo text >"$WORK/in/deep/file"
run 0 vm --add "$WORK/in" --add "$(command -v sha256sum)" -- sh -c "cat $WORK/in/deep/file"
prints '^text$'
run 2 vm --add "$WORK/nothing" -- true
says 'no .*nothing'

# What goes wrong on the host is no result of the command.
run 125 vm --log "$WORK/no/such/log" -- true
says 'cannot be written'
run 125 "$SCRIPTS/vm" --kernel vm-nothing -- true
says 'build-kernel --help'
run 125 "$SCRIPTS/vm" --kernel 6.18/vm-rt-unpatched -- true
says 'build-kernel --config vm-rt --unpatched --version 6.18'
