/* The graph of a study: order, resumption, failures, interruption. Shell scripts take the place of
 * the training and analysis programs. */
#include "said.h"
#include "study_text.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "study/graph.h"

static const char TWO_RUNS[] =
    "[study]\nenv = toy\narchitectures = bn+ce ln+ce\nseeds = 0\nsteps = 8\n"
    "[train]\ncheckpoints = 2\nrandom_steps = 1\n";

/* Writes its checkpoints and a line to the file "journal"; in between runs the script "behave". */
static const char FAKE_TRAIN[] =
    "#!/bin/sh\n"
    "for word; do case $word in --out=*) out=${word#--out=} ;; "
    "--arch=*) arch=${word#--arch=} ;; esac; done\n"
    "[ \"$OMP_NUM_THREADS\" = 1 ] && [ \"$MAKELEVEL\" = 1 ] || exit 9\n"
    "echo \"train $arch $$\" >>journal\n"
    "mkdir -p $out\n"
    ": >$out/step_000000002.h5\n"
    ". ./behave\n"
    ": >$out/step_000000004.h5\n"
    ": >$out/step_000000008.h5\n";
static const char FAKE_ANALYZE[] = "#!/bin/sh\n"
                                   "for word; do last=$word; done\n"
                                   "[ -e $last ] || exit 3\n"
                                   "echo \"analyze $last\" >>journal\n"
                                   ": >${last%.h5}.spectrum.h5\n";

struct stage {
    struct ks_study *study;
    struct ks_graph *graph;
};

static void write_script(const char *name, const char *text)
{
    tree_write(name, text);
    assert_int_equal(chmod(tree_path(name), 0755), 0);
}

static ks_status new_graph(const struct ks_study *study, struct ks_graph **graph)
{
    const struct ks_graph_programs programs = {.train = tree_path("bin/fake train"),
                                               .analyze = tree_path("bin/fake-analyze")};

    return ks_graph_new(study, &programs, graph);
}

static struct stage stage_new(const char *behaviour)
{
    struct stage stage = {NULL, NULL};

    tree_write("journal", "");
    tree_write("behave", behaviour);
    write_script("bin/fake train", FAKE_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    assert_ok(read_text(TWO_RUNS, &stage.study));
    assert_ok(new_graph(stage.study, &stage.graph));
    assert_ok(ks_graph_write(stage.graph, tree));
    return stage;
}

static void stage_free(struct stage *stage)
{
    ks_graph_free(stage->graph);
    ks_study_free(stage->study);
}

static void test_commands(void **state)
{
    struct ks_study *s = NULL;
    struct ks_graph *g = NULL;
    struct ks_graph_programs programs = {"/opt/it's/train", "analyze", false, 500};

    (void)state;
    assert_ok(read_text(GOOD, &s));
    assert_ok(ks_graph_new(s, &programs, &g));
    assert_int_equal(g->n_runs, 6);
    assert_int_equal(g->n_jobs, 6 + 6 * 4);
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(g->job[i].trains, i < 6); /* the long jobs first */
    assert_string_equal(
        g->job[0].command,
        "'/opt/it'\\''s/train' --env=dog-trot --arch=bn+wn+ce --seed=3 --steps=1000 "
        "--set checkpoints=3 --set random_steps=100 --set evaluations=2 --set "
        "gamma=auto --out=runs/dog-trot/bn+wn+ce/seed3 --resume --quiet");
    assert_string_equal(g->job[6].command,
                        "analyze --order=30 --precision=f64 --memory=500 --quiet "
                        "runs/dog-trot/bn+wn+ce/seed3/step_000000200.h5");
    assert_string_equal(g->job[6].target[0],
                        "runs/dog-trot/bn+wn+ce/seed3/step_000000200.spectrum.h5");
    ks_graph_free(g);
    ks_study_free(s);
    assert_ok(read_text("[study]\nenv=e\narchitectures=bn+ce\nseeds=0\nsteps=9\n[analyze]\n"
                        "memory = 2G\n",
                        &s));
    programs.resume_any = true;
    assert_ok(ks_graph_new(s, &programs, &g));
    assert_non_null(strstr(g->job[0].command, " --resume=any --quiet"));
    assert_non_null(strstr(g->job[1].command, "analyze --memory=2G --quiet "));
    ks_graph_free(g);
    ks_study_free(s);
}

/* Characters that are special to make or the shell reach the programs unchanged; control characters
 * are refused in every input. */
static void test_special_characters(void **state)
{
    static const char name[] = "bin/f $(touch pwned) $$ `touch pwned` # % : ; ' \\ \" ~ *";
    struct ks_graph_programs programs = {.analyze = "analyze"};
    struct ks_study *study = NULL;
    struct ks_graph *g = NULL;

    (void)state;
    tree_write("journal", "");
    tree_write("behave", ":");
    write_script(name, FAKE_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    programs.train = tree_path(name);
    programs.analyze = tree_path("bin/fake-analyze");
    assert_ok(read_text(TWO_RUNS, &study));
    free(study->architecture[0].argument);
    study->architecture[0].argument = strdup("/a $HOME $(touch pwned) #%:/mine.arch");
    assert_ok(ks_graph_new(study, &programs, &g));
    assert_ok(ks_graph_write(g, tree));
    assert_ok(ks_graph_run(g, tree, 1, false, true));
    assert_int_equal(count(tree_text("journal"), "train /a $HOME $(touch pwned) #%:/mine.arch "),
                     1);
    assert_false(tree_has("pwned"));
    ks_graph_free(g);
    free(study->train[0].value);
    study->train[0].value = strdup("2\n\ttouch pwned");
    assert_fails(ks_graph_new(study, &programs, &g), KS_USAGE,
                 "train toy/bn+ce/seed0: expected no control characters, found '");
    assert_null(g);
    ks_study_free(study);
}

/* Runs the printed commands in a shell. */
static void run_printed(const struct stage *stage)
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

/* The printed commands, run by a shell, complete the study. */
static void test_printed_commands(void **state)
{
    struct stage stage = stage_new(":");

    (void)state;
    write_script("bin/fake plot", "#!/bin/sh\n[ $1 = . ] && echo plot >>journal\n");
    run_printed(&stage);
    assert_int_equal(count(tree_text("journal"), "train "), 2);
    assert_int_equal(count(tree_text("journal"), "plot"), 1);
    assert_string_equal(tree_text("study.study"), TWO_RUNS);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_true(ks_graph_is_done(stage.graph, i, tree));
    ks_graph_set_change(stage.graph, 0, (struct ks_graph_change){true, false});
    run_printed(&stage);
    assert_int_equal(count(tree_text("journal"), "train "), 2);
    assert_int_equal(count(tree_text("journal"), "analyze "), 2 * 6);
    stage_free(&stage);
}

/* Acts like kappascope-train: goes on from the existing checkpoints up to --stop-at, and keeps a
 * resume point until the run has finished. The file "kill" makes it exit after its last checkpoint,
 * as SIGKILL would. */
static const char STOPPING_TRAIN[] =
    "#!/bin/sh\n"
    "stop=8\n"
    "for word; do case $word in --out=*) out=${word#--out=} ;; "
    "--arch=*) arch=${word#--arch=} ;; --stop-at=*) stop=${word#--stop-at=} ;; esac; done\n"
    "echo \"train $arch $stop\" >>journal\n"
    "mkdir -p $out/resume\n"
    "describe() { printf '{\\n  \"settings\": {\\n    \"state\": \"none\"\\n  },\\n'\n"
    "  printf '  \"state\": \"%s\",\\n  \"env_step\": %d,\\n  \"update\": 9\\n}\\n' $1 $2; }\n"
    "for step in 2 4 8; do\n"
    "  [ $step -gt $stop ] || [ -e $out/step_00000000$step.h5 ] || : >$out/step_00000000$step.h5\n"
    "done\n"
    "describe running $stop >$out/run.json\n"
    "[ ! -e kill ] || kill -9 $$\n"
    ": >$out/resume/point.$stop\n"
    "if [ $stop = 8 ]; then rm -r $out/resume; describe finished 8 >$out/run.json\n"
    "else describe stopped $stop >$out/run.json; fi\n";

/* The graph of TWO_RUNS with this line in [study]. */
static struct stage stage_until(const char *line)
{
    struct stage stage = {NULL, NULL};
    char text[512];

    write_script("bin/fake train", STOPPING_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    snprintf(text, sizeof text, "[study]\n%s%s", line, TWO_RUNS + strlen("[study]\n"));
    assert_ok(read_text(text, &stage.study));
    assert_ok(new_graph(stage.study, &stage.graph));
    assert_ok(ks_graph_write(stage.graph, tree));
    return stage;
}

static size_t jobs_done(const struct stage *stage)
{
    size_t n = 0;

    for (size_t i = 0; i < stage->graph->n_jobs; i++)
        n += ks_graph_is_done(stage->graph, i, tree);
    return n;
}

/* Runs the graph with this `stop`; checks how many jobs have run since the tree was made. */
static void run_until(const char *line, size_t done_before, size_t trainings, size_t analyses)
{
    struct stage stage = stage_until(line);

    assert_int_equal(jobs_done(&stage), done_before);
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(jobs_done(&stage), stage.graph->n_jobs);
    assert_int_equal(count(tree_text("journal"), "train "), trainings);
    assert_int_equal(count(tree_text("journal"), "analyze "), analyses);
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true)); /* nothing is left to do */
    assert_int_equal(count(tree_text("journal"), "train "), trainings);
    stage_free(&stage);
}

/* Runs that reached `stop` are complete and go on when it is raised or removed, without repeating
 * analyses. An earlier `stop` adds no work. */
static void test_stop(void **state)
{
    (void)state;
    tree_write("journal", "");
    run_until("stop = 2\n", 0, 2, 2);
    assert_non_null(strstr(tree_text("journal"), "train bn+ce 2\n"));
    assert_true(tree_has("runs/toy/bn+ce/seed0/resume"));
    run_until("stop = 4\n", 2, 4, 4); /* the analyses of step 2 */
    run_until("stop = 2\n", 4, 4, 4);
    run_until("stop = 6\n", 4, 6, 4); /* no checkpoint on the way, but the runs must reach `stop` */
    run_until("", 4, 8, 6);
    assert_false(tree_has("runs/toy/bn+ce/seed0/resume"));
    run_until("stop = 4\n", 6, 8, 6);
}

/* All checkpoints exist, but the run did not reach `stop`: it is not complete. */
static void test_killed_before_stop(void **state)
{
    struct stage stage;

    (void)state;
    tree_write("journal", "");
    tree_write("kill", "");
    stage = stage_until("stop = 6\n");
    assert_fails(ks_graph_run(stage.graph, tree, 1, false, true), KS_RUN, "bn+ce/seed0 failed");
    assert_true(tree_has("runs/toy/bn+ce/seed0/step_000000004.h5"));
    assert_int_equal(jobs_done(&stage), 0);
    assert_int_equal(unlink(tree_path("kill")), 0);
    stage_free(&stage);
    run_until("stop = 6\n", 0, 3, 4);
}

/* Exactly the spectra that were made with other options are computed again. */
static void test_stale_spectra(void **state)
{
    struct stage stage = stage_new(":");

    (void)state;
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    ks_graph_set_change(stage.graph, 0, (struct ks_graph_change){true, false});
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_int_equal(ks_graph_is_done(stage.graph, i, tree), stage.graph->job[i].trains);
    assert_int_equal(unlink(tree_path("runs/toy/ln+ce/seed0/step_000000004.spectrum.h5")), 0);
    assert_ok(ks_graph_remove_stale(stage.graph, tree));
    assert_false(tree_has("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(count(tree_text("journal"), "train "), 2);
    assert_int_equal(count(tree_text("journal"), "analyze "), 2 * 6);
    stage_free(&stage);
}

static const char *const kept_steps[] = {"runs/toy/bn+ce/seed0/step_000000002.probe0.basis",
                                         "runs/toy/bn+ce/seed0/step_000000008.probe12.basis",
                                         "runs/toy/ln+ce/seed0/step_000000004.probe0.2of3.basis",
                                         NULL};
static const char *const strangers[] = {"runs/toy/bn+ce/seed0/step_000000005.probe0.basis",
                                        "runs/toy/bn+ce/seed0/step_000000005.spectrum.h5",
                                        "runs/toy/bn+ce/seed0/step_000000002.probe1.probe0.basis",
                                        "runs/toy/bn+ce/seed0/step_000000002.xqc.probe0.basis",
                                        "runs/toy/bn+ce/seed7/step_000000002.spectrum.h5",
                                        NULL};

static void write_all(const char *const *names)
{
    for (; *names; names++)
        tree_write(*names, "");
}

static void assert_all(const char *const *names, bool there)
{
    for (; *names; names++)
        assert_int_equal(tree_has(*names), there);
}

/* Stale Lanczos steps of --keep-basis are removed, too; files that belong to no job stay. The
 * printed commands do the same. */
static void test_stale_steps(void **state)
{
    struct stage stage = stage_new(":");

    (void)state;
    write_script("bin/fake plot", "#!/bin/sh\n");
    ks_graph_set_change(stage.graph, 0, (struct ks_graph_change){true, true});
    run_printed(&stage); /* nothing exists yet */
    assert_string_equal(tree_text("said"), "");
    write_all(kept_steps);
    write_all(strangers);
    run_printed(&stage);
    assert_all(kept_steps, false);
    write_all(kept_steps);
    assert_ok(ks_graph_remove_stale(stage.graph, tree));
    assert_all(kept_steps, false);
    write_all(kept_steps);
    ks_graph_set_change(stage.graph, 0, (struct ks_graph_change){true, false});
    assert_ok(ks_graph_remove_stale(stage.graph, tree));
    assert_all(kept_steps, true);
    assert_all(strangers, true);
    stage_free(&stage);
}

/* Every analysis has its own jobs and files; a change of its options affects no other analysis. */
static void test_further_analyses(void **state)
{
    const struct ks_graph_job *job;
    struct ks_study *study = NULL;
    struct ks_graph *g = NULL;
    char text[512];

    (void)state;
    snprintf(text, sizeof text, "%s[analyze]\norder = 7\n[analyze xqc]\ncompat = xqc\n", TWO_RUNS);
    assert_ok(read_text(text, &study));
    assert_ok(new_graph(study, &g));
    assert_int_equal(g->n_jobs, 2 + 2 * 3 * 2);
    job = &g->job[2 + 3];
    assert_int_equal(job->analysis, 1);
    assert_int_equal(job->step, 4);
    assert_non_null(strstr(job->command, "fake-analyze --name=xqc --compat=xqc --quiet "
                                         "runs/toy/bn+ce/seed0/step_000000004.h5"));
    assert_string_equal(job->target[0], "runs/toy/bn+ce/seed0/step_000000004.xqc.spectrum.h5");
    assert_string_equal(job->log, "runs/toy/bn+ce/seed0/step_000000004.xqc.analyze.log");
    assert_string_equal(job->label, "analyze toy/bn+ce/seed0/step_000000004.xqc");
    for (size_t i = 0; i < g->n_jobs; i++)
        for (size_t k = 0; k < g->job[i].n_targets; k++)
            tree_write(g->job[i].target[k], "");
    tree_write(kept_steps[0], "");
    tree_write("runs/toy/bn+ce/seed0/step_000000002.xqc.probe0.basis", "");
    ks_graph_set_change(g, 1, (struct ks_graph_change){true, true});
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(ks_graph_is_done(g, i, tree), g->job[i].analysis == 0);
    assert_ok(ks_graph_remove_stale(g, tree));
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(tree_has(g->job[i].target[0]), g->job[i].analysis == 0);
    assert_true(tree_has(kept_steps[0]));
    assert_false(tree_has("runs/toy/bn+ce/seed0/step_000000002.xqc.probe0.basis"));
    ks_graph_free(g);
    ks_study_free(study);
}

/* If options change, spectra after an earlier `stop` are removed, too, although they have no jobs:
 * a study with a later `stop` would accept them. */
static void test_stale_spectra_behind_stop(void **state)
{
    static const char *const spectra[] = {"runs/toy/bn+ce/seed0/step_000000002.spectrum.h5",
                                          "runs/toy/bn+ce/seed0/step_000000008.spectrum.h5", NULL};
    struct stage stage;

    (void)state;
    write_all(spectra);
    stage = stage_until("stop = 4\n");
    assert_ok(ks_graph_remove_stale(stage.graph, tree));
    assert_all(spectra, true);
    ks_graph_set_change(stage.graph, 0, (struct ks_graph_change){true, false});
    assert_ok(ks_graph_remove_stale(stage.graph, tree));
    assert_all(spectra, false);
    stage_free(&stage);
}

/* Runs the graph; its standard error goes to the file "said". */
static void run_aloud(const struct stage *stage)
{
    int errors = dup(STDERR_FILENO),
        file = open(tree_path("said"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ks_status status;

    assert_true(errors >= 0 && file >= 0);
    dup2(file, STDERR_FILENO);
    close(file);
    status = ks_graph_run(stage->graph, tree, 1, false, false);
    dup2(errors, STDERR_FILENO);
    close(errors);
    assert_ok(status);
}

/* If a training is repeated, the analyses of its run are repeated, too. */
static void test_progress(void **state)
{
    struct stage stage = stage_new(":");

    (void)state;
    setenv("MAKELEVEL", "1", 1);
    run_aloud(&stage);
    assert_said("to do: 2 x train, 6 x analyze (0 of 8 jobs are done), 1 at a time\n", 9);
    assert_said("[ 8/8]", 9);
    assert_int_equal(unlink(tree_path("runs/toy/ln+ce/seed0/step_000000008.h5")), 0);
    run_aloud(&stage);
    assert_said("to do: 1 x train, 3 x analyze (4 of 8 jobs are done), 1 at a time\n", 5);
    assert_said("[ 8/8]", 5);
    run_aloud(&stage);
    assert_string_equal(tree_text("said"), "");
    tree_write("runs/toy/bn+ce/seed0/resume/point.0", ""); /* killed after its last checkpoint */
    run_aloud(&stage);
    assert_said("to do: 1 x train, 3 x analyze (4 of 8 jobs are done), 1 at a time\n", 5);
    stage_free(&stage);
}

static void test_graph_runs_once(void **state)
{
    struct stage stage = stage_new(":");
    const char *journal;

    (void)state;
    setenv("MAKEFLAGS", "-n --jobserver-auth=3,4", 1); /* as an outer make sets it */
    setenv("MAKELEVEL", "1", 1);
    setenv("OMP_NUM_THREADS", "7", 1);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_false(ks_graph_is_done(stage.graph, i, tree));
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_true(ks_graph_is_done(stage.graph, i, tree));
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true)); /* nothing is left to do */
    journal = tree_text("journal");
    assert_int_equal(count(journal, "train "), 2);
    assert_int_equal(count(journal, "analyze "), 6);
    assert_int_equal(unlink(tree_path("runs/toy/ln+ce/seed0/step_000000004.spectrum.h5")), 0);
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(count(tree_text("journal"), "analyze "), 7);
    assert_int_equal(unlink(tree_path("runs/toy/ln+ce/seed0/step_000000008.h5")), 0);
    assert_ok(ks_graph_run(stage.graph, tree, 2, false,
                           true)); /* a job writes all checkpoints of its run */
    assert_int_equal(count(tree_text("journal"), "train "), 3);
    stage_free(&stage);
}

static void test_failure_is_named(void **state)
{
    struct stage stage = stage_new("[ $arch != bn+ce ] || { echo first; echo; echo 'loss is nan at "
                                   "update 7'; exit 1; }");

    (void)state;
    assert_fails(ks_graph_run(stage.graph, tree, 1, false, true), KS_RUN,
                 "train toy/bn+ce/seed0 failed: loss is nan at update 7");
    assert_non_null(strstr(ks_error_text(), "bn+ce/seed0/train.log"));
    assert_false(tree_has("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
    assert_fails(ks_graph_run(stage.graph, tree, 1, true, true), KS_RUN, "bn+ce");
    assert_true(tree_has("runs/toy/ln+ce/seed0/step_000000008.spectrum.h5")); /* --keep-going */
    tree_write("behave", ":");
    assert_ok(ks_graph_run(stage.graph, tree, 1, false, true));
    assert_true(tree_has("runs/toy/bn+ce/seed0/step_000000008.spectrum.h5"));
    stage_free(&stage);
}

/* A program that fails without a spectrum, or with an incomplete one, leaves no spectrum. */
static void test_half_a_spectrum_is_removed(void **state)
{
    struct stage stage = stage_new(":");

    (void)state;
    write_script("bin/fake-analyze", "#!/bin/sh\nfor word; do last=$word; done\n"
                                     "echo half >${last%.h5}.spectrum.h5\nexit 1\n");
    assert_fails(ks_graph_run(stage.graph, tree, 1, false, true), KS_RUN,
                 "analyze toy/bn+ce/seed0/step_000000002 failed: no message");
    assert_false(tree_has("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
    stage_free(&stage);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Waits until the file exists, at most ten seconds. */
static void wait_for(const char *name)
{
    for (int i = 0; i < 500 && !tree_has(name); i++)
        nap();
    assert_true(tree_has(name));
}

/* Runs the graph in another process until the job of `ln+ce` sleeps and that of `bn+ce` is
 * complete. */
static pid_t start_graph(const struct stage *stage)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        ks_status status = ks_graph_run(stage->graph, tree, 2, false, true);

        _exit(status == KS_RUN && strstr(ks_error_text(), "stopped") ? 42 : status != KS_OK);
    }
    wait_for("asleep");
    wait_for("runs/toy/bn+ce/seed0/step_000000008.h5");
    return child;
}

/* Waits for the end of the process whose PID follows the word in the journal. */
static void assert_ends(const char *word)
{
    const char *line = strstr(tree_text("journal"), word);
    long number = 0;

    assert_non_null(line);
    assert_int_equal(sscanf(line + strlen(word), "%ld", &number), 1);
    for (int i = 0; i < 250 && kill((pid_t)number, 0) == 0; i++) /* until init has reaped it */
        nap();
    assert_int_not_equal(kill((pid_t)number, 0), 0);
}

static void test_interrupted_graph_goes_on(void **state)
{
    struct stage stage = stage_new(
        "if [ $arch = ln+ce ]; then sleep 60 & echo sleeper $! >>journal; "
        ": >asleep; wait; fi");
    pid_t child = start_graph(&stage);
    int result = 0;

    (void)state;
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 42);
    assert_ends("train ln+ce");
    assert_ends("sleeper"); /* children of the job are stopped, too */
    assert_true(tree_has("runs/toy/ln+ce/seed0/step_000000002.h5")); /* complete files stay */
    tree_write("behave", ":");
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(count(tree_text("journal"), "train bn+ce"), 1); /* not again */
    assert_int_equal(count(tree_text("journal"), "train ln+ce"), 2);
    stage_free(&stage);
}

/* With SIGHUP ignored, as by nohup, closing the terminal does not stop the study. */
static void test_ignored_signal(void **state)
{
    struct stage stage = stage_new(
        "if [ $arch = ln+ce ]; then : >asleep; while [ ! -e wake ]; do sleep .1; done; fi");
    pid_t child;
    int result = 0;

    (void)state;
    signal(SIGHUP, SIG_IGN);
    child = start_graph(&stage);
    signal(SIGHUP, SIG_DFL);
    assert_int_equal(kill(child, SIGHUP), 0);
    tree_write("wake", "");
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    stage_free(&stage);
}

/* The study cannot handle SIGKILL, but its jobs end, so that a second call does not run beside
 * them. */
static void test_killed_graph_leaves_no_job(void **state)
{
    struct stage stage = stage_new("if [ $arch = ln+ce ]; then : >asleep; exec sleep 60; fi");
    pid_t child = start_graph(&stage);
    int result = 0;

    (void)state;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_ends("train ln+ce");
    tree_write("behave", ":");
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(count(tree_text("journal"), "train bn+ce"), 1);
    stage_free(&stage);
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        IN_TREE(test_commands),
        IN_TREE(test_special_characters),
        IN_TREE(test_printed_commands),
        IN_TREE(test_stop),
        IN_TREE(test_killed_before_stop),
        IN_TREE(test_stale_spectra),
        IN_TREE(test_stale_steps),
        IN_TREE(test_further_analyses),
        IN_TREE(test_stale_spectra_behind_stop),
        IN_TREE(test_progress),
        IN_TREE(test_graph_runs_once),
        IN_TREE(test_failure_is_named),
        IN_TREE(test_half_a_spectrum_is_removed),
        IN_TREE(test_interrupted_graph_goes_on),
        IN_TREE(test_ignored_signal),
        IN_TREE(test_killed_graph_leaves_no_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
