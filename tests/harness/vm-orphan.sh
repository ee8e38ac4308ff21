#!/bin/bash
# SPDX-License-Identifier: MIT
# However scripts/vm ends, QEMU ends with it.
. "$(dirname "$0")/common.sh"
need_kernel vm

# Writes down its process id, then becomes the real one.
cat >"$WORK/qemu" <<'END'
#!/bin/sh
echo $$ >"$PID_FILE"
exec qemu-system-x86_64 "$@"
END
chmod +x "$WORK/qemu"
export PID_FILE=$WORK/pid QEMU=$WORK/qemu SLICE_EXT_ACCEL=tcg

for signal in KILL TERM INT HUP; do
	rm -f "$PID_FILE"
	# A background job of a script ignores SIGINT unless told otherwise.
	env --default-signal=INT "$SCRIPTS/vm" --kernel vm --smp 1 --timeout 120 \
		--programs "$WORK/no-programs" --log "$WORK/console" -- sleep 1000 >/dev/null 2>&1 &
	script=$!
	for ((i = 0; i < 1100; i++)); do
		grep -q -a 'job starts' "$WORK/console" 2>/dev/null && break
		sleep 0.1
	done
	pid=$(cat "$PID_FILE") || fail "QEMU was not started"
	kill -0 "$pid" 2>/dev/null || fail "QEMU ended by itself"
	kill "-$signal" "$script"
	status=0
	wait "$script" 2>/dev/null || status=$?
	[ "$status" -gt 128 ] || fail "status $status after SIG$signal"
	for ((i = 0; i < 50; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -0 "$pid" 2>/dev/null && fail "QEMU (process $pid) survived SIG$signal to scripts/vm"
	rm -f "$WORK/console"
done
exit 0
