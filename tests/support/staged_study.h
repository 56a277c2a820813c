/* A study of two runs in the scratch folder and its graph. Shell scripts take the place of the
 * training and analysis programs. */
#ifndef KS_TEST_STAGED_STUDY_H
#define KS_TEST_STAGED_STUDY_H

#include "said.h"
#include "study_text.h"

#include "study/graph.h"

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

static inline void write_script(const char *name, const char *text)
{
    tree_write(name, text);
    assert_int_equal(chmod(tree_path(name), 0755), 0);
}

static inline ks_status new_graph(const struct ks_study *study, struct ks_graph **graph)
{
    const struct ks_graph_programs programs = {.train = tree_path("bin/fake train"),
                                               .analyze = tree_path("bin/fake-analyze")};

    return ks_graph_new(study, &programs, graph);
}

static inline struct stage stage_new(const char *behaviour)
{
    struct stage stage = {NULL, NULL};

    tree_write("calls", "");
    tree_write("behave", behaviour);
    write_script("bin/fake train", FAKE_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    assert_ok(read_text(TWO_RUNS, &stage.study));
    assert_ok(new_graph(stage.study, &stage.graph));
    assert_ok(ks_graph_write(stage.graph, tree));
    return stage;
}

static inline void stage_free(struct stage *stage)
{
    ks_graph_free(stage->graph);
    ks_study_free(stage->study);
}

static inline bool job_is_done(const struct ks_graph *graph, size_t i)
{
    bool *done = NULL, is_done;

    assert_ok(ks_graph_done(graph, tree, &done));
    is_done = done[i];
    free(done);
    return is_done;
}

/* What a training leaves that has finished. */
static inline void write_trained(const struct ks_graph_job *training)
{
    char path[256];

    snprintf(path, sizeof path, "%s/run.json", training->folder);
    tree_write(path, "{\n  \"state\": \"finished\",\n  \"env_step\": 8\n}\n");
    for (size_t i = 0; i < training->n_targets; i++)
        tree_write(training->target[i], "");
}

/* Runs the printed commands in a shell. */
static inline void run_printed(const struct stage *stage)
{
    char command[600];
    FILE *out = fopen(tree_path("commands"), "w");

    assert_non_null(out);
    assert_ok(ks_graph_print(stage->graph, tree, tree_path("some.study"),
                             tree_path("bin/fake plot"), out));
    assert_int_equal(fclose(out), 0);
    snprintf(command, sizeof command, "MAKELEVEL=1 sh -e %s 2>%s", tree_path("commands"),
             tree_path("said"));
    assert_int_equal(system(command), 0);
}

#endif
