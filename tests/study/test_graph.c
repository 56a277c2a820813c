/* The graph of a study: commands, order, progress, failures and interruption. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include "staged.h"

#include <fcntl.h>
#include <signal.h>

TEST_IN_FOLDER(test_commands)
{
    struct ks_graph *g = NULL;
    struct ks_graph_programs programs = {"/opt/it's/train", "analyze", false, 500};

    assert_ok(ks_graph_new(good_study(GOOD), &programs, &g));
    assert_int_equal(g->n_runs, 6);
    assert_int_equal(g->n_jobs, 6 + 6 * 4);
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(g->job[i].trains, i < 6); /* the long jobs first */
    assert_string_equal(
        g->job[0].command,
        "'/opt/it'\\''s/train' --env=walker-run --arch=bn+wn+ce --seed=3 --steps=1000 "
        "--set checkpoints=3 --set random_steps=100 --set evaluations=2 --set "
        "gamma=auto --set hidden=16 --set actor_hidden=16 --out=runs/walker-run/bn+wn+ce/seed3 "
        "--resume --quiet");
    assert_string_equal(g->job[6].command,
                        "analyze --products=blas --order=30 --precision=f64 --memory=500 --quiet "
                        "runs/walker-run/bn+wn+ce/seed3/step_000000200.h5");
    assert_string_equal(g->job[6].target[0],
                        "runs/walker-run/bn+wn+ce/seed3/step_000000200.spectrum.h5");
    ks_graph_free(g);
    programs.resume_any = true;
    assert_ok(
        ks_graph_new(good_study(text_of("%s[analyze]\nmemory = 2G\n", TWO_RUNS)), &programs, &g));
    assert_contains(g->job[0].command, " --resume=any --quiet");
    assert_contains(g->job[2].command, "analyze --products=blas --memory=2G --quiet ");
    ks_graph_free(g);
    assert_ok(ks_graph_new(good_study(text_of("%s[analyze]\nproducts = auto\n", TWO_RUNS)),
                           &programs, &g));
    assert_contains(g->job[2].command, "analyze --products=auto --");
    ks_graph_free(g);
}

/* Characters that are special to make or the shell reach the programs unchanged; control characters
 * are refused in every input. */
TEST_IN_FOLDER(test_special_characters)
{
    static const char name[] = "bin/f $(touch pwned) $$ `touch pwned` # % : ; ' \\ \" ~ *";
    struct ks_graph_programs programs = {.analyze = "analyze"};
    struct ks_study *study = good_study(TWO_RUNS);
    struct ks_graph *g = NULL;

    write_text("calls", "");
    write_text("behave", ":");
    write_script(name, FAKE_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    programs.train = scratch(name);
    programs.analyze = scratch("bin/fake-analyze");
    free(study->architecture[0].argument);
    study->architecture[0].argument = strdup("/a $HOME $(touch pwned) #%:/mine.arch");
    assert_ok(ks_graph_new(study, &programs, &g));
    assert_ok(ks_graph_write(g, scratch_folder));
    assert_ok(ks_graph_run(g, scratch_folder, 1, false, true));
    assert_int_equal(count(file_text("calls"), "train /a $HOME $(touch pwned) #%:/mine.arch "), 1);
    assert_false(exists("pwned"));
    ks_graph_free(g);
    free(study->train[0].value);
    study->train[0].value = strdup("2\n\ttouch pwned");
    assert_fails(ks_graph_new(study, &programs, &g), KS_USAGE,
                 "train toy/bn+ce/seed0: expected no control characters, found '");
    assert_null(g);
}

/* The printed commands, run by a shell, complete the study. */
TEST_IN_FOLDER(test_printed_commands)
{
    struct stage stage = stage_new(":");

    write_script("bin/fake plot", "#!/bin/sh\n[ $1 = . ] && echo plot >>calls\n");
    run_printed(&stage);
    assert_int_equal(count(file_text("calls"), "train "), 2);
    assert_int_equal(count(file_text("calls"), "plot"), 1);
    assert_string_equal(file_text("study.study"), TWO_RUNS);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_true(job_is_done(stage.graph, i));
    ks_graph_set_changed(stage.graph, 0);
    run_printed(&stage);
    assert_int_equal(count(file_text("calls"), "train "), 2);
    assert_int_equal(count(file_text("calls"), "analyze "), 2 * 6);
}

/* Runs the graph with its standard error in this file, which is closed. */
static ks_status run_into(const struct stage *stage, int file)
{
    int errors = dup(STDERR_FILENO);
    ks_status status;

    assert_true(errors >= 0 && file >= 0);
    dup2(file, STDERR_FILENO);
    close(file);
    status = ks_graph_run(stage->graph, scratch_folder, 1, true, false);
    dup2(errors, STDERR_FILENO);
    close(errors);
    return status;
}

/* Runs the graph; its standard error goes to the file "said". */
static void run_aloud(const struct stage *stage)
{
    assert_ok(run_into(stage, open(scratch("said"), O_WRONLY | O_CREAT | O_TRUNC, 0666)));
}

/* What is shown on a terminal: a line that changes with what runs, without the job that failed, and
 * at the end its removal. */
TEST_IN_FOLDER(test_progress_on_a_terminal)
{
    struct stage stage = stage_new("[ $arch != bn+ce ] || exit 1; sleep 3");
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    char text[4096];
    size_t size = 0;

    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    assert_fails(run_into(&stage, open(ptsname(terminal), O_WRONLY | O_NOCTTY)), KS_RUN,
                 "train toy/bn+ce/seed0 failed");
    for (ssize_t n = 0; n >= 0; size += (size_t)n) /* fails at the end, as nobody writes any more */
        if ((n = read(terminal, text + size, sizeof text - 1 - size)) <= 0)
            break;
    close(terminal);
    text[size] = '\0';
    assert_contains(text, "\r\033[?7l0 of 8 jobs, 0:0");
    assert_contains(text, "; train toy/ln+ce/seed0 (0:0");
    assert_contains(text, "\r\033[K4 of 8 jobs, 0:");
}

static const char LN[] = "runs/toy/ln+ce/seed0/";

static void remove_files(const char *folder, const char *const *names)
{
    for (; *names; names++) {
        assert_int_equal(unlink(scratch(text_of("%s%s", folder, *names))), 0);
    }
}

/* If a training is repeated, the analyses of its run are repeated, too. */
TEST_IN_FOLDER(test_progress)
{
    static const char *const last[] = {"step_000000008.h5", "step_000000008.spectrum.h5", NULL};
    struct stage stage = stage_new(":");

    setenv("MAKELEVEL", "1", 1);
    run_aloud(&stage);
    assert_said("to do: 2 x train, 6 x analyze (0 of 8 jobs are done), 1 at a time\n", 2);
    assert_said("8 of 8 jobs, 0:0", 2);
    remove_files(LN, last);
    run_aloud(&stage);
    assert_said("to do: 1 x train, 3 x analyze (4 of 8 jobs are done), 1 at a time\n", 2);
    assert_said("8 of 8 jobs, 0:0", 2);
    run_aloud(&stage);
    assert_string_equal(file_text("said"), "");
    write_text("runs/toy/bn+ce/seed0/run.json", "{\n  \"state\": \"running\"\n}\n");
    run_aloud(&stage);
    assert_said("to do: 1 x train, 3 x analyze (4 of 8 jobs are done), 1 at a time\n", 2);
}

/* As FAKE_ANALYZE, for analyses with names. */
static const char FAKE_ANALYZE_NAMED[] =
    "#!/bin/sh\n"
    "for word; do last=$word; case $word in --name=*) name=.${word#--name=} ;; esac; done\n"
    "[ -e $last ] || exit 3\n"
    "echo \"analyze $last\" >>calls\n"
    "sleep 0.02\n"
    ": >${last%.h5}$name.spectrum.h5\n";

/* Runs are under way from their first call to their last one: at most `jobs` at a time. */
static void assert_order(const char *const *runs, size_t n, size_t jobs)
{
    const char *first[4], *last[4], *calls = file_text("calls");

    for (size_t i = 0; i < n; i++) {
        first[i] = last[i] = strstr(calls, runs[i]);
        assert_int_equal(count(calls, runs[i]), 1 + 2 * 3);
        for (const char *at = first[i]; at; at = strstr(at + 1, runs[i]))
            last[i] = at;
        assert_true(jobs > 1 || i == 0 || first[i] > last[i - 1]);
    }
    for (size_t i = 0; i < n; i++) {
        size_t under_way = 0;

        for (size_t k = 0; k < n; k++)
            under_way += first[k] <= first[i] && first[i] <= last[k];
        assert_true(under_way <= jobs);
    }
}

TEST_IN_FOLDER(test_graph_runs_once)
{
    struct stage stage = stage_new(":");
    const char *calls;

    setenv("MAKEFLAGS", "-n --jobserver-auth=3,4", 1); /* as an outer make sets it */
    setenv("MAKELEVEL", "1", 1);
    setenv("OMP_NUM_THREADS", "7", 1);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_false(job_is_done(stage.graph, i));
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_true(job_is_done(stage.graph, i));
    assert_ok(
        ks_graph_run(stage.graph, scratch_folder, 2, false, true)); /* nothing is left to do */
    calls = file_text("calls");
    assert_int_equal(count(calls, "train "), 2);
    assert_int_equal(count(calls, "analyze "), 6);
    assert_int_equal(unlink(scratch("runs/toy/ln+ce/seed0/step_000000004.spectrum.h5")), 0);
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "analyze "), 7);
}

/* The runs of a seed come before those of the next seed, and the spectra of a run right after its
 * training, with one job at a time and with several; a stopped study leaves complete runs. */
TEST_IN_FOLDER(test_order)
{
    static const char *const runs[] = {"bn+ce/seed7", "ln+ce/seed7", "bn+ce/seed1", "ln+ce/seed1"};
    static const char text[] = "[study]\nenv = toy\narchitectures = bn+ce ln+ce\nseeds = 7 1\n"
                               "steps = 8\n[train]\ncheckpoints = 2\nrandom_steps = 1\n"
                               "[analyze xqc]\ncompat = xqc\n";
    struct stage stage = stage_new(":");
    write_script("bin/fake-analyze", FAKE_ANALYZE_NAMED);
    stage = stage_of(text);
    for (size_t jobs = 1; jobs <= 2; jobs++) {
        write_text("calls", "");
        assert_ok(ks_graph_run(stage.graph, scratch_folder, jobs, false, true));
        assert_order(runs, 4, jobs);
        assert_true(jobs > 1 || rename(scratch("runs"), scratch("first")) == 0);
    }
}

/* Checkpoints of a complete run may be removed. If then a spectrum is missing, its run is trained
 * and analyzed again. */
TEST_IN_FOLDER(test_removed_checkpoints)
{
    static const char *const all[] = {"step_000000002.h5", "step_000000004.h5", "step_000000008.h5",
                                      NULL};
    static const char *const spectrum[] = {"step_000000004.spectrum.h5", NULL};
    struct stage stage = stage_new(":");

    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    remove_files(LN, all + 2);
    remove_files(LN, spectrum);
    assert_true(job_is_done(stage.graph, 1)); /* its checkpoint is there */
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "train "), 2);
    assert_int_equal(count(file_text("calls"), "analyze "), 7);
    write_text("runs/toy/ln+ce/seed0/step_000000008.h5", "");
    remove_files(LN, all);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_true(job_is_done(stage.graph, i));
    assert_null(stage.graph->job[1].restart);
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "\n"), 2 + 7);
    remove_files(LN, spectrum);
    assert_ok(ks_graph_look(stage.graph, scratch_folder));
    assert_string_equal(stage.graph->job[1].restart,
                        "train toy/ln+ce/seed0: has to start from the beginning: "
                        "step_000000004.spectrum.h5 has to be made, but its checkpoint "
                        "step_000000004.h5 is gone");
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_int_equal(job_is_done(stage.graph, i), stage.graph->job[i].run == 0);
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "train ln+ce"), 2);
    assert_int_equal(count(file_text("calls"), "analyze "), 7 + 3);
}

TEST_IN_FOLDER(test_failure_is_named)
{
    struct stage stage = stage_new("[ $arch != bn+ce ] || { echo first; echo; echo 'loss is nan at "
                                   "update 7'; exit 1; }");

    assert_fails(ks_graph_run(stage.graph, scratch_folder, 1, false, true), KS_RUN,
                 "train toy/bn+ce/seed0 failed: loss is nan at update 7");
    assert_contains(ks_error_text(), "bn+ce/seed0/train.log");
    assert_false(exists("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
    assert_fails(ks_graph_run(stage.graph, scratch_folder, 1, true, true), KS_RUN, "bn+ce");
    assert_true(exists("runs/toy/ln+ce/seed0/step_000000008.spectrum.h5")); /* --keep-going */
    write_text("behave", ":");
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 1, false, true));
    assert_true(exists("runs/toy/bn+ce/seed0/step_000000008.spectrum.h5"));
}

/* A program that fails without a spectrum, or with an incomplete one, leaves no spectrum. */
TEST_IN_FOLDER(test_half_a_spectrum_is_removed)
{
    struct stage stage = stage_new(":");

    write_script("bin/fake-analyze", "#!/bin/sh\nfor word; do last=$word; done\n"
                                     "echo half >${last%.h5}.spectrum.h5\nexit 1\n");
    assert_fails(ks_graph_run(stage.graph, scratch_folder, 1, false, true), KS_RUN,
                 "analyze toy/bn+ce/seed0/step_000000002 failed: no message");
    assert_false(exists("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
}

/* Runs the graph in another process until the job of `ln+ce` sleeps and that of `bn+ce` is
 * complete. */
static pid_t start_graph(const struct stage *stage)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        ks_status status = ks_graph_run(stage->graph, scratch_folder, 2, false, true);

        _exit(status == KS_RUN && strstr(ks_error_text(), "stopped") ? 42 : status != KS_OK);
    }
    wait_for("asleep");
    wait_for("runs/toy/bn+ce/seed0/step_000000008.h5");
    return child;
}

/* Waits for the end of the process whose PID follows the word in the file "calls". */
static void assert_ends(const char *word)
{
    const char *line = strstr(file_text("calls"), word);
    long number = 0;

    assert_non_null(line);
    assert_int_equal(sscanf(line + strlen(word), "%ld", &number), 1);
    for (int i = 0; i < 250 && kill((pid_t)number, 0) == 0; i++) /* until init has reaped it */
        nap();
    assert_int_not_equal(kill((pid_t)number, 0), 0);
}

TEST_IN_FOLDER(test_interrupted_graph_resumes)
{
    struct stage stage = stage_new("if [ $arch = ln+ce ]; then sleep 60 & echo sleeper $! >>calls; "
                                   ": >asleep; wait; fi");
    pid_t child = start_graph(&stage);
    int result = 0;

    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 42);
    assert_ends("train ln+ce");
    assert_ends("sleeper"); /* children of the job are stopped, too */
    assert_true(exists("runs/toy/ln+ce/seed0/step_000000002.h5")); /* complete files stay */
    write_text("behave", ":");
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "train bn+ce"), 1); /* not again */
    assert_int_equal(count(file_text("calls"), "train ln+ce"), 2);
}

/* With SIGHUP ignored, as by nohup, closing the terminal does not stop the study. */
TEST_IN_FOLDER(test_ignored_signal)
{
    struct stage stage = stage_new(
        "if [ $arch = ln+ce ]; then : >asleep; while [ ! -e wake ]; do sleep .1; done; fi");
    pid_t child;
    int result = 0;

    signal(SIGHUP, SIG_IGN);
    child = start_graph(&stage);
    signal(SIGHUP, SIG_DFL);
    assert_int_equal(kill(child, SIGHUP), 0);
    write_text("wake", "");
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

/* The study cannot handle SIGKILL, but its jobs end, so that a second call does not run beside
 * them. */
TEST_IN_FOLDER(test_killed_graph_leaves_no_job)
{
    struct stage stage = stage_new("if [ $arch = ln+ce ]; then : >asleep; exec sleep 60; fi");
    pid_t child = start_graph(&stage);
    int result = 0;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_ends("train ln+ce");
    write_text("behave", ":");
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "train bn+ce"), 1);
}
