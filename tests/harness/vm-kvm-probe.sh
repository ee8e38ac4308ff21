#!/bin/bash
# SPDX-License-Identifier: MIT
# KVM that can be opened but runs no guest is not used, and is probed once.
. "$(dirname "$0")/common.sh"
need_kernel vm

# A QEMU whose KVM is broken in the way $BROKEN names.
cat >"$WORK/qemu" <<'END'
#!/bin/sh
case " $* " in
*" kvm "*)
	echo probe >>"$PROBES"
	case $BROKEN in
	aborts) echo "KVM internal error" >&2; exit 134 ;;
	ends) exit 0 ;;
	hangs) exec sleep 1000 ;;
	esac
	;;
esac
exec qemu-system-x86_64 "$@"
END
touch "$WORK/kvm"
export PROBES=$WORK/probes QEMU=$WORK/qemu SLICE_EXT_KVM_DEVICE=$WORK/kvm
unset SLICE_EXT_ACCEL

for BROKEN in aborts ends hangs; do
	export BROKEN
	# Another file, so that what was remembered of the last one does not count.
	cp "$WORK/qemu" "$WORK/qemu-$BROKEN"
	chmod +x "$WORK/qemu-$BROKEN"
	QEMU=$WORK/qemu-$BROKEN
	: >"$PROBES"
	run 0 vm -- echo works
	prints '^works$'
	says 'probe of KVM: does not run a guest'
	run 0 vm -- true
	[ "$(wc -l <"$PROBES")" -eq 1 ] || fail "probed $(wc -l <"$PROBES") times instead of once"
done
