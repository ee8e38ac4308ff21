#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016
# What the guest prints arrives byte for byte; arguments and variables reach it as given.
. "$(dirname "$0")/common.sh"
need_kernel vm

run 0 vm --env 'GREETING=it'\''s "a" $HOME' --env EMPTY= -- \
	sh -c 'printf "%s|" "$GREETING" "${EMPTY-unset}" "$@"' name 'two words' "it's" '"$x"' '' 'back\slash'
printf '%s|' 'it'\''s "a" $HOME' '' 'two words' "it's" '"$x"' '' 'back\slash' >"$WORK/wanted"
cmp "$OUT" "$WORK/wanted" || fail "arguments or variables were changed on the way"

# Every byte value, both kinds of line end, no newline at the end, and more than any buffer.
run 0 vm -- sh -c '
	for high in 0 1 2 3; do for middle in 0 1 2 3 4 5 6 7; do for low in 0 1 2 3 4 5 6 7; do
		printf "\\$high$middle$low"
	done; done; done
	printf "unix\ndos\r\n"
	seq 1 30000
	printf end'
{
	for ((byte = 0; byte < 256; byte++)); do printf '%b' "\\$(printf '%04o' "$byte")"; done
	printf 'unix\ndos\r\n'
	seq 1 30000
	printf end
} >"$WORK/wanted"
cmp "$OUT" "$WORK/wanted" || fail "output was changed on the way"

# Output is passed on as it comes: this guest never ends by itself.
mkfifo "$WORK/pipe"
"$SCRIPTS/vm" --kernel vm --smp 1 --timeout 150 --programs "$WORK/no-programs" -- \
	sh -c 'echo first; sleep 1000' >"$WORK/pipe" 2>/dev/null &
read -r -t 140 line <"$WORK/pipe" || fail "nothing was passed on while the guest ran"
kill $!
wait $! || true
[ "$line" = first ] || fail "got '$line' instead of 'first'"
