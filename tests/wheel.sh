#!/bin/sh
# Usage: tests/wheel.sh [RELEASE [COMMAND]]
#
# Makes the wheel (make wheel) and installs it where nothing else is: as an ordinary user of a new system of that
# release of Debian (default: the next one, which has another glibc), with python3-venv and make and no further package.
# There the package writes a critic whose spectrum is known and audits it. COMMAND, such as 'kappascope study quick',
# runs last. Where no system can be made, as in some containers, a new virtual environment of this machine has to do.
set -eu
cd "$(dirname "$0")/.."
. tests/chroot.sh

[ "$(id -u)" -eq 0 ] || exec sudo "$PWD/tests/wheel.sh" "$@" # for chroot
release=${1:-trixie}
command=${2:-}
make --no-print-directory wheel
set -- build/wheel/kappascope-*.whl tests/wheel_user.sh
if can_chroot; then
    system=$PWD/build/debian/$release-user
    make_system "$system" "$release" python3-venv,make
    in_system "$system" 'id user >/dev/null 2>&1 || useradd --create-home user; rm -rf ~user/work; mkdir ~user/work'
    cp "$@" "$system/home/user/work"
    in_system "$system" "chown -R user ~user/work && cd ~user/work && runuser -u user -- ./wheel_user.sh '$command'"
else
    echo "wheel.sh: mounts are not allowed here: tried on this system, which may have what others lack"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp "$@" "$work"
    (cd "$work" && ./wheel_user.sh "$command")
fi
echo "wheel: all is well"
