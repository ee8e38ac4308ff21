#!/bin/bash
# SPDX-License-Identifier: MIT
# build-kernel.sh again|pristine|pretended|lost|broken|interrupted
# The second call takes seconds; what cannot be built says why.
. "$(dirname "$0")/common.sh"
build=$SCRIPTS/build-kernel

# A "kernel tree" whose Makefile only pretends: the rules of a build without its minutes.
pretended_tree() {
	export XDG_CACHE_HOME=$WORK/cache BUILDS=$WORK/builds
	: >"$BUILDS"
	mkdir "$WORK/tree"
	touch "$WORK/tree/Kconfig"
	echo 'int main;' >"$WORK/tree/main.c"
	cat >"$WORK/tree/Makefile" <<'END'
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 1
allnoconfig:
	grep -v -e '=n$$' -e '^CONFIG_SCHED_PREEMPT_DELAY' $(KCONFIG_ALLCONFIG) >$(O)/.config
bzImage:
	@echo '  CC      main.o'
	@echo build >>$(BUILDS)
	! grep -n 'slow' main.c || sleep 1000
	! grep -n 'main.c:1:5: error: unknown' main.c
	mkdir -p $(O)/arch/x86/boot
	cp main.c $(O)/arch/x86/boot/bzImage
	cp main.c $(O)/System.map
END
	published=$XDG_CACHE_HOME/slice-ext/kernels/6.12/vm-unpatched
}
pretend() { "$build" --config vm --unpatched --source "$WORK/tree"; }

case $1 in
pretended)
	pretended_tree
	before=$(cd "$WORK/tree" && find . -printf '%p %T@ %s\n' | sort)
	run 0 pretend
	[ "$(cat "$OUT")" = "$published/bzImage" ] || fail "standard output is not only the path of the image"
	cmp "$WORK/tree/main.c" "$published/bzImage" || fail "not the image that was built"
	run 0 pretend
	says 'up to date'
	[ "$(wc -l <"$BUILDS")" -eq 1 ] || fail "built again although nothing has changed"
	[ "$(cd "$WORK/tree" && find . -printf '%p %T@ %s\n' | sort)" = "$before" ] || fail "the source tree was changed"
	echo 'int more;' >>"$WORK/tree/main.c"
	run 0 pretend
	cmp "$WORK/tree/main.c" "$published/bzImage" || fail "a change of the source was not seen"
	;;
lost)
	pretended_tree
	sed -i "s/-e '=n/-e IO_URING &/" "$WORK/tree/Makefile"
	run 1 pretend
	says 'did not come out of Kconfig'
	says '^ *CONFIG_IO_URING=y \(is not set\)'
	[ ! -s "$BUILDS" ] || fail "built all the same"
	[ ! -e "$published/bzImage" ] || fail "an image was published"
	;;
broken)
	pretended_tree
	echo 'main.c:1:5: error: unknown type name' >"$WORK/tree/main.c"
	run 1 pretend
	says 'main.c:1:5: error: unknown type name'
	says 'whole log: '
	[ -s "$(sed -n 's/.*whole log: //p' "$ERR")" ] || fail "the log that is named does not exist"
	[ ! -s "$OUT" ] || fail "a path although there is no image"
	[ ! -e "$published/bzImage" ] || fail "an image was published"
	;;
interrupted)
	pretended_tree
	echo slow >"$WORK/tree/main.c"
	"$build" --config vm --unpatched --source "$WORK/tree" >"$OUT" 2>"$ERR" &
	script=$!
	for ((i = 0; i < 300; i++)); do
		[ ! -s "$BUILDS" ] || break
		sleep 0.1
	done
	kill "$script"
	status=0
	wait "$script" || status=$?
	[ "$status" -eq 143 ] || fail "status $status after SIGTERM"
	sleep 1
	! grep -l -s -a -F "O=$WORK/cache" /proc/[0-9]*/cmdline || fail "make goes on"
	[ ! -e "$published/bzImage" ] || fail "an image was published"
	;;
again)
	need_kernel vm vm-rt vm-off
	for config in vm vm-rt vm-off; do
		image=$CACHE/kernels/6.12/$config/bzImage
		before=$(stat -c '%y %i' "$image")
		SECONDS=0
		run 0 "$build" --config "$config"
		[ "$SECONDS" -le 60 ] || fail "a call with nothing to do took $SECONDS s"
		[ "$(tail -n1 "$OUT")" = "$image" ] || fail "the last line is not the path of the image"
		[ "$(stat -c '%y %i' "$image")" = "$before" ] || fail "built again"
		[ -s "${image%/*}/System.map" ] || fail "no System.map beside the image"
		[ -s "${image%/*}/config" ] || fail "no configuration beside the image"
	done
	;;
pristine)
	# The tree that fetch-kernel gives is as it was unpacked.
	run 0 "$SCRIPTS/apply-series" --check "$(pristine)"
	says 'apply to'
	;;
*) fail "no case $1" ;;
esac
