# shellcheck shell=sh
# Finds or installs PyTorch and JAX; sourced, from the root of the repository, by scripts that set `build` and `python` (which
# makes virtual environments) and define `die`. Environment: TORCH.
jax=0.10.2
flax=0.12.8
environment=$build/peer/jax-$jax
. src/deps/apt.sh

has_torch() { "$1" -c 'import torch, h5py' 2>/dev/null; }

find_torch() { # sets torch: a Python that has PyTorch and h5py
    for torch in ${TORCH:-python3 /usr/bin/python3}; do
        ! has_torch "$torch" || return 0
    done
    return 1
}

install_torch() {
    [ -z "${TORCH:-}" ] || die "$TORCH does not have both PyTorch and h5py"
    command -v apt-get >/dev/null || die "install PyTorch and h5py, and set TORCH to their Python"
    echo "installing python3-torch python3-h5py" >&2
    apt_get update || true
    apt_get install -y --no-install-recommends python3-torch python3-h5py ||
        die "apt-get could not install PyTorch and h5py (see its messages above): set TORCH" \
            "to a Python that has them"
    find_torch || die "PyTorch is installed, but neither python3 nor /usr/bin/python3 imports it"
}

pip_install() { # PACKAGE...: into the environment of JAX
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: "jax==$jax" "$@" ||
        die "cannot install $* (see pip's messages above): set PYTHON to a version for which they have wheels"
}

install_jax() {
    [ ! -f "$environment/ready" ] || return 0
    "$python" -m venv "$environment" ||
        die "$python cannot create a virtual environment: install python3-venv"
    pip_install h5py
    touch "$environment/ready"
}

install_flax() {
    install_jax
    "$environment/bin/python" -c "import flax; assert flax.__version__ == '$flax'" 2>/dev/null || pip_install "flax==$flax"
}
