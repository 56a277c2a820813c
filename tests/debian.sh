#!/bin/sh
# Usage: tests/debian.sh RELEASE [COMMAND]
#
# Does what a new user of another Debian release does: runs COMMAND (by default the README's two) in a fresh clone of
# the last commit, in a system of its own under build/debian, which debootstrap makes from the mirror of this machine's
# apt. Changes nothing else on this machine. An existing system is used again, with a new clone.
#
#   tests/debian.sh trixie
#   tests/debian.sh trixie 'make check T=io'
set -eu
cd "$(dirname "$0")/.."
. src/deps/apt.sh

die() {
    echo "debian.sh: $*" >&2
    exit 1
}

[ $# -ge 1 ] && [ $# -le 2 ] || die "expected RELEASE [COMMAND], such as trixie 'make test'"
[ "$(id -u)" -eq 0 ] || exec sudo "$PWD/tests/debian.sh" "$@" # for chroot
root=$PWD/build/debian/$1
command=${2:-make test && make study}
certificates=etc/ssl/certs/ca-certificates.crt

if [ ! -d "$root" ]; then
    command -v debootstrap >/dev/null || { apt_get update && apt_get install -y --no-install-recommends debootstrap; }
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' | sed -n 's/^Debian Debian //p' | head -n 1)
    [ -n "$mirror" ] || die "no mirror: expected apt's sources to name one of Debian"
    mkdir -p "$PWD/build/debian"
    rm -rf "$root.new"
    debootstrap --variant=minbase --include=ca-certificates,git,make "$1" "$root.new" "$mirror" >&2
    # How this machine reaches the network.
    for file in $certificates etc/pip.conf etc/resolv.conf etc/hosts; do
        [ ! -f "/$file" ] || cp "/$file" "$root.new/$file"
    done
    mv "$root.new" "$root"
fi
rm -rf "$root/kappascope"
git clone --quiet --no-hardlinks . "$root/kappascope"
# The mounts end with this process.
exec unshare --mount sh -eu -c '
    mount --rbind /dev "$1/dev"
    mount --rbind /sys "$1/sys"
    mount -t proc proc "$1/proc"
    exec chroot "$1" env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb sh -c "cd /kappascope && $2"
' sh "$root" "$command"
