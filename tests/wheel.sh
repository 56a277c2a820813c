#!/bin/sh
# Usage: tests/wheel.sh [RELEASES [COMMAND]]
#
# Makes the wheels (make wheel) from the last commit in a system of Debian 11, whose glibc is older than most, and
# installs them where nothing else is: as an ordinary user of new systems of these releases (default: trixie, which is
# Debian 13), with python3-venv and make and no further package. There the package writes a critic whose spectrum is
# known and audits it. COMMAND, such as 'kappascope study quick', runs last. RELEASES "here": this machine's wheels, in a
# new virtual environment of it; they have to do, too, where no system can be made, as in some containers.
set -eu
cd "$(dirname "$0")/.."
. tests/chroot.sh

releases=${1:-trixie}
command=${2:-}
[ "$releases" = here ] || [ "$(id -u)" -eq 0 ] || exec sudo "$PWD/tests/wheel.sh" "$@" # for chroot
if [ "$releases" != here ] && can_chroot; then
    tests/debian.sh bullseye 'export DEBIAN_FRONTEND=noninteractive && apt-get -qq update &&
        apt-get -qq install -y --no-install-recommends clang-11 python3-venv && make wheel AMX_CC=clang-11'
    set -- build/debian/bullseye/kappascope/build/wheel/*.whl tests/wheel_user.sh
    for release in $releases; do
        system=$PWD/build/debian/$release-user
        make_system "$system" "$release" python3-venv,make
        echo "== as a user of $release"
        in_system "$system" 'id user >/dev/null 2>&1 || useradd --create-home user; rm -rf ~user/work; mkdir ~user/work'
        cp "$@" "$system/home/user/work"
        in_system "$system" "chown -R user ~user/work && cd ~user/work && runuser -u user -- ./wheel_user.sh '$command'"
    done
else
    [ "$releases" = here ] ||
        echo "wheel.sh: mounts are not allowed here: tried on this system, which may have what others lack"
    make --no-print-directory wheel
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp build/wheel/*.whl tests/wheel_user.sh "$work"
    (cd "$work" && ./wheel_user.sh "$command")
fi
echo "wheel: all is well"
