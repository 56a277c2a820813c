/* One run of XQC (Palenicek et al., ICLR 2026) or of another architecture of the study: agent
 * steps, and at the milestones evaluations, rows of progress.csv and checkpoints. train() is the
 * algorithm, with ks_learner_step of step.c. */
#include "train/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/blas.h"
#include "core/progress.h"
#include "core/say.h"
#include "io/file.h"
#include "train/announce.h"
#include "train/checkpoint_files.h"
#include "train/resume_point.h"
#include "train/run_folder.h"
#include "train/run_json.h"
#include "train/save_checkpoint.h"
#include "train/step.h"
#include "train/stop_request.h"
#include "train/train.h"

static bool is_due(const struct ks_milestones *m, size_t env_step, size_t *number)
{
    for (*number = 0; *number < m->n; ++*number)
        if (m->env_step[*number] == env_step)
            return true;
    return false;
}

static ks_status write_row(struct ks_run *r, bool evaluates)
{
    struct ks_learner *l = &r->learner;
    struct ks_batch batch, *last = NULL;

    if (l->agent->updates > 0) {
        batch = ks_learner_last_batch(l);
        last = &batch;
    }
    r->metrics->divergences = ks_env_divergences(l->player.env);
    r->metrics->evaluation_divergences = ks_env_divergences(r->evaluation.player.env);
    r->metrics->has_goal = ks_env_has_goal(l->player.env);
    r->metrics->success = evaluates ? r->evaluation.success : NAN;
    return ks_metrics_row(r->metrics, l->agent, last, l->env_step,
                          evaluates ? r->evaluation.return_mean : NAN);
}

/* Does what is due at this step. The evaluation comes first: a checkpoint of the same step contains
 * its return. */
static ks_status record(struct ks_run *r)
{
    size_t evaluation, checkpoint, env_step = r->learner.env_step;
    bool evaluates = is_due(&r->plan.evaluations, env_step, &evaluation);
    bool saves = is_due(&r->plan.checkpoints, env_step, &checkpoint);

    if (evaluates)
        KS_TRY(ks_evaluate(&r->evaluation, &r->learner, evaluation));
    if (evaluates || saves) {
        KS_TRY(write_row(r, evaluates));
        KS_TRY(ks_run_write_json(r, KS_RUNNING, NULL));
    }
    if (saves)
        KS_TRY(ks_save_checkpoint(r));
    r->recorded = true;
    return KS_OK;
}

/* A signal after the last step's record is ignored: the run is complete. */
static ks_status train(struct ks_run *r, struct ks_resume_points *points,
                       struct ks_progress_bar *progress)
{
    struct ks_learner *l = &r->learner;
    char note[64] = "";

    if (!r->recorded) /* at the start, or still pending when the resume point was written */
        KS_TRY(record(r));
    while (l->env_step < r->plan.end) {
        KS_TRY(ks_stop_check(l->env_step));
        KS_TRY(ks_resume_keep(points, r));
        if (l->agent_steps == r->plan.options->settings.random_steps)
            ks_progress_restart(progress, l->env_step); /* steps with updates take far longer */
        KS_TRY(ks_learner_step(l, r->metrics));
        r->recorded = false;
        KS_TRY(record(r));
        snprintf(note, sizeof note, "return %.1f", r->evaluation.return_mean);
        ks_progress_update(progress, l->env_step, note);
    }
    return r->plan.stops_early ? ks_resume_write(points, r) : KS_OK;
}

/* Writes the state and the reason into run.json and, if a signal ended the run, a resume point.
 * Returns `status`, whose message stays even if one of these fails. NaN is deterministic: retrying
 * would fail again, so that failure is permanent. */
static ks_status end_after_failure(struct ks_run *r, struct ks_resume_points *points,
                                   ks_status status)
{
    bool stopped = ks_stop_obeyed();
    enum ks_run_state state = stopped               ? KS_STOPPED
                              : status == KS_NUMBER ? KS_FAILED_PERMANENTLY
                                                    : KS_FAILED;
    char reason[1024];

    if (stopped)
        snprintf(reason, sizeof reason, "%s", ks_error_text());
    else
        snprintf(reason, sizeof reason, "environment step %zu, update %lld: %s",
                 r->learner.env_step, (long long)r->learner.agent->updates, ks_error_text());
    if (stopped && ks_resume_write(points, r) != KS_OK)
        snprintf(reason + strlen(reason), sizeof reason - strlen(reason),
                 ", but no resume point could be written: %.400s", ks_error_text());
    if (ks_run_write_json(r, state, reason) == KS_OK && state == KS_FAILED_PERMANENTLY)
        ks_resume_clear(points); /* useless now; if it fails, they do no harm */
    return ks_fail(status, "%s", reason);
}

static ks_status train_and_describe(struct ks_run *r, struct ks_resume_points *points, bool resumed)
{
    const struct ks_plan *plan = &r->plan;
    struct ks_progress_bar progress;
    ks_status status = KS_OK;

    ks_progress_start(&progress, plan->name, plan->end, plan->options->quiet);
    ks_progress_restart(&progress, r->learner.env_step);
    if (!resumed)
        status = ks_checkpoint_files_check(plan, r->learner.env_step, r->recorded);
    if (status == KS_OK)
        status = train(r, points, &progress);
    ks_progress_end(&progress);
    if (status != KS_OK)
        return end_after_failure(r, points, status);
    KS_TRY(ks_run_write_json(r, plan->stops_early ? KS_STOPPED : KS_FINISHED, NULL));
    return plan->stops_early ? KS_OK : ks_resume_clear(points);
}

/* Removes the resume points first: they would not match the files of the new start. */
static ks_status start_over(struct ks_run *r, struct ks_resume_points *points)
{
    const struct ks_plan *plan = &r->plan;
    ks_status status;
    char *path;

    if (!plan->options->quiet && ks_resume_exists(points))
        ks_say("%s: starting over: the resume points in %s/resume are removed", plan->name,
               plan->folder);
    KS_TRY(ks_resume_clear(points));
    KS_TRY(ks_plan_path(plan, "progress.csv", &path));
    status = ks_metrics_new(path, 0, r->learner.agent, &r->metrics);
    free(path);
    KS_TRY(status);
    return ks_learner_start_episode(&r->learner);
}

/* Opens progress.csv before run.json says "running": every later failure is written to run.json. A
 * resumed run that lacks a checkpoint fails before that: run.json and the checkpoints stay as they
 * are, while progress.csv and the replay log have already lost what came after the resume point. */
static ks_status start(struct ks_run *r, struct ks_resume_points *points, bool *resumed)
{
    const struct ks_plan *plan = &r->plan;

    *resumed = false;
    KS_TRY(ks_folder_sweep(plan->folder));
    if (plan->options->resume)
        KS_TRY(ks_resume_restore(points, r, resumed));
    if (*resumed)
        KS_TRY(ks_checkpoint_files_check(plan, r->learner.env_step, r->recorded));
    else
        KS_TRY(start_over(r, points));
    ks_run_time(*resumed ? r->resumed : r->started);
    ks_stop_listen();
    if (!plan->options->quiet)
        ks_announce(r, points, *resumed);
    return ks_run_write_json(r, KS_RUNNING, NULL);
}

static ks_status train_in_folder(struct ks_run *r, struct ks_resume_points *points)
{
    bool finished, resumed;

    KS_TRY(ks_run_claim_folder(r, &finished));
    if (finished) {
        if (!r->plan.options->quiet)
            ks_say("%s: this run is finished: nothing to do", r->plan.folder);
        return ks_resume_clear(points);
    }
    KS_TRY(start(r, points, &resumed));
    return train_and_describe(r, points, resumed);
}

ks_status ks_run_train(struct ks_run *r)
{
    struct ks_resume_points *points;
    ks_status status;

    KS_TRY(ks_resume_new(r, &points));
    status = train_in_folder(r, points);
    ks_resume_free(points);
    return status;
}

ks_status ks_train(const struct ks_train_options *options)
{
    const struct ks_settings *s = &options->settings;
    struct ks_run *r = NULL;
    ks_status status;

    KS_TRY(ks_settings_check(s));
    KS_TRY(ks_blas_reserve(s->threads < s->critics ? s->threads : s->critics));
    KS_TRY(ks_run_new(options, &r));
    status = ks_run_train(r);
    ks_run_free(r);
    return status;
}
