#!/bin/bash
# SPDX-License-Identifier: MIT
# fetch-kernel.sh failed|interrupted|release|source
# A download that does not come to its end leaves nothing; what is there is not fetched again.
# apt is replaced by programs that only pretend, nothing is downloaded.
. "$(dirname "$0")/common.sh"
fetch=$SCRIPTS/fetch-kernel

mkdir "$WORK/bin"
export XDG_CACHE_HOME=$WORK/cache SLICE_EXT_DISTRIBUTION=debian PATH=$WORK/bin:$PATH
sources=$XDG_CACHE_HOME/slice-ext/source

# fake NAME: a program from standard input.
fake() {
	{ printf '#!/bin/bash\n' && cat; } >"$WORK/bin/$1"
	chmod +x "$WORK/bin/$1"
}
# The mirror "has" these; each is a package with a kernel tree of only three files.
fake apt-cache <<'END'
case " $* " in *" linux-source-6.12 "*)
	echo "linux-source-6.12 | 6.12.9-1 | http://localhost bookworm/main amd64 Packages"
	echo "linux-source-6.12 | 6.12.10-1 | http://localhost bookworm/main amd64 Packages"
	echo "linux-source-6.12 | 6.12.1-1 | http://localhost bookworm/main amd64 Packages"
;; esac
END
downloads() {
	fake apt-get <<'END'
[ "$1" = download ] || exit 1
release=${3#*=}
mkdir -p make/usr/src make/DEBIAN linux/scripts
printf 'Package: linux-source-6.12\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: test\n' \
	"$release" >make/DEBIAN/control
sublevel=${release#6.12.}
printf 'VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = %s\n' "${sublevel%-*}" >linux/Makefile
touch linux/Kconfig
tar -cJf make/usr/src/linux-source-6.12.tar.xz linux
dpkg-deb -b make "linux-source-6.12_${release}_all.deb" >/dev/null
END
}
nothing_left() {
	local left
	left=$(find "$sources" -mindepth 1 2>/dev/null || true)
	[ -z "$left" ] || fail "left in the cache: $left"
}

case $1 in
failed)
	fake apt-get <<'END'
echo "half a package" >linux-source-6.12_6.12.10-1_all.deb
exit 100
END
	run 1 "$fetch" 6.12
	nothing_left
	# A package that is cut off, but reported as complete.
	fake apt-get <<'END'
echo "half a package" >linux-source-6.12_6.12.10-1_all.deb
END
	run 1 "$fetch" 6.12
	says 'cannot unpack'
	nothing_left
	[ ! -s "$OUT" ] || fail "a path although there is nothing"
	;;
interrupted)
	fake apt-get <<END
echo "half a package" >linux-source-6.12_6.12.10-1_all.deb
touch $WORK/started
sleep 3
END
	"$fetch" 6.12 >"$OUT" 2>"$ERR" &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		[ ! -e "$WORK/started" ] || break
		sleep 0.1
	done
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 143 ] || fail "status $status after SIGTERM"
	nothing_left
	downloads
	run 0 "$fetch" 6.12
	;;
release)
	downloads
	run 0 "$fetch" 6.12
	[ "$(cat "$OUT")" = "$sources/linux-6.12" ] || fail "standard output is not only the path"
	grep -q 'SUBLEVEL = 10' "$sources/linux-6.12/Makefile" || fail "not the newest release"
	run 0 "$fetch" 6.12.1
	grep -q 'SUBLEVEL = 1$' "$sources/linux-6.12.1/Makefile" || fail "not the release asked for"
	run 1 "$fetch" 6.12.2
	[ ! -e "$sources/linux-6.12.2" ] || fail "another release under the name of the one asked for"
	# From now on without the mirror.
	fake apt-get <<<'exit 100'
	fake apt-cache <<<'exit 100'
	run 0 "$fetch" 6.12
	[ "$(cat "$OUT")" = "$sources/linux-6.12" ] || fail "standard output is not only the path"
	;;
source)
	mkdir "$WORK/tree"
	printf 'VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\n' >"$WORK/tree/Makefile"
	touch "$WORK/tree/Kconfig"
	export SLICE_EXT_DISTRIBUTION=other
	cd "$WORK"
	run 0 "$fetch" --source tree
	[ "$(cat "$OUT")" = "$WORK/tree" ] || fail "not the path of the tree"
	run 1 "$fetch" 6.12
	says '--source DIR'
	;;
*) fail "no case $1" ;;
esac
