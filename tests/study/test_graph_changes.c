/* The graph of a study that has changed: which jobs run again and which files are removed. */
#include "staged.h"

#include "train/state.h"

/* Acts like kappascope-train: goes on from the existing checkpoints up to --stop-at, and keeps a
 * resume point until the run has finished. The file "kill" makes it exit after its last checkpoint,
 * as SIGKILL would. */
static const char STOPPING_TRAIN[] =
    "#!/bin/sh\n"
    "stop=8\n"
    "for word; do case $word in --out=*) out=${word#--out=} ;; "
    "--arch=*) arch=${word#--arch=} ;; --stop-at=*) stop=${word#--stop-at=} ;; esac; done\n"
    "echo \"train $arch $stop\" >>calls\n"
    "mkdir -p $out/resume\n"
    "describe() { printf '{\\n  \"settings\": {\\n    \"state\": \"none\"\\n  },\\n'\n"
    "  printf '  \"state\": \"%s\",\\n  \"env_step\": %d,\\n  \"update\": 9\\n}\\n' $1 $2; }\n"
    "for step in 2 4 8; do\n"
    "  [ $step -gt $stop ] || [ -e $out/step_00000000$step.h5 ] || : >$out/step_00000000$step.h5\n"
    "done\n"
    "describe running $stop >$out/run.json\n"
    "[ ! -e kill ] || kill -9 $$\n"
    ": >$out/resume/point.0\n"
    "if [ $stop = 8 ]; then rm -r $out/resume; describe finished 8 >$out/run.json\n"
    "else describe stopped $stop >$out/run.json; fi\n";

/* The graph of TWO_RUNS with `line` added to [study]. */
static struct stage stage_until(const char *line)
{
    write_script("bin/fake train", STOPPING_TRAIN);
    write_script("bin/fake-analyze", FAKE_ANALYZE);
    return stage_of(text_of("[study]\n%s%s", line, TWO_RUNS + strlen("[study]\n")));
}

static size_t jobs_done(const struct stage *stage)
{
    size_t n = 0;

    for (size_t i = 0; i < stage->graph->n_jobs; i++)
        n += job_is_done(stage->graph, i);
    return n;
}

/* Runs the graph with this `stop`; checks how many jobs have run since the tree was made. */
static void run_until(const char *line, size_t done_before, size_t trainings, size_t analyses)
{
    struct stage stage = stage_until(line);

    assert_int_equal(jobs_done(&stage), done_before);
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(jobs_done(&stage), stage.graph->n_jobs);
    assert_int_equal(count(file_text("calls"), "train "), trainings);
    assert_int_equal(count(file_text("calls"), "analyze "), analyses);
    assert_ok(
        ks_graph_run(stage.graph, scratch_folder, 2, false, true)); /* nothing is left to do */
    assert_int_equal(count(file_text("calls"), "train "), trainings);
}

/* Runs that reached `stop` are complete and go on when it is raised or removed, without repeating
 * analyses. An earlier `stop` adds no work. */
TEST_IN_FOLDER(test_stop)
{
    write_text("calls", "");
    run_until("stop = 2\n", 0, 2, 2);
    assert_contains(file_text("calls"), "train bn+ce 2\n");
    assert_true(exists("runs/toy/bn+ce/seed0/resume"));
    run_until("stop = 4\n", 2, 4, 4); /* the analyses of step 2 */
    run_until("stop = 2\n", 4, 4, 4);
    run_until("stop = 6\n", 4, 6, 4); /* no checkpoint on the way, but the runs must reach `stop` */
    run_until("", 4, 8, 6);
    assert_false(exists("runs/toy/bn+ce/seed0/resume"));
    run_until("stop = 4\n", 6, 8, 6);
}

static void assert_restarts(const struct stage *stage, const char *words)
{
    const char *why;

    assert_ok(ks_graph_look(stage->graph, scratch_folder));
    why = stage->graph->job[0].restart;
    if (words)
        assert_contains(why, words);
    else
        assert_null(why);
}

/* A stopped run whose checkpoints were removed is complete, and goes on from its resume point when
 * `stop` is raised; without one, or if a spectrum of theirs has to be made, it starts from the
 * beginning. */
TEST_IN_FOLDER(test_removed_checkpoints)
{
    struct stage stage;

    write_text("calls", "");
    run_until("stop = 4\n", 0, 2, 4);
    assert_int_equal(unlink(scratch("runs/toy/bn+ce/seed0/step_000000002.h5")), 0);
    assert_int_equal(unlink(scratch("runs/toy/bn+ce/seed0/step_000000004.h5")), 0);
    run_until("stop = 4\n", 6, 2, 4);
    stage = stage_until("stop = 6\n");
    assert_restarts(&stage, NULL);
    assert_int_equal(jobs_done(&stage), 4);
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_int_equal(unlink(scratch("runs/toy/bn+ce/seed0/step_000000004.spectrum.h5")), 0);
    assert_restarts(
        &stage,
        "step_000000004.spectrum.h5 has to be made, but its checkpoint step_000000004.h5 is gone");
    assert_int_equal(jobs_done(&stage), 2); /* those of the other run */
    assert_true(exists("runs/toy/bn+ce/seed0/resume/point.0"));
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_false(exists("runs/toy/bn+ce/seed0/resume/point.0"));
    assert_true(exists("runs/toy/ln+ce/seed0/resume/point.0"));
    write_text("runs/toy/bn+ce/seed0/step_000000004.spectrum.h5", "");
    assert_restarts(&stage,
                    "train toy/bn+ce/seed0: has to start from the beginning: it was stopped at "
                    "step 4, but its resume point is gone");
    stage = stage_until("stop = 4\n");
    assert_restarts(&stage, NULL);
    assert_int_equal(jobs_done(&stage), 6);
}

/* Writes run.json and the header of a resume point of the first run; or the whole point, of a run
 * that has yet to do what is due at its step. */
static void write_point(const char *state, const char *more, uint64_t rows, bool pending)
{
    const struct section {
        char name[40];
        uint64_t size;
        bool recorded;
    } section = {"recorded", sizeof(bool), false};
    size_t section_size = offsetof(struct section, recorded) + sizeof(bool);
    struct ks_resume_header header = {.rows = rows, .state_size = section_size};
    unsigned char bytes[512] = "";
    FILE *file;

    write_text("runs/toy/bn+ce/seed0/run.json",
               text_of("{\n  \"state\": \"%s\",%s\n  \"env_step\": 4\n}\n", state, more));
    write_text("runs/toy/bn+ce/seed0/resume/point.1", "");
    memcpy(bytes + ks_resume_file_state_offset(0), &section, section_size);
    assert_ok(ks_resume_file_fill(&header, "", bytes));
    file = fopen(scratch("runs/toy/bn+ce/seed0/resume/point.1"), "wb");
    assert_non_null(file);
    assert_int_equal(
        fwrite(bytes, pending ? ks_resume_file_size(0, section_size) : sizeof header, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static void write_unfinished(const char *state, const char *more, uint64_t rows)
{
    write_point(state, more, rows, false);
}

/* A killed or failed run resumes from its resume point, and needs the checkpoints up to there:
 * those after it are written again. Without them it starts from the beginning. A run that has
 * failed for good does not start at all. */
TEST_IN_FOLDER(test_lost_checkpoints_of_unfinished_runs)
{
    static const char lost[] = "step_000000004.spectrum.h5 has to be made, but its checkpoint "
                               "step_000000004.h5 is gone";
    struct stage stage = stage_until("");

    assert_restarts(&stage, NULL);
    write_text("runs/toy/bn+ce/seed0/step_000000002.h5", "");
    write_unfinished("running", "", 1); /* the resume point is at step 2 */
    assert_restarts(&stage, NULL);
    write_unfinished("running", "", 2);
    assert_restarts(&stage, lost);
    write_unfinished("failed", "\n  \"resumable\": true,", 2);
    assert_restarts(&stage, lost);
    write_unfinished("failed", "\n  \"resumable\": false,", 2);
    assert_restarts(&stage, NULL);
    write_unfinished("stopped", "", 1); /* the newer point is gone */
    assert_restarts(&stage, NULL);
    write_point("stopped", "", 2, true); /* during the evaluation before the checkpoint */
    assert_restarts(&stage, NULL);
    stage = stage_until("stop = 4\n");
    write_point("stopped", "\n  \"reason\": \"stopped by SIGTERM\",", 2, true);
    assert_restarts(&stage, NULL);
    assert_false(stage.graph->job[0].done);
    stage = stage_until("");
    write_unfinished("running", "", 2);
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_false(exists("runs/toy/bn+ce/seed0/resume/point.1"));
    write_text("runs/toy/bn+ce/seed0/step_000000004.h5", "");
    write_unfinished("running", "", 2);
    assert_restarts(&stage, NULL);
}

/* All checkpoints exist, but the run did not reach `stop`: it is not complete. */
TEST_IN_FOLDER(test_killed_before_stop)
{
    struct stage stage;

    write_text("calls", "");
    write_text("kill", "");
    stage = stage_until("stop = 6\n");
    assert_fails(ks_graph_run(stage.graph, scratch_folder, 1, false, true), KS_RUN,
                 "bn+ce/seed0 failed");
    assert_true(exists("runs/toy/bn+ce/seed0/step_000000004.h5"));
    assert_int_equal(jobs_done(&stage), 0);
    assert_int_equal(unlink(scratch("kill")), 0);
    run_until("stop = 6\n", 0, 3, 4);
}

/* Exactly the spectra that were made with other options are computed again. */
TEST_IN_FOLDER(test_stale_spectra)
{
    struct stage stage = stage_new(":");

    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    ks_graph_set_changed(stage.graph, 0);
    for (size_t i = 0; i < stage.graph->n_jobs; i++)
        assert_int_equal(job_is_done(stage.graph, i), stage.graph->job[i].trains);
    assert_int_equal(unlink(scratch("runs/toy/ln+ce/seed0/step_000000004.spectrum.h5")), 0);
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_false(exists("runs/toy/bn+ce/seed0/step_000000002.spectrum.h5"));
    assert_ok(ks_graph_run(stage.graph, scratch_folder, 2, false, true));
    assert_int_equal(count(file_text("calls"), "train "), 2);
    assert_int_equal(count(file_text("calls"), "analyze "), 2 * 6);
}

static const char *const strangers[] = {"runs/toy/bn+ce/seed0/step_000000005.probe0.basis",
                                        "runs/toy/bn+ce/seed0/step_000000005.spectrum.h5",
                                        "runs/toy/bn+ce/seed7/step_000000002.spectrum.h5", NULL};

static void write_all(const char *const *names)
{
    for (; *names; names++)
        write_text(*names, "");
}

static void assert_all(const char *const *names, bool there)
{
    for (; *names; names++)
        assert_int_equal(exists(*names), there);
}

/* Of the stale spectra, files that belong to no job stay. The printed commands do the same. */
TEST_IN_FOLDER(test_strangers)
{
    static const char *const spectra[] = {"runs/toy/bn+ce/seed0/step_000000002.spectrum.h5",
                                          "runs/toy/ln+ce/seed0/step_000000004.spectrum.h5", NULL};
    struct stage stage = stage_new(":");

    write_script("bin/fake plot", "#!/bin/sh\n");
    ks_graph_set_changed(stage.graph, 0);
    run_printed(&stage); /* nothing exists yet */
    assert_string_equal(file_text("said"), "");
    write_all(spectra);
    write_all(strangers);
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_all(spectra, false);
    assert_all(strangers, true);
    ks_graph_set_changed(stage.graph, 0);
    write_all(spectra);
    run_printed(&stage);
    assert_all(strangers, true);
}

/* Every analysis has its own jobs and files; a change of its options affects no other analysis. */
TEST_IN_FOLDER(test_further_analyses)
{
    struct ks_graph *g =
        stage_of(text_of("%s[analyze]\norder = 7\n[analyze xqc]\ncompat = xqc\n", TWO_RUNS)).graph;
    const struct ks_graph_job *job = &g->job[2 + 3];

    assert_int_equal(g->n_jobs, 2 + 2 * 3 * 2);
    assert_int_equal(job->analysis, 1);
    assert_int_equal(job->step, 4);
    assert_contains(job->command, "fake-analyze --name=xqc --products=blas --compat=xqc --quiet "
                                  "runs/toy/bn+ce/seed0/step_000000004.h5");
    assert_string_equal(job->target[0], "runs/toy/bn+ce/seed0/step_000000004.xqc.spectrum.h5");
    assert_string_equal(job->log, "runs/toy/bn+ce/seed0/step_000000004.xqc.analyze.log");
    assert_string_equal(job->label, "analyze toy/bn+ce/seed0/step_000000004.xqc");
    for (size_t i = 0; i < g->n_jobs; i++)
        if (g->job[i].trains)
            write_trained(&g->job[i]);
        else
            write_text(g->job[i].target[0], "");
    ks_graph_set_changed(g, 1);
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(job_is_done(g, i), g->job[i].analysis == 0);
    assert_ok(ks_graph_drop_stale(g, scratch_folder, NULL));
    for (size_t i = 0; i < g->n_jobs; i++)
        assert_int_equal(exists(g->job[i].target[0]), g->job[i].analysis == 0);
}

/* Only the analyses that the study asks for have jobs. Spectra outside of a scope are removed with
 * the others when the options change. */
TEST_IN_FOLDER(test_scopes)
{
    static const char left[] = "runs/toy/bn+ce/seed0/step_000000002.end.spectrum.h5";
    struct ks_graph *g = stage_of(text_of("%s[analyze end]\ncheckpoints = last\n", TWO_RUNS)).graph;

    assert_int_equal(g->n_jobs, 2 + 2 * (3 + 1));
    assert_string_equal(g->job[2 + 3].target[0],
                        "runs/toy/bn+ce/seed0/step_000000008.end.spectrum.h5");
    assert_int_equal(g->job[2 + 4].run, 1);
    assert_int_equal(g->job[2 + 4].checkpoint, 0);
    write_text(left, "");
    assert_ok(ks_graph_check_spectra(g, scratch_folder, true));
    assert_ok(ks_graph_drop_stale(g, scratch_folder, NULL));
    assert_true(exists(left));
    ks_graph_set_changed(g, 1);
    assert_ok(ks_graph_drop_stale(g, scratch_folder, NULL));
    assert_false(exists(left));
}

/* If options change, spectra after an earlier `stop` are removed, too, although they have no jobs:
 * a study with a later `stop` would accept them. */
TEST_IN_FOLDER(test_stale_spectra_behind_stop)
{
    static const char *const spectra[] = {"runs/toy/bn+ce/seed0/step_000000002.spectrum.h5",
                                          "runs/toy/bn+ce/seed0/step_000000008.spectrum.h5", NULL};
    struct stage stage;

    write_all(spectra);
    stage = stage_until("stop = 4\n");
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_all(spectra, true);
    ks_graph_set_changed(stage.graph, 0);
    assert_ok(ks_graph_drop_stale(stage.graph, scratch_folder, NULL));
    assert_all(spectra, false);
}
