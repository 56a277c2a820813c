#!/bin/sh
# Usage: plots/gallery/runs.sh pack STUDYFOLDER NAME
#        plots/gallery/runs.sh restore NAME STUDYFOLDER
#
# pack: for each complete run of a study's folder, run.json, progress.csv and the spectra go to
# plots/gallery/NAME/runs/ARCHITECTURE-SEED.tar.xz, and study.study beside the folder runs. Left out is each spectrum's
# group /density, which no table or plot reads. The same runs give the same bytes. An existing folder NAME/runs is replaced.
# restore: makes a folder of them, which `kappascope study` continues and `kappascope plot` draws.
# Both write into a folder "runs.XXXXXX" beside the result, and move it when all is written.
#
# Needs tar and xz; pack also kappascope in the PATH, h5repack (hdf5-tools) and Python with h5py (python3-h5py). The
# environment may set GALLERY, a folder in place of plots/gallery, and PYTHON.
set -eu
gallery=${GALLERY:-$(dirname "$0")}

die() {
    echo "runs.sh: $*" >&2
    exit 1
}

# "ENV/ARCHITECTURE/seedS" of the runs that are over and have all their spectra.
complete_runs() {
    run='^\([^ ]*/seed[0-9]*\)  *checkpoints .*spectra  *\([0-9]*\)/\2 '
    kappascope inspect "$1" >"$work/inspected" || exit
    sed -n -e "s|$run *finished\$|\1|p" -e "s|$run *stopped at step [0-9]*\$|\1|p" "$work/inspected"
}

# Copies the spectra of run $1 into folder $2, without /density and without compression, which xz does better.
copy_spectra() {
    for spectrum in "$1"/step_*.spectrum.h5; do
        cp "$spectrum" "$work/whole.h5"
        "${PYTHON:-python3}" -c 'import sys, h5py
with h5py.File(sys.argv[1], "r+") as f:
    f.pop("density", None)' "$work/whole.h5"
        h5repack -f NONE -l CONTI "$work/whole.h5" "$2/${spectrum##*/}"
    done
}

pack() {
    [ -f "$1/study.study" ] || die "$1: expected a study's folder, found no study.study in it"
    runs=$(complete_runs "$1")
    [ -n "$runs" ] || die "$1: no run is complete"
    mkdir -p "$gallery/$2"
    beside=$(mktemp -d "$gallery/$2/runs.XXXXXX")
    mkdir "$beside/runs"
    for run in $runs; do
        seed=${run##*/seed}
        architecture=${run%/*}
        folder=runs/$run
        mkdir -p "$work/$folder"
        cp "$1/$folder/run.json" "$1/$folder/progress.csv" "$work/$folder"
        copy_spectra "$1/$folder" "$work/$folder"
        tar -C "$work" --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
            --mode=u=rwX,go=rX -cf "$work/run.tar" "$folder"
        xz -9e -T1 <"$work/run.tar" >"$beside/runs/${architecture##*/}-$seed.tar.xz"
        rm -r "$work/runs"
    done
    cp "$1/study.study" "$beside/study.study"
    [ ! -e "$gallery/$2/runs" ] || mv "$gallery/$2/runs" "$beside/old"
    mv "$beside/runs" "$beside/study.study" "$gallery/$2"
    du -ch "$gallery/$2"/runs/*.tar.xz | tail -n 1
}

restore() {
    [ -d "$gallery/$1/runs" ] || die "$gallery/$1/runs: does not exist"
    [ ! -e "$2" ] || die "$2: exists"
    mkdir -p "$(dirname "$2")"
    beside=$(mktemp -d "$(dirname "$2")/runs.XXXXXX")
    mkdir "$beside/study"
    for run in "$gallery/$1"/runs/*.tar.xz; do
        xz -dc "$run" >"$work/run.tar"
        tar -C "$beside/study" -xf "$work/run.tar"
    done
    cp "$gallery/$1/study.study" "$beside/study"
    mv -T "$beside/study" "$2"
}

[ $# -eq 3 ] || die "expected pack STUDYFOLDER NAME or restore NAME STUDYFOLDER"
work=$(mktemp -d)
beside=
trap 'rm -rf "$work" ${beside:+"$beside"}' EXIT
case $1 in
pack) pack "$2" "$3" ;;
restore) restore "$2" "$3" ;;
*) die "expected pack or restore, found '$1'" ;;
esac
