#!/bin/bash
# SPDX-License-Identifier: MIT
# apply-series.sh applied|git|version|dirty|fuzz|usage
# shellcheck disable=SC2016
# Every answer of apply-series has its own status, and all but "applied" leave the tree as
# it was.
. "$(dirname "$0")/common.sh"

patches=$ROOT/patches/v6.12
apply=$SCRIPTS/apply-series

# What the series touches and what names the version: enough of a tree for apply-series.
touched() {
	cat "$patches"/*.patch | sed -n -e 's|^--- a/||p' -e 's|^+++ b/||p' | sort -u
}
small_tree() {
	local tree=$1 source file
	source=$(pristine)
	mkdir -p "$tree"
	for file in Makefile Kconfig $(touched); do
		[ -e "$source/$file" ] || continue
		mkdir -p "$tree/$(dirname "$file")"
		cp "$source/$file" "$tree/$file"
	done
}
state() { (cd "$1" && find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort); }

# refuses STATUS REGEX TREE: and changes nothing in it.
refuses() {
	local before
	before=$(state "$3")
	run "$1" "$apply" "$3"
	says "$2"
	[ "$(state "$3")" = "$before" ] || fail "the tree was changed"
}

a_touched_file() { touched | while read -r file; do [ ! -e "$1/$file" ] || echo "$file"; done | grep '\.c$' | head -n1; }

tree=$WORK/linux
case $1 in
applied)
	small_tree "$tree"
	before=$(state "$tree")
	run 0 "$apply" --check "$tree"
	[ "$(state "$tree")" = "$before" ] || fail "--check changed the tree"
	run 0 "$apply" "$tree"
	says '^apply-series: applied: '
	[ "$(state "$tree")" != "$before" ] || fail "nothing was applied"
	[ -z "$(find "$tree" -name '*.rej' -o -name '*.orig' -o -name '*slice-ext-new')" ] || fail "left-overs"
	# The result is what git makes of the same patches.
	small_tree "$WORK/git"
	git -C "$WORK/git" init -q
	(cd "$WORK/git" && sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$patches/series" |
		while read -r name; do git apply "$patches/$name" || exit 1; done) || fail "git apply refuses the series"
	[ "$(state "$tree")" = "$(state "$WORK/git")" ] || fail "git apply gives another tree"
	refuses 3 '^apply-series: already applied' "$tree"
	;;
git)
	# The same in a git work tree, where the series is uncommitted and then committed.
	small_tree "$tree"
	git -C "$tree" init -q
	git -C "$tree" add -A
	git -C "$tree" -c user.name=test -c user.email=test@localhost commit -q -m base
	file=$(a_touched_file "$tree")
	echo '/* mine */' >>"$tree/$file"
	refuses 5 "^apply-series: dirty: .*uncommitted" "$tree"
	git -C "$tree" checkout -q "$file"
	# A file git does not know is nobody's business.
	touch "$tree/notes"
	run 0 "$apply" "$tree"
	refuses 3 'already applied' "$tree"
	git -C "$tree" add -A
	git -C "$tree" -c user.name=test -c user.email=test@localhost commit -q -m series
	refuses 3 'already applied' "$tree"
	;;
version)
	small_tree "$tree"
	sed -i 's/^PATCHLEVEL = .*/PATCHLEVEL = 1/' "$tree/Makefile"
	refuses 4 '^apply-series: wrong version: .* Linux 6\.1\..*no patches/v6\.1 .*v6\.12' "$tree"
	;;
dirty)
	small_tree "$tree"
	file=$(a_touched_file "$tree")
	touch "$tree/$file.rej"
	refuses 5 '^apply-series: dirty: .*left-overs' "$tree"
	says "$file.rej"
	rm "$tree/$file.rej"
	# The first patch alone, as after an interrupted attempt of something else.
	first=$(sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$patches/series" | head -n1)
	[ "$(sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$patches/series" | wc -l)" -gt 1 ] || fail "one patch only"
	patch -s -p1 -d "$tree" -i "$patches/$first"
	refuses 5 '^apply-series: dirty: .*first 1 of' "$tree"
	;;
fuzz)
	# A context line of a hunk that is not as the patch has it: patch would take it with
	# its default fuzz.
	small_tree "$tree"
	source=$(pristine)
	found=false
	for file in $(touched); do
		[ -e "$source/$file" ] || continue
		# The outermost context line of the file's first hunk in the series.
		number=$(awk -v file="$file" '
			$0 == "--- a/" file { inside = 1; next }
			inside && /^@@/ { split($2, range, ","); print -range[1]; exit }' "$patches"/*.patch)
		[ "${number:-0}" -gt 1 ] || continue
		cp "$source/$file" "$tree/$file"
		sed -i "${number}s/\$/ \/\/ another release/" "$tree/$file"
		found=true
		break
	done
	$found || fail "no hunk to try"
	# The control: with its default fuzz, patch takes the series.
	cp -r "$tree" "$WORK/fuzzy"
	run 0 sh -c 'cat "$@" | patch -p1 -f -d "$0"' "$WORK/fuzzy" "$patches"/[0-9]*.patch
	prints 'with fuzz'
	refuses 6 '^apply-series: does not apply' "$tree"
	[ -z "$(find "$tree" -name '*.rej' -o -name '*.orig')" ] || fail "left-overs"
	;;
usage)
	run 2 "$apply"
	run 2 "$apply" "$WORK"
	run 2 "$apply" "$WORK/nowhere"
	run 2 "$apply" "$WORK" "$WORK"
	;;
*) fail "no case $1" ;;
esac
