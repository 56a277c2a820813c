#!/bin/sh
# Installs into an empty prefix from a copy of the source tree, takes the copy away, and uses what is
# installed: every program, and the library from C and from C++, with pkg-config alone.
set -eu
cd "$(dirname "$0")/.."
unset MUJOCO_DIR DM_CONTROL_DIR GYMNASIUM_DIR MYOSUITE_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

say() { echo "== $*"; }
die() {
    echo "FAILED: $*" >&2
    exit 1
}

say "install from a copy of the source"
mkdir -p "$work/source/build"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/source"
[ ! -d build/deps ] || cp -R build/deps "$work/source/build"
make -C "$work/source" -j"$(nproc)" install PREFIX="$prefix"
mv "$work/source" "$work/away"
chmod -R a-w "$prefix"
find "$prefix" | sed "s|$prefix|PREFIX|" | grep -v -e dm_control/suite/ -e myosuite/simhive/ | sort

say "programs"
PATH=$prefix/bin:$PATH
cd "$work"
for program in kappascope kappascope-train kappascope-analyze kappascope-study kappascope-plot \
    kappascope-inspect kappascope-audit; do
    [ "$(command -v $program)" = "$prefix/bin/$program" ] || die "$program is not in the prefix"
    $program --version
done
kappascope train --quiet --env dog-trot --arch bn+wn+ce --seed 0 --out run --set hidden=16 \
    --set random_steps=100 --set batch=16 --set analysis_minibatches=2 --stop-at 200
kappascope train --quiet --env Hopper-v4 --arch bn+wn+ce --seed 0 --out hopper --set hidden=16 \
    --set random_steps=100 --set batch=16 --set analysis_minibatches=2 --stop-at 20
[ ! -d "$prefix/lib/kappascope/myosuite" ] ||
    kappascope train --quiet --env myo-pose --arch bn+wn+ce --seed 0 --out pose --set hidden=16 \
        --set random_steps=100 --set batch=16 --set analysis_minibatches=2 --stop-at 20
checkpoint=$(find run -name 'step_*.h5' | sort | tail -n 1)
[ -n "$checkpoint" ] || die "training wrote no checkpoint"
kappascope analyze --quiet --order 10 -o spectra "$checkpoint"
kappascope import --version # needs python3-numpy and python3-h5py
kappascope study quick --dry-run --out study | tail -n 3
kappascope plot --help >plot.txt

say "manual pages"
for program in kappascope 'kappascope\-train' 'kappascope\-analyze' 'kappascope\-study' 'kappascope\-plot' \
    'kappascope\-scores' 'kappascope\-inspect' 'kappascope\-audit' 'kappascope\-import'; do
    page=$prefix/share/man/man1/$(echo "$program" | tr -d '\\').1
    for line in "$program \\- " '.SH SYNOPSIS' '  \-h, \-\-help ' '.SH EXIT STATUS'; do
        grep -qF -e "$line" "$page" || die "$page: expected '$line'"
    done
done

say "names that the libraries export"
nm -D --defined-only "$prefix/lib/libkappascope.so" | awk '{ print $3 }' >shared.names
nm --extern-only --defined-only "$prefix/lib/libkappascope.a" | awk 'NF == 3 { print $3 }' >static.names
grep -o 'kappascope_[a-z_0-9]*(' "$prefix/include/kappascope.h" | tr -d '(' | sort -u >header.names
for names in shared static; do
    sort -u $names.names | cmp - header.names ||
        die "the $names library exports other names than the header has"
done
wc -l <header.names
ldd "$prefix/lib/libkappascope.so" | grep mujoco && die "the library needs MuJoCo"

say "the example, as C and as C++, with pkg-config alone"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
strict="-Wall -Wextra -Wpedantic -Werror"
example=$work/away/tests/example/laplacian.c
# shellcheck disable=SC2046,SC2086 # lists of words
{
    cc -std=c11 $strict "$example" -o c $(pkg-config --cflags --libs kappascope) -lm
    c++ -std=c++11 $strict -x c++ "$example" -x none -o cpp $(pkg-config --cflags --libs kappascope)
    cc -std=c11 $strict "$example" -o static $(pkg-config --cflags kappascope) \
        "$prefix/lib/libkappascope.a" $(pkg-config --static --libs kappascope |
            sed 's/-lkappascope//') -lm
}
for way in c cpp static; do
    LD_LIBRARY_PATH=$prefix/lib ./$way
done
ldd ./static | grep kappascope && die "the static example needs the shared library"

say "uninstall"
chmod -R u+w "$prefix"
make -C "$work/away" uninstall PREFIX="$prefix"
[ -z "$(find "$prefix" ! -type d)" ] || die "uninstall leaves $(find "$prefix" ! -type d)"
echo "install: all is well"
