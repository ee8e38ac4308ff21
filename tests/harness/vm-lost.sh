#!/bin/bash
# SPDX-License-Identifier: MIT
# vm-lost.sh panic|hang|off|image|qemu
# A lost VM is told from a command that fails, and says how it was lost.
. "$(dirname "$0")/common.sh"

case $1 in
panic)
	need_kernel vm
	run 125 vm -- sh -c 'echo c >/proc/sysrq-trigger; sleep 100'
	says 'VM lost: the guest kernel panicked'
	says 'sysrq triggered crash'
	;;
hang)
	need_kernel vm
	SECONDS=0
	run 124 vm --timeout 15 -- sleep 1000
	[ "$SECONDS" -lt 60 ] || fail "a deadline of 15 s took $SECONDS s"
	says 'did not end within 15 s'
	;;
off)
	need_kernel vm
	run 125 vm -- reboot -f
	says 'VM lost: .*off or rebooted before the command ended'
	# Without ACPI this stands still instead of switching off.
	run 125 vm -- poweroff -f
	says 'VM lost: .*off or rebooted before the command ended'
	;;
image)
	run 125 "$SCRIPTS/vm" --kernel "$WORK/bzImage" -- true
	says 'VM lost: no kernel image .*/bzImage'
	run 125 env XDG_CACHE_HOME="$WORK/cache" "$SCRIPTS/vm" --kernel vm-rt -- true
	says 'VM lost: no kernel image .*build-kernel --config vm-rt'
	# A file that is no kernel.
	echo nonsense >"$WORK/bzImage"
	run 125 "$SCRIPTS/vm" --kernel "$WORK/bzImage" --timeout 30 -- true
	says 'VM lost: QEMU ended with status'
	;;
qemu)
	need_kernel vm
	run 125 env QEMU="$WORK/no-such-qemu" "$SCRIPTS/vm" --kernel vm -- true
	says 'VM lost: QEMU is missing'
	# As on a machine where it is not installed.
	mkdir "$WORK/bin"
	for tool in bash dirname sed cat tr mktemp rm grep tail setpriv date find mkdir; do
		ln -s "$(command -v "$tool")" "$WORK/bin/"
	done
	run 125 env PATH="$WORK/bin" "$SCRIPTS/vm" --kernel vm -- true
	says 'VM lost: QEMU is missing'
	;;
*) fail "no case $1" ;;
esac
