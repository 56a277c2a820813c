#!/bin/sh
# Usage: tests/support/run.sh FOLDER PROGRAM...
#
# Runs test programs with a thread each, $JOBS at a time; then prints which were the slowest, which failed, and how many
# passed. A program is skipped if it ends with the status 77. FOLDER/times keeps each program's status and time.
#
# Where OpenBLAS chooses a slow kernel, the programs start again with a faster one. Test programs do not, so the faster
# kernel is set for all.
set -eu
version=$("$KS_BIN/kappascope-analyze" --version)
export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-$(echo "$version" | sed -n 's/^OpenBLAS .*, kernel //p')}"
export TIMES="$1/times" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
shift
[ $# -gt 0 ] || { echo 'no test has this name' >&2; exit 1; }

: >"$TIMES"
printf '%s\n' "$@" | xargs -n 1 -P "$JOBS" tests/support/one.sh
echo 'the slowest, in seconds:'
sort -k 2 -n -r "$TIMES" | head -n 10 | awk '{ printf "%8.1f  %s\n", $2 / 1000, $3 }'
awk -v programs=$# '
    $1 == 0 { passed++ }
    $1 == 77 { skipped++ }
    $1 != 0 && $1 != 77 { printf "failed: %s (output in %s.log)\n", $3, $3 }
    END {
        failed = programs - passed - skipped
        printf "%d of %d test programs passed, %d failed, %d skipped\n", passed, programs, failed, skipped
        exit failed > 0
    }' "$TIMES" >&2
