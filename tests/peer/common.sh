# shellcheck shell=sh disable=SC2154 # the sourcing script sets folder
# What the comparisons share; sourced, from the root of the repository. Environment: BUILD, PYTHON.
build=${BUILD:-build}
python=${PYTHON:-python3}

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

build_here() { # TARGET...
    make --no-print-directory deps >&2
    make --no-print-directory BUILD="$build" "$@" >&2
}

find_python() { # MODULES PACKAGES: sets python to $PYTHON, python3 or Debian's, whichever has these modules
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        ! "$python" -c "import $1" 2>/dev/null || return 0
    done
    die "no Python has $1: install $2, or set PYTHON to one that has them"
}

find_h5py() { # sets python to one that has h5py, in an environment of its own if there is no other
    for python in python3 /usr/bin/python3 "$build/peer/h5py/bin/python"; do
        ! "$python" -c 'import h5py' 2>/dev/null || return 0
    done
    python3 -m venv "$build/peer/h5py"
    "$python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: h5py
}

make_venv() { # PACKAGE...: the virtual environment $folder/venv with these packages, if there is none yet
    [ ! -f "$folder/ready" ] || return 0
    mkdir -p "$folder"
    "$python" -m venv "$folder/venv" ||
        die "$python cannot create a virtual environment: install python3-venv"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: "$@" ||
        die "cannot install $* (see pip's messages above): set PYTHON to a version for which they have wheels"
    touch "$folder/ready"
}

pin() { # NAME: its lines of wheels.txt
    sed -n "/^$1==/,/[^\\]\$/p" src/deps/wheels.txt
}

version() { # NAME: its version there
    pin "$1" | sed -n 's/^[^=]*==\([^ ]*\).*/\1/p'
}

replay() { # TASK...: replays what was recorded in $folder
    # shellcheck disable=SC2046 # a list of words
    "$build/peer/replay" $(printf "$folder/%s.trajectory " "$@")
}
