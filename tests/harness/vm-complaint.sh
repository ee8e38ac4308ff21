#!/bin/bash
# SPDX-License-Identifier: MIT
# A kernel that complains fails the test, even if the command passes.
. "$(dirname "$0")/common.sh"
need_kernel vm

complain() {
	run 123 vm -- sh -c "echo '<4>$1' >/dev/kmsg; exit $2"
	says 'the guest kernel complained'
	grep -q -F "$1" "$ERR" || fail "the complaint is not shown"
}
complain 'WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:1 a_function+0x1/0x2' 0
complain 'BUG: scheduling while atomic: program/1/0x00000002' 0
complain 'INFO: task program:1 blocked for more than 120 seconds.' 5
complain 'rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:' 0
complain 'watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [program:1]' 0

# A message that only sounds like one.
run 0 vm -- sh -c 'echo "<4>program: no warning, no bug, no oops here" >/dev/kmsg'

run 0 vm --log "$WORK/console" -- sh -c 'echo "a line for the log" >/dev/kmsg'
grep -q 'a line for the log' "$WORK/console" || fail "--log does not have the kernel's messages"
