#!/bin/bash
# SPDX-License-Identifier: MIT
# An instruction more in any row and column is told, and so is a control that shows nothing.
. "$(dirname "$0")/common.sh"
judge=$ROOT/tests/kernel/unused-cost
columns="unpatched off boot-off on control"

# lengths COLUMN: as kernel-unused-cost prints them, three lengths of a way, where the kernel adds
# what it is allowed to.
lengths() {
	local way threads more n times
	for way in syscall interrupt resched yield block; do
		for threads in bare area user asking; do
			more=0
			case $1/$way/$threads in
			control/*) more=1000 ;;
			on/resched/bare | boot-off/resched/bare) more=2 ;;
			on/resched/user) more=30 ;;
			on/resched/asking) more=50 ;;
			esac
			for n in 3:9 10:90 40:6; do
				times=${n#*:}
				# Which length is the commonest is chance.
				[ "$1/$n" != "on/40:6" ] || times=200
				echo "$way $threads $((5000 + ${n%:*} + more)) $times"
			done
		done
	done
}

fresh() {
	local column
	rm -rf "$WORK/lengths"
	mkdir "$WORK/lengths"
	for column in $columns; do lengths "$column" >"$WORK/lengths/$column"; done
}

# plant COLUMN THREADS MORE: in every way
plant() {
	awk -v threads="$2" -v more="$3" '$2 == threads { $3 += more } { print }' \
		"$WORK/lengths/$1" >"$WORK/new"
	mv "$WORK/new" "$WORK/lengths/$1"
}
judged() { run "$1" "$judge" preempt --lengths "$WORK/lengths"; }

fresh
judged 0
prints '^\| switch \(sched_yield\) *\|  *5010 \|  *0 \|  *0 \|  *0 \| '
prints 'refused costs a real-time wake-up 20 instructions'

# told REGEX: of each of the five ways
told() { [ "$(grep -c -E -- "FAILED: .*: $1" "$ERR")" -eq 5 ] || fail "not told five times: $1"; }

for more in 1 -3; do
	for column in off boot-off on; do
		fresh
		plant $column bare $more
		judged 1
		told '-?[0-9]+ with'
	done
done
fresh
plant on user 200
judged 1
told '2[0-9]+ for those who opted in'
fresh
plant control bare -1000
judged 1
told 'the control shows 0 only'

fresh
sed -i '/^resched bare/d' "$WORK/lengths/on"
grep '^resched bare' "$WORK/lengths/unpatched" >>"$WORK/lengths/on"
judged 1
says 'FAILED: the test of a pending reschedule is not seen'

fresh
sed -i '/^yield bare/d' "$WORK/lengths/off"
judged 1
says 'yield of bare in off: no shift stands out, or it was not measured'
fresh
sed -i '/^yield bare 50[14]/d' "$WORK/lengths/off"
echo yield bare 4000 9 >>"$WORK/lengths/off"
judged 1
says 'yield of bare in off: no shift stands out'
