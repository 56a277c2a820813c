/* The time left of a study, from files made by hand, and the disk space that it takes. */
#include "staged.h"

#include "study/status.h"

/* Environment steps 0 to 2 are made without updates, those up to 8 with updates. */
static const char PROGRESS[] = "env_step,update,return_mean,steps_per_second\n"
                               "0,0,1,nan\n"
                               "2,0,nan,10\n"
                               "4,1,nan,2\n"
                               "8,3,2,1\n";
static const double ACTING = 0.1, TRAINING = (2.0 / 2 + 4.0 / 1) / 6, SPECTRUM = 90;

static void write_in(const struct ks_graph_job *job, const char *name, const char *text)
{
    write_text(text_of("%s/%s", job->folder, name), text);
}

/* Run 0 is trained; one of its spectra exists, the log of another one has no end. */
static void write_records(const struct stage *stage)
{
    const struct ks_graph_job *job = stage->graph->job;

    write_in(&job[0], "progress.csv", PROGRESS);
    write_in(&job[0], "train.log", "");
    write_trained(&job[0]);
    write_text(job[2].target[0], "");
    write_text(job[2].log, "started 2026-02-28T23:59:10Z\nkappa\nended 2026-03-01T00:00:40Z\n");
    write_text(job[3].log, "started 2026-02-28T23:59:10Z\n");
}

static double evaluations(const struct stage *stage, size_t after)
{
    double episodes = 0;

    for (size_t i = 0; i < stage->study->n_evaluations; i++)
        if (stage->study->evaluation[i] > after || after == 0)
            episodes += (double)stage->study->settings.eval_episodes;
    return 1000 * episodes * ACTING;
}

TEST_IN_FOLDER(test_time_left)
{
    struct stage stage = stage_new(":");
    struct ks_forecast f;
    struct ks_time_left left;
    double training;

    write_records(&stage);
    assert_ok(ks_forecast_read(stage.graph, scratch_folder, &f));
    assert_int_equal(f.n_runs, 1);
    assert_int_equal(f.n_spectra, 1);
    assert_close(ks_forecast_run(&f, 0).training, 0, 0);
    assert_close(ks_forecast_run(&f, 0).spectra, 2 * SPECTRUM, 0);
    /* another architecture without records has the mean pace */
    training = 2 * ACTING + 6 * TRAINING + evaluations(&stage, 0);
    assert_close(ks_forecast_run(&f, 1).training, training, 1e-9);
    assert_close(ks_forecast_run(&f, 1).spectra, 3 * SPECTRUM, 0);
    left = ks_forecast_all(&f, 1);
    assert_close(left.all, training + 5 * SPECTRUM, 1e-9);
    assert_close(left.best_spectra, left.spectra, 0);
    f.trial[1].best[0] = 1; /* the pace is that of the limits of its tolerances */
    assert_close(ks_forecast_all(&f, 1).best_spectra, 2 * SPECTRUM + 3, 1e-9);
    assert_close(ks_forecast_all(&f, 1).spectra, left.spectra, 0);
    left = ks_forecast_all(&f, 1000); /* one training cannot be divided */
    assert_close(left.all, training, 1e-9);
    ks_forecast_clear(&f);
    write_in(&stage.graph->job[1], "run.json", "{\"state\": \"stopped\", \"env_step\": 4}");
    assert_ok(ks_forecast_read(stage.graph, scratch_folder, &f));
    assert_close(ks_forecast_run(&f, 1).training, training, 1e-9); /* without a resume point */
    write_in(&stage.graph->job[1], "resume/point.1", "");
    write_text(stage.graph->job[1].target[0], "");
    write_text(stage.graph->job[1].target[1], "");
    ks_forecast_clear(&f);
    assert_ok(ks_forecast_read(stage.graph, scratch_folder, &f));
    assert_close(ks_forecast_run(&f, 1).training, 4 * TRAINING + evaluations(&stage, 4), 1e-9);
    ks_forecast_clear(&f);
}

/* An architecture's own pace comes before the mean of all. */
TEST_IN_FOLDER(test_own_pace)
{
    struct stage stage = stage_new(":");
    struct ks_forecast f;

    write_records(&stage);
    write_in(&stage.graph->job[1], "train.log", "");
    write_in(&stage.graph->job[1], "progress.csv",
             "env_step,update,steps_per_second\n2,0,1\n4,1,0.01\n6,2,0.0");
    write_in(&stage.graph->job[1], "run.json", "{\"state\": \"running\", \"env_step\": 4}");
    assert_ok(ks_forecast_read(stage.graph, scratch_folder, &f));
    assert_int_equal(f.n_runs, 2);
    assert_close(ks_forecast_run(&f, 1).training, 4 * 100 + evaluations(&stage, 4) / ACTING, 1e-9);
    ks_forecast_clear(&f);
}

/* The second run was trained on another machine. */
TEST_IN_FOLDER(test_nothing_recorded)
{
    struct stage stage = stage_new(":");
    KS_CLEARED_BY(ks_forecast_clear) struct ks_forecast f = {0};

    write_in(&stage.graph->job[0], "train.log", "");
    write_in(&stage.graph->job[0], "progress.csv", "env_step,update,steps_per_second\n0,0,nan\n");
    write_in(&stage.graph->job[1], "progress.csv", PROGRESS);
    assert_ok(ks_forecast_read(stage.graph, scratch_folder, &f));
    assert_true(isnan(ks_forecast_run(&f, 0).training));
    assert_true(isnan(ks_forecast_run(&f, 0).spectra));
    assert_true(isnan(ks_forecast_all(&f, 2).all));
}

/* A critic and an actor with one hidden layer of 2 units; counted by hand. */
TEST_IN_FOLDER(test_disk)
{
    struct ks_disk disk;
    const double critic = (5 + 1) * 2 + 2 + 1, actor = (3 + 1) * 2 + (2 + 1) * 4;
    const double batch = 8 * 5 + 2 * 8 * 1, inputs = 8 * (5 + 3);
    struct ks_study *s = good_study(
        "[study]\nenv = toy\narchitectures = dense+mse\nseeds = 0..2\nsteps = 80\n"
        "[train]\nhidden = 2\ndepth = 1\nactor_hidden = 2\nactor_depth = 1\n"
        "critics = 3\nbatch = 8\ncheckpoints = 2\nrandom_steps = 10\nreplay = 30\n"
        "analysis_minibatches = 7\n"
        "[analyze]\norder = 4\nprobes = 2\n");
    assert_ok(ks_study_disk(s, 3, 2, &disk));
    assert_close(disk.checkpoints, 3 * 3 * 4 * (4 * 3 * critic + actor + 7 * batch), 0);
    assert_close(disk.resume,
                 4 * (2 * (5 * 3 * critic + 4 * actor + inputs) + 30 * (3 + 3 + 2 + 2)), 0);
}
