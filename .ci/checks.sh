# shellcheck shell=sh
# To be sourced in the root of the repository, by .ci/run and .ci/nightly: checks, each with a line of output and a log
# in build/ci/, in two lanes side by side, as many of them use one core.
mkdir -p build/ci
rm -rf build/ci/*.taken
. src/deps/apt.sh
verdicts=build/ci/verdicts
: >"$verdicts"

check() { # NAME COMMAND...
    name=$1
    shift
    started=$(date +%s)
    status=0
    "$@" >"build/ci/$name.log" 2>&1 || status=$?
    case $status in
    0) verdict=ok ;;
    77) verdict="skipped: $(tail -n 1 "build/ci/$name.log")" ;;
    *)
        verdict=FAILED
        tail -n 40 "build/ci/$name.log"
        ;;
    esac
    echo "$name: $verdict, $(($(date +%s) - started)) s" | tee -a "$verdicts"
}

# A check for the lane that comes to it first.
free() { # NAME COMMAND...
    ! mkdir "build/ci/$1.taken" 2>/dev/null || check "$@"
}

tools() {
    apt_get update && apt_get install -y --no-install-recommends \
        cppcheck clang clang-tidy clang-format libomp-dev valgrind g++ hdf5-tools python3-venv python3-h5py \
        python3-numpy python3-torch python3-matplotlib chromium-headless-shell python3-websocket debootstrap &&
        /usr/bin/python3 -m venv --system-site-packages build/ci/python &&
        build/ci/python/bin/pip install --quiet --disable-pip-version-check msgpack safetensors
}

# With the packages that `kappascope import` may use.
with_packages() { # COMMAND...
    PYTHON=$PWD/build/ci/python/bin/python "$@"
}

# Prints "N passed, N failed"; fails if a check failed.
count_checks() {
    failed=$(grep -c ': FAILED, ' "$verdicts")
    grep ': skipped: ' "$verdicts"
    echo "$(grep -c ': ok, ' "$verdicts") passed, $failed failed"
    [ "$failed" -eq 0 ]
}
