# shellcheck shell=sh disable=SC2154
# What follows is configs/slurm/task.sh of kappascope; the lines above set kind, plot, make, options
# and, as arguments, the folders of the runs.
if [ "$kind" = plot ]; then
    exec "$plot" .
fi
shift "$SLURM_ARRAY_TASK_ID"
run=$1

# A task that was lost with its node may still be alive there when it starts again here. All
# processes of the task hold this lock. flock exits with 1 if the time is over, and with more where
# the file system has no locks.
mkdir -p "$run" || exit
exec 9>>"$run/slurm.lock" || exit
flock --wait 600 9
if [ $? -eq 1 ]; then
    echo "$run: locked by another node"
    exit 1
fi

# The program's exit status does not tell whether it was stopped or has failed; that it was asked to
# stop, and got further than at the start of the task, does.
progress() {
    grep '"env_step"' "$run/run.json"
    ls "$run"
}
before=$(progress 2>/dev/null)
child='' limit=''
# Slurm sends USR1 before the time limit. It sends TERM, when the job is cancelled or preempted,
# to make and its programs, too.
trap 'limit=1; [ -z "$child" ] || kill -TERM "$child"' USR1
trap : TERM
# shellcheck disable=SC2086 # options are words
"$make" -f study.mk -r -R --no-print-directory $options -j"${SLURM_CPUS_PER_TASK:-1}" \
    "$kind-$SLURM_ARRAY_TASK_ID" &
child=$!
[ -z "$limit" ] || kill -TERM "$child"
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do # a signal has ended `wait`
    wait "$child"
    code=$?
done

if [ "$code" -ne 0 ] && [ -n "$limit" ]; then
    if [ "$(progress 2>/dev/null)" = "$before" ]; then
        echo "$run: no progress within the time limit: a longer one is needed (--sbatch=--time=...)"
        exit 1
    fi
    echo "$run: stopped before the time limit, requeued"
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit "$code"
