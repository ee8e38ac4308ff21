# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Functions shared by the scripts of this directory. Sourced, never run.

# Everything that is large or can be made again lives here, never in the checkout.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/slice-ext
# shellcheck disable=SC2034
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ME=${0##*/}

# The kernel line that is used where none is named; also what a bare image name
# such as "vm" stands for.
# shellcheck disable=SC2034
KERNEL_LINE=${SLICE_EXT_KERNEL:-6.12}

say() { printf '%s: %s\n' "$ME" "$*" >&2; }

# die STATUS MESSAGE...
die() {
	local status=$1
	shift
	say "$@"
	exit "$status"
}

# usage_error MESSAGE: for a wrong command line. Every script ends with 2 for that.
usage_error() {
	say "$1"
	say "try '$ME --help'"
	exit 2
}

# The comment block at the top of a script is its help text.
print_help() {
	sed -n '/^# SPDX/d; /^#!/d; /^#/!q; s/^#$//; s/^# //; p' "$0"
}

have() { command -v "$1" >/dev/null 2>&1; }

is_debian() {
	[ "${SLICE_EXT_DISTRIBUTION:-}" = "" ] || {
		[ "$SLICE_EXT_DISTRIBUTION" = debian ]
		return
	}
	have apt-get && have dpkg-query && (
		# shellcheck disable=SC1091
		. /etc/os-release 2>/dev/null
		case " ${ID:-} ${ID_LIKE:-} " in *" debian "*) ;; *) false ;; esac
	)
}

# What each part needs, by the names of Debian's packages.
# shellcheck disable=SC2034
{
	KERNEL_PACKAGES=(gcc make bison flex bc perl libelf-dev lz4 xz-utils patch cpio)
	GUEST_PACKAGES=(qemu-system-x86 busybox-static rt-tests cpio)
	BUILD_PACKAGES=(g++ cmake ninja-build libcli11-dev nlohmann-json3-dev)
	REPORT_PACKAGES=(gnuplot-nox)
	TEST_PACKAGES=(libgtest-dev libgmock-dev git shellcheck pkg-config groff-base libbpf-dev dwarves
		liburing-dev strace gdb spin)
	# The same for other distributions, where the packages are named otherwise.
	COMMON_TOOLS=(gcc g++ make bison flex bc perl lz4 xz patch cpio flock setpriv
		cmake ninja qemu-system-x86_64 busybox)
}

# missing_packages PACKAGE...: those that are not installed, one per line.
missing_packages() {
	local package
	for package in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
			printf '%s\n' "$package"
	done
}

# install_packages PACKAGE...: names them, then installs what is missing.
install_packages() {
	local -a missing as_root=()
	say "packages needed: $*"
	mapfile -t missing < <(missing_packages "$@")
	if [ ${#missing[@]} -eq 0 ]; then
		say "all of them are installed"
		return
	fi
	[ "$(id -u)" -eq 0 ] || as_root=(sudo)
	say "installing: ${missing[*]}"
	"${as_root[@]}" apt-get update -q >&2
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
}

# prepare_machine INSTALL PACKAGE...: installs the packages if INSTALL is true; elsewhere than
# on Debian it can only tell what is missing.
prepare_machine() {
	local install=$1
	shift
	if ! is_debian; then
		say "this is not Debian: install by hand what is missing, then go on with --source DIR"
		require_tools "${COMMON_TOOLS[@]}"
	elif $install; then
		install_packages "$@"
	else
		local -a missing
		mapfile -t missing < <(missing_packages "$@")
		[ ${#missing[@]} -eq 0 ] || say "not installed, but needed: ${missing[*]}"
	fi
}

# stage NAME COMMAND...: names the step and says how long it took. As with with_lock, an
# error inside ends the script only if this is not called in a condition.
stage() {
	local name=$1 started=$SECONDS
	shift
	say "== $name"
	"$@"
	say "== $name: done in $((SECONDS - started)) s"
}

# require_tools TOOL...: names all that are missing, then fails.
require_tools() {
	local tool
	local -a missing=()
	for tool in "$@"; do
		have "$tool" || missing+=("$tool")
	done
	[ ${#missing[@]} -eq 0 ] || die 1 "missing tools: ${missing[*]}"
}

# kernel_line TREE: "6.12" from the Makefile of a kernel tree; fails if it is none.
kernel_line() {
	local version patchlevel
	version=$(sed -n 's/^VERSION = *//p' "$1/Makefile" 2>/dev/null | head -n1)
	patchlevel=$(sed -n 's/^PATCHLEVEL = *//p' "$1/Makefile" 2>/dev/null | head -n1)
	[ -n "$version" ] && [ -n "$patchlevel" ] && [ -f "$1/Kconfig" ] || return 1
	printf '%s.%s\n' "$version" "$patchlevel"
}

# kernel_version TREE: "6.12.117"
kernel_version() {
	local line sublevel
	line=$(kernel_line "$1") || return 1
	sublevel=$(sed -n 's/^SUBLEVEL = *//p' "$1/Makefile" | head -n1)
	printf '%s.%s\n' "$line" "${sublevel:-0}"
}

# series_patches FILE: the names in a quilt series file, comments and blank lines left out.
series_patches() { sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$1"; }

# hash_files FILE...: one hash over the contents, in the order given.
hash_files() { cat "$@" | sha256sum | cut -d' ' -f1; }

# with_lock NAME COMMAND...: runs COMMAND while no other script holds NAME. Not to be used in
# a condition: there the shell would go on after an error inside COMMAND.
with_lock() {
	local name=$1 fd
	shift
	mkdir -p "$CACHE"
	exec {fd}>"$CACHE/.lock-$name"
	flock "$fd"
	"$@"
	exec {fd}>&-
}

# nap SECONDS: sleeps without a child process, which could outlive the script and hold its
# output open.
nap() {
	[ -n "${nap_fd:-}" ] || exec {nap_fd}<> <(:)
	read -r -t "$1" -u "$nap_fd" _ || true
}
