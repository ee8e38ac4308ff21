#!/bin/bash
# SPDX-License-Identifier: MIT
#
# latency-planted PROGRAMS
#
# A kernel that got worse must not pass: the guard is dropped in the arm that is measured as
# guarded. One that got better must not fail.
. "$(dirname "$0")/common.sh"
need_kernel vm vm-unpatched
programs=$1
tool=$programs/slice-ext

"$tool" latency show phase >"$WORK/good.json"
# The abuser's arm is the one line that asks for ever with the guard in place.
sed '/"name": "on-abuser"/,/"measure"/s|"kernel.sched_preempt_delay_us": "30"|&, "/sys/kernel/debug/sched/preempt_delay_unguarded": "1"|' \
	"$WORK/good.json" >"$WORK/bad.json"
cmp -s "$WORK/good.json" "$WORK/bad.json" && fail "nothing was planted"

# measure FORM KERNEL KIND
measure() {
	"$SCRIPTS/vm" --kernel "$2" --deterministic --timeout 600 --programs "$programs" \
		--env SLICE_EXT_DETERMINISTIC=1 --add "$WORK/$1.json" --results "$WORK/runs" -- \
		slice-ext latency run "$WORK/$1.json" --short --quiet --output /results --name "$1-$3"
}
measure good vm on &
first=$!
measure bad vm on
wait "$first"
measure good vm-unpatched base &
first=$!
measure bad vm-unpatched base
wait "$first"
cd "$WORK/runs" || fail "there are no runs"

run 0 "$tool" latency check good-on.json good-base.json
prints '^PASS  phase on PREEMPT:'
run 1 "$tool" latency check bad-on.json bad-base.json
prints '^FAIL  phase on PREEMPT:'
prints '^  FAIL  the worst wake-up beside an abuser'

run 0 "$tool" latency compare good-on.json good-on.json
run 1 "$tool" latency compare good-on.json bad-on.json
prints 'WORSE  bad-on, on-abuser, max'
run 0 "$tool" latency compare bad-on.json good-on.json
prints 'better good-on, on-abuser, max'
