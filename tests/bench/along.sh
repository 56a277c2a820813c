#!/bin/sh
# Usage: tests/bench/along.sh [SETTING...]
#
# What `--start-at` saves along a training run: the products that the largest eigenvector (to a relative residual
# of 0.01) of the run's last checkpoint takes from a random start, and from the eigenvector of a checkpoint so
# many updates earlier. Trains ARCH on ENV for STEPS environment steps: 2,500 with random actions, then one update
# per step. There is a checkpoint every 100 steps. SETTING: of `kappascope train --set`.
#
# Environment: ENV (walker-run), ARCH (bn+wn+ce), STEPS (12000), BATCHES, the number of minibatches (4), BUILD
# (build).
set -eu
cd "$(dirname "$0")/../.."

build=${BUILD:-build}
steps=${STEPS:-12000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset OPENBLAS_CORETYPE
settings=
for setting in random_steps=2500 "checkpoints=$((steps / 100))" evaluations=0 "analysis_minibatches=${BATCHES:-4}" "$@"; do
    settings="$settings --set $setting"
done
make --silent deps
make --silent BUILD="$build" programs
# shellcheck disable=SC2086
"$build/bin/kappascope-train" --quiet --env "${ENV:-walker-run}" --arch "${ARCH:-bn+wn+ce}" --steps "$steps" \
    $settings --out "$folder"

# Prints the Lanczos steps, each one product, and the eigenvalue; the vector is written to the file VECTOR.
largest() { # STEP VECTOR [OPTION...]
    checkpoint=$folder/step_$(printf %09d "$1").h5 vector=$2
    shift 2
    "$build/bin/kappascope-analyze" --quiet --csv --eigenvectors 1 --tolerance 0.01 --output "$vector" "$@" \
        "$checkpoint" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["steps"] ", " $at["eigenvalue"] }'
}

echo "updates between the checkpoints, products, eigenvalue"
echo "random start, $(largest "$steps" "$folder/random.h5")"
for gap in 0 100 200 500 1000 2000 5000; do
    [ "$gap" -gt $((steps - 2500)) ] && break
    largest $((steps - gap)) "$folder/earlier.h5" >"$folder/spent"
    echo "$gap, $(largest "$steps" "$folder/later.h5" --start-at "$folder/earlier.h5")"
done
