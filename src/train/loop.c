/* One run of XQC (Palenicek et al., ICLR 2026) or of another member of the study: agent steps, and
 * at the scheduled environment steps evaluations, rows of progress.csv, checkpoints. train() is the
 * algorithm, with ks_run_step of step.c. */
#include "ks/train.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "ks/program.h"
#include "ks/run.h"

static volatile sig_atomic_t signal_seen; /* 0: none */

static void note_signal(int number)
{
    signal_seen = number;
}

static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};

    signal_seen = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

ks_status ks_run_check_signal(struct ks_run *r)
{
    if (signal_seen == 0)
        return KS_OK;
    r->interrupted = true;
    return ks_fail(KS_RUN, "stopped by %s at environment step %zu",
                   signal_seen == SIGINT ? "SIGINT" : "SIGTERM", r->env_step);
}

static bool is_due(const struct ks_due *due, size_t env_step, size_t *number)
{
    for (*number = 0; *number < due->n; ++*number)
        if (due->step[*number] == env_step)
            return true;
    return false;
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
        KS_TRY(ks_metrics_row(r->metrics, r->agent, r->env_step, evaluates ? r->return_mean : NAN));
        KS_TRY(ks_run_describe(r, KS_RUNNING, NULL));
    }
    if (saves)
        KS_TRY(ks_run_save(r));
    return KS_OK;
}

/* A signal after the last record comes too late: the run is complete. */
static ks_status train(struct ks_run *r, struct ks_progress *progress)
{
    char note[64] = "";

    KS_TRY(record(r));
    KS_TRY(ks_run_start_episode(r));
    while (r->env_step < r->end) {
        KS_TRY(ks_run_check_signal(r));
        KS_TRY(ks_run_step(r));
        KS_TRY(record(r));
        snprintf(note, sizeof note, "return %.1f", r->return_mean);
        ks_progress_update(progress, r->env_step, note);
    }
    return KS_OK;
}

/* Keeps the failure's message, with where it happened, through the writing of run.json. */
static ks_status end_badly(const struct ks_run *r, ks_status status)
{
    char reason[512];

    if (r->interrupted)
        snprintf(reason, sizeof reason, "%s", ks_error_text());
    else
        snprintf(reason, sizeof reason, "environment step %zu, update %lld: %s", r->env_step,
                 (long long)r->agent->updates, ks_error_text());
    ks_run_describe(r, r->interrupted ? KS_STOPPED : KS_FAILED, reason);
    return ks_fail(status, "%s", reason);
}

static ks_status train_and_describe(struct ks_run *r)
{
    struct ks_progress progress;
    ks_status status;

    ks_progress_start(&progress, r->name, r->end, r->options->quiet);
    status = ks_run_remove_checkpoints(r);
    if (status == KS_OK)
        status = train(r, &progress);
    ks_progress_end(&progress);
    if (status != KS_OK)
        return end_badly(r, status);
    return ks_run_describe(r, r->whole ? KS_FINISHED : KS_STOPPED, NULL);
}

/* progress.csv is opened before run.json says that the run is running: whatever fails after that is
 * written there. */
static ks_status start(struct ks_run *r)
{
    char *path;
    ks_status status;

    KS_TRY(ks_run_path(r, "progress.csv", &path));
    status = ks_metrics_new(path, r->agent, &r->metrics);
    free(path);
    KS_TRY(status);
    ks_run_start_clock(r);
    listen_to_signals();
    return ks_run_describe(r, KS_RUNNING, NULL);
}

ks_status ks_train(const struct ks_train_options *options)
{
    ks_status status = KS_OK;
    struct ks_run *r = NULL;
    bool finished;

    KS_GO(ks_settings_check(&options->settings));
    KS_GO(ks_run_new(options, &r));
    KS_GO(ks_run_claim(r, &finished));
    if (finished) {
        if (!options->quiet)
            fprintf(stderr, "%s: this run is finished: nothing to do\n", r->folder);
        goto done;
    }
    KS_GO(start(r));
    KS_GO(train_and_describe(r));
done:
    ks_run_free(r);
    return status;
}
