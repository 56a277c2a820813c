/* Study files, the graph of a study, and the programs around it. Shell scripts stand in for
 * training and analysis where only the graph is looked at: order, resumption, failures,
 * interruption. */
#include "tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "ks/graph.h"
#include "ks/memory.h"
#include "ks/place.h"
#include "ks/schedule.h"
#include "ks/study.h"

static const char GOOD[] = "; a comment\n"
                           "[study]\n"
                           "env = dog-trot\n"
                           "architectures = bn+wn+ce, dense+mse\n"
                           "seeds = 3 0..1\n"
                           "steps = 1000\n"
                           "missing = drop\n"
                           "[train]\n"
                           "checkpoints = 3\n"
                           "random_steps = 100 ; agent steps\n"
                           "evaluations = 2\n"
                           "gamma = auto\n"
                           "[analyze]\n"
                           "order = 30\n"
                           "exact = no\n"
                           "precision = f64\n";

/* --- schedules --- */

static void assert_steps(size_t n, const size_t *found, size_t expected_n, const size_t *expected)
{
    assert_int_equal(n, expected_n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(found[i], expected[i]);
}

static void test_checkpoint_steps(void **state)
{
    size_t step[32], n;

    (void)state;
    n = ks_checkpoint_steps(1000000, 20, 5000, 2, step); /* the paper's */
    assert_int_equal(n, 21);
    assert_int_equal(step[0], 10000);
    for (size_t k = 1; k <= 20; k++)
        assert_int_equal(step[k], 50000 * k);
    n = ks_checkpoint_steps(1000, 3, 250, 2, step); /* 333.3 and 666.7, rounded up to even */
    assert_steps(n, step, 4, (const size_t[]){334, 500, 668, 1000});
    n = ks_checkpoint_steps(1000, 2, 250, 2, step); /* the first update is at a checkpoint */
    assert_steps(n, step, 2, (const size_t[]){500, 1000});
    n = ks_checkpoint_steps(7, 2, 1, 2, step); /* the end is rounded up, too */
    assert_steps(n, step, 3, (const size_t[]){2, 4, 8});
    n = ks_checkpoint_steps(100, 1, 51, 2, step); /* no update at all */
    assert_steps(n, step, 1, (const size_t[]){100});
    n = ks_checkpoint_steps(2, 5, 9, 2, step); /* more checkpoints than agent steps */
    assert_steps(n, step, 1, (const size_t[]){2});
}

static void test_evaluation_steps(void **state)
{
    char name[32];
    size_t step[32], n;

    (void)state;
    n = ks_evaluation_steps(1000, 3, 2, step);
    assert_steps(n, step, 4, (const size_t[]){0, 334, 668, 1000});
    n = ks_evaluation_steps(1000, 0, 2, step);
    assert_steps(n, step, 1, (const size_t[]){0});
    ks_checkpoint_name(50000, name);
    assert_string_equal(name, "step_000050000.h5");
}

/* --- study files --- */

static ks_status read_text(const char *text, struct ks_study **study)
{
    tree_write("some.study", text);
    return ks_study_read(tree_path("some.study"), true, study);
}

static void test_study_is_read(void **state)
{
    struct ks_study *s = NULL;
    char *folder = NULL;

    (void)state;
    assert_ok(read_text(GOOD, &s));
    assert_string_equal(s->name, "some");
    assert_string_equal(s->env, "dog-trot");
    assert_int_equal(s->n_architectures, 2);
    assert_string_equal(s->architecture[0].normalization, "bn");
    assert_true(s->architecture[0].weight_normalization);
    assert_string_equal(s->architecture[0].loss, "ce");
    assert_string_equal(s->architecture[1].normalization, "dense");
    assert_false(s->architecture[1].weight_normalization);
    assert_string_equal(s->architecture[1].loss, "mse");
    assert_steps(s->n_seeds, s->seed, 3, (const size_t[]){3, 0, 1});
    assert_int_equal(s->steps, 1000);
    assert_true(s->drop_missing && !s->common_grid);
    assert_int_equal(s->n_train, 4);
    assert_string_equal(s->train[1].value, "100");
    assert_int_equal(s->n_analyze, 3);
    assert_int_equal(s->first_update, 200);
    assert_steps(s->n_checkpoints, s->checkpoint, 4, (const size_t[]){200, 334, 668, 1000});
    assert_steps(s->n_evaluations, s->evaluation, 3, (const size_t[]){0, 500, 1000});
    assert_ok(ks_study_run_folder(s, 1, 0, &folder));
    assert_string_equal(folder, "runs/dog-trot/dense+mse/seed3");
    free(folder);
    ks_study_free(s);
}

static void test_all_and_long_lists(void **state)
{
    struct ks_study *s = NULL;

    (void)state;
    assert_ok(
        read_text("[study]\nenv=dog-run\narchitectures = all\nseeds = 0\n  1\n  2\nsteps=9\n", &s));
    assert_int_equal(s->n_architectures, 12);
    assert_int_equal(s->n_seeds, 3);
    ks_study_free(s);
}

static void test_architecture_of_a_file(void **state)
{
    struct ks_study *s = NULL;

    (void)state;
    tree_write("nets/tiny.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    assert_ok(read_text("[study]\nenv=e\narchitectures=nets/tiny.arch\nseeds=0\nsteps=9\n", &s));
    assert_string_equal(s->architecture[0].name, "tiny");
    assert_true(s->architecture[0].argument[0] == '/');
    assert_string_equal(s->architecture[0].loss, "other");
    ks_study_free(s);
}

/* What is wrong is named with its line. */
static void test_wrong_studies(void **state)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"[studdy]\n", ":1: expected [study], [train] or [analyze], found '[studdy]'"},
        {"env = x\n", ":1: 'env' stands outside"},
        {"[study]\nenv = x\nenvs = y\n", ":3: [study] does not know 'envs'"},
        {"[study]\nenv = x\nenv = y\n", ":3: 'env' is given twice"},
        {"[study]\nenv = a b\n", ":2: env: expected the name of a task, found 'a b'"},
        {"[study]\nenv = x\n\narchitectures = bn+ce gn+ce\n",
         ":4: architectures: 'gn+ce' is not known"},
        {"[study]\narchitectures = bn+ce all\n", ":2: architectures: 'bn+ce' is given twice"},
        {"[study]\narchitectures = none.arch\n", ":2: architectures: none.arch: no such file"},
        {"[study]\narchitectures = ../..\n", ":2: architectures: '..': expected a name"},
        {"[study]\nseeds = 0 1 x\n",
         ":2: seeds: expected a whole number from 0 to 1e+09, found 'x'"},
        {"[study]\nseeds = 3..1\n", ":2: seeds: expected a whole number from 3"},
        {"[study]\nseeds = 0..2 1\n", ":2: seeds: 1 is given twice"},
        {"[study]\nseeds = 0..999\n", ":2: seeds: more than 256"},
        {"[study]\nseeds = -1\n", "found '-1'"},
        {"[study]\nsteps = 1.5\n", ":2: steps: expected a whole number"},
        {"[study]\nsteps = 0\n", ":2: steps: expected"},
        {"[study]\nsteps = nan\n", ":2: steps: expected"},
        {"[study]\ngrid = some\n", ":2: grid: expected all or common, found 'some'"},
        {"[study]\nmissing\n", ":2: expected a section, KEY = VALUE or a comment"},
        {"[train]\nbatches = 1\n", ":2: "},
        {"[train]\nbatch = 0\n", ":2: "},
        {"[train]\nutd = 1\nutd = 1\n", ":3: 'utd' is given twice"},
        {"[analyze]\norders = 1\n", ":2: [analyze] does not know 'orders'"},
        {"[analyze]\norder = 0\n", ":2: --order: expected"},
        {"[analyze]\norder =\n", ":2: order: expected a value"},
        {"[analyze]\nexact = perhaps\n", ":2: exact: expected yes or no, found 'perhaps'"},
        {"[analyze]\njson = yes\n", ":2: [analyze] does not know 'json'"},
        {"[analyze]\ngradient = x.h5\n", ":2: [analyze] does not know 'gradient'"},
        {"[analyze]\nprecision = f16\n", ":2: --precision: expected"},
        {"[study]\nenv = x\narchitectures = bn+ce\nseeds = 0\n", ": [study] lacks 'steps'"},
        {"", ": [study] lacks 'env'"},
    };
    struct ks_study *s = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ks_status status = read_text(wrong[i].text, &s);

        if (status == KS_OK)
            fail_msg("accepted: %s", wrong[i].text);
        assert_int_equal(ks_exit_status(status), 2);
        assert_null(s);
        if (!strstr(ks_error_text(), wrong[i].words) || strchr(ks_error_text(), '\n'))
            fail_msg("'%s' does not contain '%s'", ks_error_text(), wrong[i].words);
    }
    assert_fails(ks_study_read(tree_path("none.study"), true, &s), KS_IO, "none.study");
}

static void test_long_line_is_refused(void **state)
{
    static char text[4000] = "[study]\narchitectures = ";
    struct ks_study *s = NULL;

    (void)state;
    for (size_t n = strlen(text); n + 1 < sizeof text; n++)
        text[n] = ' ';
    assert_fails(read_text(text, &s), KS_FORMAT, ":2: a line of");
}

static void test_reading_without_memory(void **state)
{
    struct ks_study *s = NULL;
    ks_status status = KS_MEMORY;

    (void)state;
    tree_write("some.study", GOOD);
    for (size_t n = 1; status != KS_OK; n++) {
        ks_alloc_fail_at(n);
        status = ks_study_read(tree_path("some.study"), true, &s);
        ks_alloc_fail_at(0);
        assert_true(status == KS_OK || (status == KS_MEMORY && !s));
    }
    ks_study_free(s);
}

/* What the analyzer took from one study is forgotten in the next. */
static void test_options_are_forgotten(void **state)
{
    struct ks_study *s = NULL;

    (void)state;
    assert_fails(read_text("[analyze]\nprecision = f64\ncompat = xqc\n", &s), KS_USAGE, ":3: ");
    assert_fails(read_text("[analyze]\ncompat = xqc\n", &s), KS_FORMAT, "lacks");
}

static void test_shipped_studies(void **state)
{
    static const char *const names[] = {"quick", "dogtrot"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ks_study *s = NULL;
        char *path = NULL;

        assert_ok(ks_study_find(names[i], &path));
        assert_ok(ks_study_read(path, true, &s));
        assert_int_equal(s->n_architectures, 12);
        ks_study_free(s);
        free(path);
    }
    {
        char *path = NULL;

        assert_fails(ks_study_find("no-such-study", &path), KS_USAGE, "no-such-study");
        assert_null(path);
    }
}

/* --- the graph --- */

static const char TWO_RUNS[] =
    "[study]\nenv = toy\narchitectures = bn+ce ln+ce\nseeds = 0\nsteps = 8\n"
    "[train]\ncheckpoints = 2\nrandom_steps = 1\n";

/* Writes its checkpoints; says so in the journal. What is in the file "behave" is run in between.
 */
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

static struct stage stage_new(const char *behaviour)
{
    struct stage stage = {NULL, NULL};

    tree_write("journal", "");
    tree_write("behave", behaviour);
    write_script("bin/fake train", FAKE_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    assert_ok(read_text(TWO_RUNS, &stage.study));
    assert_ok(ks_graph_new(stage.study, tree_path("bin/fake train"), tree_path("bin/fake-analyze"),
                           &stage.graph));
    assert_ok(ks_graph_write(stage.graph, tree));
    return stage;
}

static void stage_free(struct stage *stage)
{
    ks_graph_free(stage->graph);
    ks_study_free(stage->study);
}

static size_t count(const char *text, const char *words)
{
    size_t n = 0;

    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

static void test_commands(void **state)
{
    struct ks_study *s = NULL;
    struct ks_graph *g = NULL;

    (void)state;
    assert_ok(read_text(GOOD, &s));
    assert_ok(ks_graph_new(s, "/opt/it's/train", "analyze", &g));
    assert_int_equal(g->n_runs, 6);
    assert_int_equal(g->n_jobs, 6 + 6 * 4);
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(g->job[i].trains, i < 6); /* the long jobs come first */
    assert_string_equal(
        g->job[0].command,
        "'/opt/it'\\''s/train' --env=dog-trot --arch=bn+wn+ce --seed=3 --steps=1000 "
        "--set checkpoints=3 --set random_steps=100 --set evaluations=2 --set "
        "gamma=auto --out=runs/dog-trot/bn+wn+ce/seed3 --quiet");
    assert_string_equal(g->job[6].command, "analyze --order=30 --precision=f64 --quiet "
                                           "runs/dog-trot/bn+wn+ce/seed3/step_000000200.h5");
    assert_string_equal(g->job[6].target[0],
                        "runs/dog-trot/bn+wn+ce/seed3/step_000000200.spectrum.h5");
    ks_graph_free(g);
    ks_study_free(s);
}

static void test_graph_runs_once(void **state)
{
    struct stage stage = stage_new(":");
    const char *journal;

    (void)state;
    setenv("MAKEFLAGS", "-n --jobserver-auth=3,4", 1); /* as an outer make leaves it */
    setenv("MAKELEVEL", "1", 1);
    setenv("OMP_NUM_THREADS", "7", 1);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_false(ks_job_is_done(&stage.graph->job[i], tree));
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_true(ks_job_is_done(&stage.graph->job[i], tree));
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true)); /* nothing is left to do */
    journal = tree_text("journal");
    assert_int_equal(count(journal, "train "), 2);
    assert_int_equal(count(journal, "analyze "), 6);
    assert_int_equal(unlink(tree_path("runs/toy/ln+ce/seed0/step_000000004.spectrum.h5")), 0);
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(count(tree_text("journal"), "analyze "), 7);
    assert_int_equal(unlink(tree_path("runs/toy/ln+ce/seed0/step_000000008.h5")), 0);
    assert_ok(
        ks_graph_run(stage.graph, tree, 2, false, true)); /* a run makes all its checkpoints */
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
    assert_true(tree_has("runs/toy/ln+ce/seed0/step_000000008.spectrum.h5")); /* it kept going */
    tree_write("behave", ":");
    assert_ok(ks_graph_run(stage.graph, tree, 1, false, true));
    assert_true(tree_has("runs/toy/bn+ce/seed0/step_000000008.spectrum.h5"));
    stage_free(&stage);
}

/* A program that writes no spectrum, or half of one and fails, leaves none. */
static void test_half_a_spectrum_is_removed(void **state)
{
    struct stage stage = stage_new(":");

    (void)state;
    write_script("bin/fake-analyze", "#!/bin/sh\nfor word; do last=$word; done\n"
                                     "echo half >${last%.h5}.spectrum.h5\nexit 1\n");
    assert_fails(ks_graph_run(stage.graph, tree, 1, false, true), KS_RUN,
                 "analyze toy/bn+ce/seed0/step_000000002 failed: it left no message");
    assert_false(tree_has("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
    stage_free(&stage);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Waits, at most ten seconds, until the file is there. */
static void wait_for(const char *name)
{
    for (int i = 0; i < 500 && !tree_has(name); i++)
        nap();
    assert_true(tree_has(name));
}

/* Runs the graph in another process until `ln+ce` is asleep and `bn+ce` done. */
static pid_t start_graph(const struct stage *stage)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        ks_status status = ks_graph_run(stage->graph, tree, 2, false, true);

        _exit(status == KS_RUN && strstr(ks_error_text(), "stopped") ? 42 : 1);
    }
    wait_for("asleep");
    wait_for("runs/toy/bn+ce/seed0/step_000000008.h5");
    return child;
}

/* The process whose number follows the word in the journal ends. */
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
    assert_ends("sleeper"); /* what the job had started is stopped, too */
    assert_true(tree_has("runs/toy/ln+ce/seed0/step_000000002.h5")); /* what was whole stays */
    tree_write("behave", ":");
    assert_ok(ks_graph_run(stage.graph, tree, 2, false, true));
    assert_int_equal(count(tree_text("journal"), "train bn+ce"), 1); /* not again */
    assert_int_equal(count(tree_text("journal"), "train ln+ce"), 2);
    stage_free(&stage);
}

/* Nothing can be done on SIGKILL, but no job is left behind that a second call would meet. */
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

/* --- the programs --- */

static const char *bin(void)
{
    return getenv("KS_BIN") ? getenv("KS_BIN") : "build/bin";
}

/* Runs the program with arguments in the shell; its output is in "said". */
static int run(const char *name, const char *arguments)
{
    char command[2048];
    int result;

    snprintf(command, sizeof command, "%s/%s", bin(), name);
    if (access(command, X_OK) != 0)
        skip();
    snprintf(command, sizeof command, "%s/%s %s >%s 2>&1 </dev/null", bin(), name, arguments,
             tree_path("said"));
    result = system(command);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void assert_said(const char *words, size_t lines)
{
    const char *said = tree_text("said");

    if (!strstr(said, words))
        fail_msg("'%s' does not contain '%s'", said, words);
    if (lines > 0)
        assert_int_equal(count(said, "\n"), lines);
}

static void test_front_program(void **state)
{
    (void)state;
    assert_int_equal(run("kappascope", "no-such-command"), 2);
    assert_said("'no-such-command'", 1);
    assert_int_equal(run("kappascope", "--no-such-option"), 2);
    assert_said("'--no-such-option'", 1);
    assert_int_equal(run("kappascope", "../bin"), 2);
    assert_int_equal(run("kappascope", ""), 2);
    assert_int_equal(run("kappascope", "--help"), 0);
    assert_said("study    train, analyze and plot", 0);
    assert_int_equal(run("kappascope", "--version"), 0);
    assert_said("HDF5", 0);
    assert_int_equal(run("kappascope", "study --help"), 0); /* handed on with its arguments */
    assert_said("kappascope-study - ", 0);
    assert_int_equal(run("kappascope", "plot a b"), 2);
    assert_said("kappascope-plot: expected one folder", 1);
}

static void run_study(const char *options, int expected)
{
    char arguments[1024];

    snprintf(arguments, sizeof arguments, "%s --out %s %s", tree_path("some.study"),
             tree_path("out/folder"), options);
    assert_int_equal(run("kappascope-study", arguments), expected);
}

static void test_study_program_writes_nothing(void **state)
{
    (void)state;
    if (run("kappascope-train", "--list") != 0)
        skip();
    tree_write("some.study", "[study]\nenv = dog-trott\narchitectures=all\nseeds=0\nsteps=10\n");
    run_study("", 2);
    assert_said("some.study:2: env: 'dog-trott' is not known", 1);
    tree_write("some.study", "[study]\nenv = dog-trot\narchitectures=xx\nseeds=0\nsteps=10\n");
    run_study("", 2);
    assert_said("some.study:3: architectures: 'xx'", 1);
    tree_write("some.study", GOOD);
    run_study("--jobs=-1", 2);
    assert_said("--jobs: expected", 1);
    run_study("--dry-run", 0);
    assert_said("--arch=dense+mse --seed=1 --steps=1000", 6 + 6 * 4 + 1);
    run_study("--status", 0);
    assert_said("dog-trot/bn+wn+ce/seed3", 7);
    assert_said("checkpoints  0/4  spectra  0/4  waiting", 7);
    assert_false(tree_has("out"));
    assert_int_equal(run("kappascope-study", "no-such-study"), 2);
    assert_said("no-such-study: neither a file nor a shipped study", 1);
    assert_int_equal(run("kappascope-study", ""), 2);
}

static void test_folder_of_another_study(void **state)
{
    (void)state;
    if (run("kappascope-train", "--list") != 0)
        skip();
    tree_write("some.study", GOOD);
    tree_write("out/folder/study.study", "; a comment\n[study]\nenv = dog-run\n");
    run_study("", 2);
    assert_said("holds another study, it differs", 1);
    assert_said("in line 3", 1);
    assert_false(tree_has("out/folder/study.mk"));
}

static void test_folder_in_use(void **state)
{
    int lock;

    (void)state;
    if (run("kappascope-train", "--list") != 0)
        skip();
    tree_write("some.study", GOOD);
    tree_write("out/folder/study.study", GOOD);
    lock = open(tree_path("out/folder"), O_RDONLY | O_DIRECTORY);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    run_study("", 2);
    assert_said("another kappascope-study works in it", 1);
    close(lock);
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint_steps),
        cmocka_unit_test(test_evaluation_steps),
        IN_TREE(test_study_is_read),
        IN_TREE(test_all_and_long_lists),
        IN_TREE(test_architecture_of_a_file),
        IN_TREE(test_wrong_studies),
        IN_TREE(test_long_line_is_refused),
        IN_TREE(test_reading_without_memory),
        IN_TREE(test_options_are_forgotten),
        cmocka_unit_test(test_shipped_studies),
        IN_TREE(test_commands),
        IN_TREE(test_graph_runs_once),
        IN_TREE(test_failure_is_named),
        IN_TREE(test_half_a_spectrum_is_removed),
        IN_TREE(test_interrupted_graph_goes_on),
        IN_TREE(test_killed_graph_leaves_no_job),
        IN_TREE(test_front_program),
        IN_TREE(test_study_program_writes_nothing),
        IN_TREE(test_folder_of_another_study),
        IN_TREE(test_folder_in_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
