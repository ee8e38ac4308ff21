#!/bin/bash
# SPDX-License-Identifier: MIT
#
# latency-killed PROGRAMS
#
# Whenever slice-ext latency is killed, the machine is as it was: settings, processes, control
# groups. In a guest, where the settings are real ones.
. "$(dirname "$0")/common.sh"
need_kernel vm

cat >"$WORK/job" <<'END'
settings() {
	cat /proc/sys/kernel/sched_preempt_delay_us /proc/sys/kernel/sched_rt_runtime_us \
		/sys/kernel/debug/sched/preempt_delay_unguarded
}
left_behind() {
	ps -o pid,args | grep -E 'slice-ext|cyclictest|hackbench' | grep -v -E 'grep|job'
	find /sys/fs/cgroup -name 'slice-ext-latency-*'
}
echo 17 >/proc/sys/kernel/sched_preempt_delay_us
before=$(settings)
changed=0
for tenth in 1 2 3 4 5 6 8 10 12 15 18 22 26 30; do
	setsid slice-ext latency run t1 --arms on-user,dropped-30 --output /tmp/runs --force --quiet &
	runner=$!
	sleep "$((tenth / 10)).$((tenth % 10))"
	[ "$(settings)" = "$before" ] || changed=$((changed + 1))
	# Both ways: the process alone, and its group.
	if [ $((tenth % 2)) -eq 0 ]; then kill -KILL "$runner"; else kill -KILL -"$runner" 2>/dev/null || kill -KILL "$runner"; fi
	wait "$runner" 2>/dev/null
	tries=0
	while [ -n "$(left_behind)" ] || [ "$(settings)" != "$before" ]; do
		tries=$((tries + 1))
		if [ "$tries" -ge 50 ]; then
			echo "killed after 0.$tenth: $(settings | tr '\n' ' '), left: $(left_behind)"
			exit 1
		fi
		sleep 0.1
	done
done
[ "$changed" -ge 5 ] || { echo "only $changed of the kills met a run that had begun"; exit 1; }
echo "as before after each kill, $changed of them met changed settings"
END
run 0 "$SCRIPTS/vm" --kernel vm --smp 2 --timeout 300 --programs "$1" --add "$WORK/job" -- sh "$WORK/job"
prints 'as before after each kill'
