# shellcheck shell=sh
# To be sourced, in the root of the repository. Other systems of Debian in folders, which debootstrap makes from the
# mirror of this machine's apt. Changes nothing else on this machine. Needs root.
. src/deps/apt.sh

die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# Whether this machine, which may be a container itself, lets root do it.
can_chroot() {
    unshare --mount true 2>/dev/null
}

# A system that has Debian's essential packages and these, unless it is there. Exits with 77 where the mirror gives none.
make_system() { # FOLDER RELEASE PACKAGE,...
    [ ! -d "$1" ] || return 0
    command -v debootstrap >/dev/null || { apt_get update && apt_get install -y --no-install-recommends debootstrap; }
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' | sed -n 's/^Debian Debian //p' | head -n 1)
    [ -n "$mirror" ] || { echo "no mirror: expected apt's sources to name one of Debian" && exit 77; }
    mkdir -p "$(dirname "$1")"
    rm -rf "$1.new"
    debootstrap --variant=minbase --include="ca-certificates,$3" "$2" "$1.new" "$mirror" >&2 ||
        { echo "debootstrap made no system of $2 from $mirror" && exit 77; }
    # How this machine reaches the network.
    for file in etc/ssl/certs/ca-certificates.crt etc/pip.conf etc/resolv.conf etc/hosts; do
        [ ! -f "/$file" ] || cp "/$file" "$1.new/$file"
    done
    mv "$1.new" "$1"
}

# Runs a command of the shell in a system, as root. The mounts end with it.
in_system() { # FOLDER COMMAND
    unshare --mount sh -eu -c '
        mount --rbind /dev "$1/dev"
        mount --rbind /sys "$1/sys"
        mount -t proc proc "$1/proc"
        exec chroot "$1" env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb sh -c "$2"
    ' sh "$1" "$2"
}
