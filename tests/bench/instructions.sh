#!/bin/sh
# Usage: tests/bench/instructions.sh PROGRAM [write]
#
# Counts the instructions of a Hessian product and of a cycle of three updates, by tests/bench/instructions.c and
# valgrind, and compares them with those in instructions.txt: unlike seconds, they do not depend on what else the
# machine does. With `write` the numbers there become those counted now. They may differ by 1%; where the compiler or a
# library is of another version than theirs, by 10%.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")"
# OpenBLAS and the C library choose their code by the processor; valgrind's has AVX2 and no AVX-512.
export OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=1

command -v valgrind >/dev/null || { echo "instructions.sh: skipped: valgrind is missing"; exit 77; }

counted() { # WHAT TIMES
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
        sed -n 's/.*I *refs: *//p' | tr -d ,
}

# The set-up is the same for once and for twice.
found() {
    echo "versions $("$program" versions)"
    for what in product update; do
        echo "$what $(($(counted $what 2) - $(counted $what 1)))"
    done
}

if [ "${2:-}" = write ]; then
    { grep '^#' instructions.txt && found; } >instructions.new
    mv instructions.new instructions.txt
    exit
fi
found | awk '
    FNR == NR { expected[$1] = $0; next }
    $1 == "versions" { most = $0 == expected["versions"] ? 1 : 10; print; next }
    {
        split(expected[$1], words)
        change = 100 * ($2 / words[2] - 1)
        printf "%s: %d instructions, expected %d: %+.2f%% (at most %d%%)\n", $1, $2, words[2], change, most
        wrong += change > most || change < -most
    }
    END { exit wrong > 0 }' instructions.txt - ||
    { echo "instructions.sh: if this change is meant, make it the new number" >&2 && exit 1; }
