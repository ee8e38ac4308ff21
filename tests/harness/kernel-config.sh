#!/bin/bash
# SPDX-License-Identifier: MIT
# kernel-config.sh rt-guard|default|off
# What Kconfig makes of a fragment on a tree with the series.
. "$(dirname "$0")/common.sh"

# kconfig TARGET [FRAGMENT]: a configuration from the fragment, in $WORK/out.
kconfig() {
	mkdir -p "$WORK/out"
	run 0 make -C "$tree" "O=$WORK/out" "$@"
}
is_set() { grep -q "^CONFIG_$1=y" "$WORK/out/.config"; }
need_kernel vm
tree=$(readlink -f "$CACHE/kernels/6.12/vm/source")
configs=$ROOT/kernel-config

case $1 in
rt-guard)
	# PREEMPT_RT without SCHED_PREEMPT_DELAY_RT has none of the feature, asked for or not.
	cat "$configs/slice-ext.config" "$configs/vm.config" "$configs/vm-rt.config" >"$WORK/all"
	kconfig allnoconfig "KCONFIG_ALLCONFIG=$WORK/all"
	is_set PREEMPT_RT || fail "not a PREEMPT_RT configuration"
	is_set SCHED_PREEMPT_DELAY || fail "the feature is off although allowed on PREEMPT_RT"
	sed -i '/SCHED_PREEMPT_DELAY_RT/d' "$WORK/all"
	for more in '' 'CONFIG_SCHED_PREEMPT_DELAY_RT=n' '# CONFIG_SCHED_PREEMPT_DELAY_RT is not set'; do
		{ cat "$WORK/all" && echo "$more"; } >"$WORK/fragment"
		kconfig allnoconfig "KCONFIG_ALLCONFIG=$WORK/fragment"
		is_set PREEMPT_RT || fail "not a PREEMPT_RT configuration"
		is_set SCHED_PREEMPT_DELAY && fail "PREEMPT_RT has the feature without the permission"
		is_set SCHED_PREEMPT_DELAY_UNGUARDED && fail "PREEMPT_RT has the measuring switch without the feature"
	done
	# The way a distribution's configuration gets it.
	is_set PREEMPT_RT
	printf '%s\n' CONFIG_SCHED_PREEMPT_DELAY=y '# CONFIG_SCHED_PREEMPT_DELAY_RT is not set' >>"$WORK/out/.config"
	kconfig olddefconfig
	is_set PREEMPT_RT || fail "not a PREEMPT_RT configuration"
	! is_set SCHED_PREEMPT_DELAY || fail "olddefconfig turned the feature on"
	;;
default)
	# Nobody who does not ask gets it.
	kconfig defconfig
	is_set RSEQ || fail "not the configuration meant"
	for symbol in SCHED_PREEMPT_DELAY SCHED_PREEMPT_DELAY_RT SCHED_PREEMPT_DELAY_UNGUARDED; do
		! is_set "$symbol" || fail "$symbol is on in defconfig"
	done
	grep -q 'SCHED_PREEMPT_DELAY is not set' "$WORK/out/.config" || fail "the tree does not have the series"
	cat "$configs/slice-ext.config" >>"$WORK/out/.config"
	kconfig olddefconfig
	is_set SCHED_PREEMPT_DELAY || fail "slice-ext.config does not turn the feature on in defconfig"
	! is_set SCHED_PREEMPT_DELAY_UNGUARDED || fail "slice-ext.config turns on what is for measuring"
	;;
off)
	# Option off: the image has none of it.
	need_kernel vm vm-rt vm-off
	grep -q '^CONFIG_SCHED_PREEMPT_DELAY' "$CACHE/kernels/6.12/vm-off/config" && fail "vm-off has the feature"
	names='preempt_delay|rseq_slice'
	for config in vm vm-rt; do
		grep -q -E "$names" "$CACHE/kernels/6.12/$config/System.map" || fail "no symbol of the feature in $config"
	done
	# The name of an unimplemented system call is in every kernel.
	found=$(grep -E "$names" "$CACHE/kernels/6.12/vm-off/System.map" |
		grep -v -E '__(x64|ia32)_sys_rseq_slice_yield$' || true)
	[ -z "$found" ] || fail "symbols of the feature in vm-off: $found"
	;;
*) fail "no case $1" ;;
esac
