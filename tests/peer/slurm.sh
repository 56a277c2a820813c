#!/bin/sh
# Usage: tests/peer/slurm.sh
#
# Runs a small study on a real Slurm: one slurmctld and two slurmd on this machine, in
# BUILD/peer/slurm. On the way one run reaches its time limit, the node of another one is lost, and
# a third one fails. After the cause is removed, the study is submitted again. In the end its tables
# (but for efficiency.csv, which has measured speeds) must be, byte for byte, those of the same study
# run here by make. Installs Slurm if it is missing.
set -eu
cd "$(dirname "$0")/../.."
. src/deps/apt.sh

build=$(realpath "${BUILD:-build}")
top=$build/peer/slurm
missing=
for package in slurmctld slurmd slurm-client; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
    apt_get update
    # shellcheck disable=SC2086
    apt_get install -y --no-install-recommends $missing
fi
make --no-print-directory deps
make --no-print-directory BUILD="$build" programs
study=$build/bin/kappascope-study
folder=$top/cluster
rm -rf "$top"
mkdir -p "$top/state" "$top/spool.node1" "$top/spool.node2"
export SLURM_CONF="$top/slurm.conf"

say() {
    echo "$(date +%T) $*"
}
fail() {
    say "FAILED: $*"
    exit 1
}

# --- a cluster of two nodes with one processor each ---

configure() {
    user=$(id -un)
    cat >"$SLURM_CONF" <<END
ClusterName=kappascope
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=16817
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
StateSaveLocation=$top/state
SlurmdSpoolDir=$top/spool.%n
SlurmctldPidFile=$top/slurmctld.pid
SlurmdPidFile=$top/slurmd.%n.pid
SlurmctldLogFile=$top/slurmctld.log
SlurmdLogFile=$top/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdTimeout=6
KillWait=5
ReturnToService=2
NodeName=node1 NodeHostname=localhost Port=16821 CPUs=1
NodeName=node2 NodeHostname=localhost Port=16822 CPUs=1
PartitionName=main Nodes=node1,node2 Default=YES
END
    printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$top/cgroup.conf"
}

end_cluster() {
    scancel --quiet --me 2>/dev/null || true
    sleep 1
    for name in slurmd.node1 slurmd.node2 slurmctld; do
        [ ! -e "$top/$name.pid" ] || kill "$(cat "$top/$name.pid")" 2>/dev/null || true
    done
    [ -z "${reference:-}" ] || kill "$reference" 2>/dev/null || true
}

# Runs the command again and again until it succeeds, for at most SECONDS.
await() { # SECONDS WHAT COMMAND...
    end=$(($(date +%s) + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$end" ] || fail "$what: waited in vain"
        sleep 0.1
    done
}

two_idle() {
    [ "$(sinfo --noheader --format=%D --states=idle)" = 2 ]
}
idle_queue() {
    [ -z "$(squeue --noheader)" ]
}
one_exists() {
    [ -e "$1" ]
}

# --- processes of the study's tasks: their working directory is the study's folder ---

works_here() { # PID
    [ "$(readlink "/proc/$1/cwd")" = "$folder" ]
}

# Prints the process that trains this run.
trainer() { # RUN
    for process in /proc/[0-9]*; do
        pid=${process#/proc/}
        if works_here "$pid" && tr '\0' '\n' <"$process/cmdline" | grep -qx -- "--out=$1"; then
            echo "$pid"
            return
        fi
    done 2>/dev/null
    return 1
}

# Pauses the training after its first checkpoint, so that it cannot finish before it is disturbed, on
# any machine. Writes the process into the file PID.
pause() { # RUN PID
    await 60 "$1" one_exists "$folder/$1/step_000004000.h5"
    trainer "$1" >"$2" || fail "$1 was too short"
    kill -STOP "$(cat "$2")"
}

# Whether SIGTERM waits for a stopped process.
has_pending_term() { # PID
    pending=$(sed -n 's/^ShdPnd:\t*//p' "/proc/$1/status")
    [ $((0x$pending & 1 << 14)) -ne 0 ]
}

# Kills a node as a loss of power does: slurmd, its steps and all their processes.
kill_node() { # NODE
    kill -KILL "$(cat "$top/slurmd.$1.pid")"
    for process in /proc/[0-9]*; do
        pid=${process#/proc/}
        if works_here "$pid" && tr '\0' '\n' <"$process/environ" | grep -qx "SLURMD_NODENAME=$1"; then
            echo "$pid"
            parent=$(sed -n 's/^PPid:\t*//p' "$process/status")
            case $(tr '\0' ' ' <"/proc/$parent/cmdline") in slurmstepd*) echo "$parent" ;; esac
        fi
    done 2>/dev/null >"$top/node.pids"
    [ -s "$top/node.pids" ] || fail "no process of $1 was found"
    # shellcheck disable=SC2046
    kill -KILL $(sort -u "$top/node.pids") 2>/dev/null || true
}

# --- the study ---

write_study() {
    cat >"$top/tiny.study" <<'END'
[study]
env = cartpole-swingup
architectures = bn+wn+ce ln+mse dense+mse
seeds = 0
steps = 16000
[train]
hidden = 16
depth = 2
actor_hidden = 16
actor_depth = 2
batch = 64
random_steps = 100
replay = 8000
checkpoints = 4
evaluations = 4
eval_episodes = 1
analysis_minibatches = 2
threads = 1
[analyze]
order = 30
[analyze xqc]
compat = xqc
order = 20
END
}

submit() { # OPTION...
    "$study" "$top/tiny.study" --out "$folder" --slurm --sbatch=--time=20 "$@"
}

# Sets $array to the number of the array of trainings.
find_array() {
    array=$(squeue --noheader --array --format='%F %j' | sed -n 's/ tiny:train$//p' | sort -un | tail -n 1)
    [ -n "$array" ] || fail "no array of trainings is in the queue"
}

# The restarts of a task, as slurmctld counts them.
was_restarted() { # RUN
    scontrol show job "${array}_$1" | grep -Eq 'Restarts=[1-9]'
}

write_study
configure
trap end_cluster EXIT
slurmctld
slurmd -N node1
slurmd -N node2
"$study" "$top/tiny.study" --out "$top/here" --jobs 1 --quiet >"$top/here.log" 2>&1 &
reference=$!
await 30 "two nodes" two_idle

say "submission; the third run will find a damaged file in its folder"
runs=runs/cartpole-swingup
mkdir -p "$folder/$runs/dense+mse/seed0"
echo '{"env": ' >"$folder/$runs/dense+mse/seed0/run.json"
submit --keep-going
find_array
pause "$runs/bn+wn+ce/seed0" "$top/limited" &
pause "$runs/ln+mse/seed0" "$top/lost"
wait $!
scontrol update JobId="${array}_0" TimeLimit=1
if "$study" "$top/tiny.study" --out "$folder" 2>"$top/refusal"; then
    fail "a second study ran in the same folder"
fi
grep -q "scancel $array" "$top/refusal" || fail "expected a refusal, found: $(cat "$top/refusal")"
node=$(squeue --noheader --array --jobs="${array}_1" --format=%N)
kill_node "$node"
say "$node is lost with the second run"
"$study" "$top/tiny.study" --out "$folder" --status

await 60 "the node's loss" was_restarted 1
say "Slurm has noticed it, and requeued the run"
slurmd -N "$node"
await 60 "the time limit" has_pending_term "$(cat "$top/limited")"
say "the first run reaches its time limit"
kill -CONT "$(cat "$top/limited")"
await 60 "the requeue" was_restarted 0
scontrol update JobId="${array}_0" TimeLimit=20
await 120 "the end of the queue" idle_queue

grep -q "stopped before the time limit, requeued" "$folder/slurm/train-${array}_0.log" ||
    fail "the first run was not stopped before its limit"
grep -q '"resumed": "' "$folder/$runs/bn+wn+ce/seed0/run.json" || fail "the first run did not resume"
grep -q "expected the description of a run" "$folder/$runs/dense+mse/seed0/train.log" ||
    fail "the third run did not fail"
[ -z "$(ls "$folder/$runs/dense+mse/seed0/"*.spectrum.h5 2>/dev/null)" ] || fail "it was analyzed"
[ -e "$folder/report.html" ] || fail "nothing was plotted"
"$study" "$top/tiny.study" --out "$folder" --status

say "without the damaged file, the same command submits what is missing"
rm "$folder/$runs/dense+mse/seed0/run.json"
submit --dry-run >"$top/commands"
cat "$top/commands"
[ "$(grep -c -- '--array=2 ' "$top/commands")" = 2 ] || fail "expected two arrays of the third run"
[ "$(grep -c sbatch "$top/commands")" = 3 ] || fail "expected three jobs"
submit
await 120 "the end of the queue" idle_queue
"$study" "$top/tiny.study" --out "$folder" --status

wait "$reference" || fail "the study that make ran: $(tail -n 1 "$top/here.log")"
reference=
for table in "$top/here/tables/"*.csv; do
    [ "${table##*/}" = efficiency.csv ] && continue # it has measured speeds
    cmp "$table" "$folder/tables/${table##*/}" || fail "${table##*/} differs"
done
[ "$(ls "$top/here/figures")" = "$(ls "$folder/figures")" ] || fail "plots are missing"
say "the tables are the same"
