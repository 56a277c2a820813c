# To be sourced: apt-get as root, or through sudo. A new machine often updates itself at first, so it
# waits for dpkg's lock.
apt_get() {
    set -- env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"
    [ "$(id -u)" -eq 0 ] || set -- sudo "$@"
    "$@" >&2
}
