/* One run of XQC (Palenicek et al., ICLR 2026) or of another member of the study: agent steps, and
 * at the scheduled environment steps evaluations, rows of progress.csv, checkpoints. train() is the
 * algorithm, with ks_run_step of step.c. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/blas.h"
#include "core/progress.h"
#include "core/say.h"
#include "io/file.h"
#include "train/resume_point.h"
#include "train/run.h"

static bool is_due(const struct ks_due *due, size_t env_step, size_t *number)
{
    for (*number = 0; *number < due->n; ++*number)
        if (due->step[*number] == env_step)
            return true;
    return false;
}

static ks_status write_row(struct ks_run *r, double return_mean)
{
    struct ks_batch batch, *last = NULL;

    if (r->agent->updates > 0) {
        batch = ks_run_last_batch(r);
        last = &batch;
    }
    r->metrics->divergences = ks_env_divergences(r->player.env);
    r->metrics->evaluation_divergences = ks_env_divergences(r->evaluator.env);
    return ks_metrics_row(r->metrics, r->agent, last, r->env_step, return_mean);
}

/* The evaluation comes before the checkpoint of the same step, which carries its return. */
static ks_status record(struct ks_run *r)
{
    size_t evaluation, checkpoint;
    bool evaluates = is_due(&r->evaluations, r->env_step, &evaluation);
    bool saves = is_due(&r->checkpoints, r->env_step, &checkpoint);

    if (evaluates)
        KS_TRY(ks_run_evaluate(r, evaluation));
    if (evaluates || saves) {
        KS_TRY(write_row(r, evaluates ? r->return_mean : NAN));
        KS_TRY(ks_run_write_json(r, KS_RUNNING, NULL));
    }
    if (saves)
        KS_TRY(ks_run_save(r));
    r->recorded = true;
    return KS_OK;
}

/* A signal after the last record comes too late: the run is complete. */
static ks_status train(struct ks_run *r, struct ks_progress *progress)
{
    char note[64] = "";

    if (!r->recorded) /* the start, or a resumed run's owing */
        KS_TRY(record(r));
    while (r->env_step < r->end) {
        KS_TRY(ks_run_check_signal(r));
        KS_TRY(ks_resume_keep(r));
        if (r->agent_steps == r->options->settings.random_steps)
            ks_progress_restart(progress, r->env_step); /* learning takes longer by far */
        KS_TRY(ks_run_step(r));
        KS_TRY(record(r));
        snprintf(note, sizeof note, "return %.1f", r->return_mean);
        ks_progress_update(progress, r->env_step, note);
    }
    return r->whole ? KS_OK : ks_resume_write(r);
}

/* Keeps the failure's message, with where it happened, through the writing of run.json and, where a
 * signal ended the run, of a resume point. A number that is none would come again. */
static ks_status end_badly(struct ks_run *r, ks_status status)
{
    enum ks_run_state state = r->interrupted        ? KS_STOPPED
                              : status == KS_NUMBER ? KS_FAILED_FOR_GOOD
                                                    : KS_FAILED;
    char reason[1024];

    if (r->interrupted)
        snprintf(reason, sizeof reason, "%s", ks_error_text());
    else
        snprintf(reason, sizeof reason, "environment step %zu, update %lld: %s", r->env_step,
                 (long long)r->agent->updates, ks_error_text());
    if (r->interrupted && ks_resume_write(r) != KS_OK)
        snprintf(reason + strlen(reason), sizeof reason - strlen(reason),
                 ", without a resume point there: %.400s", ks_error_text());
    if (ks_run_write_json(r, state, reason) == KS_OK && state == KS_FAILED_FOR_GOOD)
        ks_resume_clear(r); /* what cannot be removed is only in the way */
    return ks_fail(status, "%s", reason);
}

static ks_status train_and_describe(struct ks_run *r, bool resumes)
{
    struct ks_progress progress;
    ks_status status;

    ks_progress_start(&progress, r->name, r->end, r->options->quiet);
    ks_progress_restart(&progress, r->env_step);
    status = resumes ? KS_OK : ks_run_check_checkpoints(r);
    if (status == KS_OK)
        status = train(r, &progress);
    ks_progress_end(&progress);
    if (status != KS_OK)
        return end_badly(r, status);
    KS_TRY(ks_run_write_json(r, r->whole ? KS_FINISHED : KS_STOPPED, NULL));
    return r->whole ? ks_resume_clear(r) : KS_OK;
}

/* Resume points go first: they would not fit what comes. */
static ks_status start_anew(struct ks_run *r)
{
    ks_status status;
    char *path;

    if (!r->options->quiet && ks_resume_there(r))
        ks_say("%s: starting over: the resume points in %s/resume are removed", r->name, r->folder);
    KS_TRY(ks_resume_clear(r));
    KS_TRY(ks_run_path(r, "progress.csv", &path));
    status = ks_metrics_new(path, 0, r->agent, &r->metrics);
    free(path);
    KS_TRY(status);
    return ks_run_start_episode(r);
}

/* progress.csv is opened before run.json says that the run is running: whatever fails after that is
 * written there. A resumed run that lacks a checkpoint fails before, and stays what it was. */
static ks_status start(struct ks_run *r, bool *resumes)
{
    *resumes = false;
    KS_TRY(ks_folder_sweep(r->folder));
    if (r->options->resume)
        KS_TRY(ks_resume_restore(r, resumes));
    if (*resumes)
        KS_TRY(ks_run_check_checkpoints(r));
    else
        KS_TRY(start_anew(r));
    ks_run_start_clock(r, *resumes);
    ks_run_listen_to_signals();
    if (!r->options->quiet)
        ks_run_announce(r, *resumes);
    return ks_run_write_json(r, KS_RUNNING, NULL);
}

ks_status ks_run_train(struct ks_run *r)
{
    bool finished, resumes;

    KS_TRY(ks_run_claim(r, &finished));
    if (finished) {
        if (!r->options->quiet)
            ks_say("%s: this run is finished: nothing to do", r->folder);
        return ks_resume_clear(r);
    }
    KS_TRY(start(r, &resumes));
    return train_and_describe(r, resumes);
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
