#!/bin/sh
# Usage: tests/debian.sh RELEASE [COMMAND]
#
# Does what a new user of another Debian release does: runs COMMAND (by default the README's two) in a fresh clone of
# the last commit, in a system of its own under build/debian (chroot.sh). An existing system is used again, with a new
# clone. Ends with 77 where no system can be made.
#
#   tests/debian.sh trixie
#   tests/debian.sh trixie 'make check T=io'
set -eu
cd "$(dirname "$0")/.."
. tests/chroot.sh

[ $# -ge 1 ] && [ $# -le 2 ] || die "expected RELEASE [COMMAND], such as trixie 'make test'"
[ "$(id -u)" -eq 0 ] || exec sudo "$PWD/tests/debian.sh" "$@" # for chroot
can_chroot || { echo "debian.sh: mounts are not allowed here" && exit 77; }
system=$PWD/build/debian/$1
make_system "$system" "$1" git,make
rm -rf "$system/kappascope"
git clone --quiet --no-hardlinks . "$system/kappascope"
in_system "$system" "cd /kappascope && ${2:-make test && make study}"
