# To be sourced. Defines apt_get: apt-get as root or through sudo. It waits for dpkg's lock, as a new
# machine often updates itself at first.
apt_get() {
    set -- env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"
    [ "$(id -u)" -eq 0 ] || set -- sudo "$@"
    "$@" >&2
}
