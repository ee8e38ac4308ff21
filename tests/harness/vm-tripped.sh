#!/bin/bash
# SPDX-License-Identifier: MIT
# A guest that the emulator trips is booted again, but not for ever, and not one that dies of
# anything else.
. "$(dirname "$0")/common.sh"
need_kernel vm

# fake TRIPS TEXT: an emulator whose guest dies with TEXT the first TRIPS times.
fake() {
	cat >"$WORK/qemu" <<END
#!/bin/bash
trips=\$(cat "$WORK/trips" 2>/dev/null || echo 0)
[ "\$trips" -lt $1 ] || exec qemu-system-x86_64 "\$@"
echo \$((trips + 1)) >"$WORK/trips"
for word in "\$@"; do
	case \$word in *id=console,path=*) printf '%s\n' "$2" 'Kernel panic - not syncing' >"\${word#*path=}" ;; esac
done
END
	chmod +x "$WORK/qemu"
	rm -f "$WORK/trips"
}

fake 2 'Oops: int3: 0000 [#1]'
run 0 env "QEMU=$WORK/qemu" SLICE_EXT_ACCEL=tcg "$SCRIPTS/vm" --kernel vm --smp 1 --programs "$WORK/none" -- echo 'a b'
prints '^a b$'
says 'once more'
fake 9 'Oops: int3: 0000 [#1]'
run 125 env "QEMU=$WORK/qemu" SLICE_EXT_ACCEL=tcg "$SCRIPTS/vm" --kernel vm --smp 1 --programs "$WORK/none" -- true
[ "$(cat "$WORK/trips")" -eq 3 ] || fail "$(cat "$WORK/trips") boots instead of 3"
fake 1 'slice-ext: job starts, Oops: int3: 0000 [#1]'
run 0 env "QEMU=$WORK/qemu" SLICE_EXT_ACCEL=tcg "$SCRIPTS/vm" --kernel vm --smp 1 --programs "$WORK/none" -- true
fake 1 'Oops: int3: 0000 [#1]'
run 125 env "QEMU=$WORK/qemu" "$SCRIPTS/vm" --kernel vm --deterministic --programs "$WORK/none" -- true
fake 1 'Oops: 0000 [#1]'
run 125 env "QEMU=$WORK/qemu" SLICE_EXT_ACCEL=tcg "$SCRIPTS/vm" --kernel vm --smp 1 --programs "$WORK/none" -- true
