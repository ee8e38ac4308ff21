#!/bin/bash
# SPDX-License-Identifier: MIT
# distribution.sh other|no-install
# The two commands name what they need: elsewhere than on Debian the tools that are missing,
# with --no-install the packages.
. "$(dirname "$0")/common.sh"
export XDG_CACHE_HOME=$WORK/cache

case $1 in
other)
	export SLICE_EXT_DISTRIBUTION=other
	mkdir "$WORK/bin"
	for tool in bash dirname sed cat tr mktemp rm grep mkdir id make gcc; do
		ln -s "$(command -v "$tool")" "$WORK/bin/"
	done
	for script in demo test; do
		run 1 env PATH="$WORK/bin" "$SCRIPTS/$script"
		says 'missing tools: .*g\+\+ .*qemu-system-x86_64'
		grep -q 'missing tools:.* make' "$ERR" && fail "make is not missing"
		says '--source DIR'
	done
	# With all the tools the kernel source is what is left to name.
	run 1 "$SCRIPTS/demo"
	says 'name a kernel tree with --source DIR'
	;;
no-install)
	export SLICE_EXT_DISTRIBUTION=debian
	mkdir "$WORK/bin"
	printf '#!/bin/sh\ncase "$*" in *rt-tests) exit 1 ;; esac\nprintf installed\n' >"$WORK/bin/dpkg-query"
	printf '#!/bin/sh\necho "called: $*" >>%s/apt-calls\nexit 1\n' "$WORK" >"$WORK/bin/apt-get"
	chmod +x "$WORK/bin"/*
	for script in demo test; do
		run 1 env PATH="$WORK/bin:$PATH" "$SCRIPTS/$script" --no-install --version 6.999
		says 'not installed, but needed: rt-tests$'
	done
	! grep -q install "$WORK/apt-calls" || fail "--no-install has installed"
	;;
*) fail "no case $1" ;;
esac
