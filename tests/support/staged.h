/* Texts of studies; a study of two runs in the scratch folder and its graph. Shell scripts take the
 * place of the training and analysis programs, and of sbatch, squeue, scancel and scontrol. */
#ifndef KS_TEST_STAGED_H
#define KS_TEST_STAGED_H

#include "programs.h"

#include "study/graph.h"
#include "study/study_file.h"

static const char GOOD[] = "; a comment\n"
                           "[study]\n"
                           "env = walker-run\n"
                           "architectures = bn+wn+ce, dense+mse\n"
                           "seeds = 3 0..1\n"
                           "steps = 1000\n"
                           "missing = drop\n"
                           "[train]\n"
                           "checkpoints = 3\n"
                           "random_steps = 100 ; agent steps\n"
                           "evaluations = 2\n"
                           "gamma = auto\n"
                           "hidden = 16\n"
                           "actor_hidden = 16\n"
                           "[analyze]\n"
                           "order = 30\n"
                           "exact = no\n"
                           "precision = f64\n";

/* Reads the study that this text describes, which may be wrong. */
ks_status study_of_text(const char *text, struct ks_study **study);
/* One that must be right. */
struct ks_study *good_study(const char *text);

static const char TWO_RUNS[] =
    "[study]\nenv = toy\narchitectures = bn+ce ln+ce\nseeds = 0\nsteps = 8\n"
    "[train]\ncheckpoints = 2\nrandom_steps = 1\n";

/* Writes its checkpoints, run.json and a line to the file "calls"; after the first checkpoint it
 * runs the script "behave". */
static const char FAKE_TRAIN[] =
    "#!/bin/sh\n"
    "for word; do case $word in --out=*) out=${word#--out=} ;; "
    "--arch=*) arch=${word#--arch=} ;; esac; done\n"
    "[ \"$OMP_NUM_THREADS\" = 1 ] && [ \"$MAKELEVEL\" -le 2 ] || exit 9\n"
    "echo \"train $arch $$ $out\" >>calls\n"
    "mkdir -p $out\n"
    "printf '{\\n  \"state\": \"running\",\\n  \"env_step\": 0\\n}\\n' >$out/run.json\n"
    ": >$out/step_000000002.h5\n"
    ". ./behave\n"
    ": >$out/step_000000004.h5\n"
    ": >$out/step_000000008.h5\n"
    "printf '{\\n  \"state\": \"finished\",\\n  \"env_step\": 8\\n}\\n' >$out/run.json\n";

static const char FAKE_ANALYZE[] = "#!/bin/sh\n"
                                   "for word; do last=$word; done\n"
                                   "[ -e $last ] || exit 3\n"
                                   "echo \"analyze $last\" >>calls\n"
                                   ": >${last%.h5}.spectrum.h5\n";

struct stage {
    struct ks_study *study;
    struct ks_graph *graph;
};

void write_script(const char *name, const char *text);
/* A study and its graph, which is written. */
struct stage stage_of(const char *text);
/* That of TWO_RUNS, with the programs that it runs. */
struct stage stage_new(const char *behaviour);
bool job_is_done(struct ks_graph *graph, size_t i);

void nap(void); /* 20 ms */
/* Waits until the file exists, at most ten seconds. */
void wait_for(const char *name);

/* What a training leaves that has finished. */
void write_trained(const struct ks_graph_job *training);

/* Runs the printed commands in a shell. */
void run_printed(const struct stage *stage);
struct stage stage_with_slurm(const char *behaviour);

/* How the study is submitted; for callers that include study/slurm.h. */
#define QUIETLY ((struct ks_slurm){.plot = "/bin/plot", .quiet = true})

#endif
