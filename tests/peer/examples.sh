#!/bin/sh
# Usage: tests/peer/examples.sh
#
# Runs the programs of analysis/examples as its README says: SAC in PyTorch and in Flax, and
# Stable-Baselines3's; `kappascope study` of each; and the README's loop over models of the past, with returns from
# Stable-Baselines3's evaluations and from TensorBoard's events (examples.py).
#
# Environment: TORCH, PYTHON, BUILD, as for tests/bench/peer/run.sh. What they need is installed in virtual
# environments under BUILD.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
folder=$build/peer/examples
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu
export PYTHONPATH="$PWD/analysis/python:$PWD/analysis/examples"

# Stable-Baselines3 asks for torch>=1.13, and Debian 12's calls itself 1.13.0a0: hence --no-deps. The torch of
# Debian needs a NumPy before 2.
install_sb3() { # sets sb3
    environment_sb3=$build/peer/sb3-2.3.2
    sb3=$environment_sb3/bin/python
    [ ! -f "$environment_sb3/ready" ] || return 0
    rm -rf "$environment_sb3"
    "$torch" -m venv --system-site-packages "$environment_sb3"
    pip="$sb3 -m pip install --quiet --disable-pip-version-check --only-binary=:all:"
    $pip --no-deps stable-baselines3==2.3.2 gymnasium==0.29.1
    $pip "numpy<2" cloudpickle farama-notifications pandas==2.2.3 matplotlib==3.9.4 tensorboard==2.18.0
    touch "$environment_sb3/ready"
}

# The runs of an example, two side by side.
train() { # PYTHON PROGRAM STUDY NAME NAME
    for name in "$4" "$5"; do
        "$1" "analysis/examples/$2" "$folder/$3" "$name" 0 &
        first=$!
        "$1" "analysis/examples/$2" "$folder/$3" "$name" 1 || die "$2 failed"
        wait "$first" || die "$2 failed"
    done
}

. tests/bench/peer/frameworks.sh
find_torch || install_torch
install_flax
"$environment/bin/python" -c 'import gymnasium' 2>/dev/null || pip_install gymnasium==0.29.1
install_sb3
build_here programs
rm -rf "$folder"
mkdir -p "$folder"
train "$sb3" sac_torch.py torch plain layernorm
train "$environment/bin/python" sac_flax.py flax plain layernorm
train "$sb3" sac_sb3.py sb3 relu tanh
for study in torch flax sb3; do
    "$build/bin/kappascope" study --quiet "$folder/$study"
done
"$sb3" tests/peer/examples.py "$build/bin" "$folder"
