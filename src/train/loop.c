/* One run of XQC (Palenicek et al., ICLR 2026) or of another member of the study: act, store,
 * update, and at the scheduled environment steps evaluate, record, save. train() is the algorithm.
 */
#include "ks/train.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ks/memory.h"
#include "ks/program.h"
#include "ks/run.h"
#include "ks/stream.h"

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

ks_status ks_run_check_signal(const struct ks_run *r)
{
    return signal_seen == 0 ? KS_OK
                            : ks_fail(KS_RUN, "stopped by %s at environment step %zu",
                                      signal_seen == SIGINT ? "SIGINT" : "SIGTERM", r->env_step);
}

static bool is_due(const struct ks_due *due, size_t env_step, size_t *number)
{
    for (*number = 0; *number < due->n; ++*number)
        if (due->step[*number] == env_step)
            return true;
    return false;
}

struct ks_batch ks_run_batch(struct ks_run *r, struct ks_rng *rng, bool raw)
{
    double scale = raw ? 1 : ks_returns_scale(&r->returns);

    ks_replay_draw(r->replay, rng, &r->rows);
    for (size_t i = 0; i < r->rows.n; i++)
        r->rows.reward[i] /= scale;
    return (struct ks_batch){r->rows.s, r->rows.a, r->rows.next_s, r->rows.reward, r->rows.mask};
}

/* Agent step number k draws the same numbers in every run. */
static void choose_action(struct ks_run *r)
{
    size_t actions = r->agent->config.actions;
    struct ks_rng rng = ks_stream(r->options->seed, KS_EXPLORATION, 0);

    rng.drawn = (uint64_t)r->agent_steps * actions;
    if (r->agent_steps < r->options->settings.random_steps) {
        for (size_t i = 0; i < actions; i++)
            r->player.a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    } else {
        for (size_t i = 0; i < actions; i++)
            r->noise[i] = ks_rng_normal(&rng);
        KS(agent_act)(r->agent, r->player.s, r->noise, r->player.a);
    }
    ks_player_decide(&r->player);
}

/* The action for action_repeat environment steps; *ended where the episode is over. No task ends in
 * a true terminal state, so the mask is 1. */
static ks_status step_environment(struct ks_run *r, bool *ended)
{
    struct ks_player *p = &r->player;
    double sum = 0;

    *ended = false;
    for (size_t k = 0; k < r->options->settings.action_repeat && !*ended; k++) {
        double reward;

        KS_TRY(ks_env_step(p->env, p->action, p->observation, &reward, ended));
        sum += reward;
    }
    memcpy(r->last_s, p->s, r->agent->config.observations * sizeof *p->s);
    ks_player_observe(p);
    ks_replay_add(r->replay, r->last_s, p->a, sum, 1, p->s);
    ks_returns_add(&r->returns, r->gamma, sum, *ended);
    r->agent_steps++;
    r->env_step += r->options->settings.action_repeat;
    ks_run_report(r, p);
    return KS_OK;
}

static ks_status start_episode(struct ks_run *r, struct ks_rng *resets)
{
    KS_TRY(ks_env_reset(r->player.env, resets, r->player.observation));
    ks_player_observe(&r->player);
    return KS_OK;
}

static ks_status update(struct ks_run *r)
{
    struct ks_rng rng = ks_stream(r->options->seed, KS_REPLAY, 0);
    struct ks_update figures = {.critic_loss = 0};
    double start = ks_seconds();
    struct ks_batch batch;

    rng.drawn = (uint64_t)r->agent->updates * r->rows.n;
    batch = ks_run_batch(r, &rng, !r->options->settings.reward_normalization);
    KS_TRY(KS(agent_update)(r->agent, &batch, &figures));
    ks_metrics_add(r->metrics, &figures, ks_seconds() - start);
    return KS_OK;
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

static ks_status train(struct ks_run *r, struct ks_progress *progress)
{
    struct ks_rng resets = ks_stream(r->options->seed, KS_RESETS, 0);
    const struct ks_settings *s = &r->options->settings;
    char note[64] = "";

    KS_TRY(record(r));
    KS_TRY(start_episode(r, &resets));
    while (r->env_step < r->end) {
        bool ended;

        choose_action(r);
        KS_TRY(step_environment(r, &ended));
        if (r->agent_steps > s->random_steps)
            for (size_t k = 0; k < s->utd; k++)
                KS_TRY(update(r));
        if (ended)
            KS_TRY(start_episode(r, &resets));
        KS_TRY(record(r));
        KS_TRY(ks_run_check_signal(r));
        snprintf(note, sizeof note, "return %.1f", r->return_mean);
        ks_progress_update(progress, r->env_step, note);
    }
    return KS_OK;
}

/* Keeps the failure's message, with where it happened, through the writing of run.json. */
static ks_status end_badly(const struct ks_run *r, ks_status status)
{
    char reason[512];

    if (signal_seen)
        snprintf(reason, sizeof reason, "%s", ks_error_text());
    else
        snprintf(reason, sizeof reason, "environment step %zu, update %lld: %s", r->env_step,
                 (long long)r->agent->updates, ks_error_text());
    ks_run_describe(r, signal_seen ? KS_STOPPED : KS_FAILED, reason);
    return ks_fail(status, "%s", reason);
}

static ks_status train_and_describe(struct ks_run *r)
{
    struct ks_progress progress;
    ks_status status;

    ks_progress_start(&progress, r->name, r->end, r->options->quiet);
    status = train(r, &progress);
    ks_progress_end(&progress);
    if (status != KS_OK)
        return end_badly(r, status);
    return ks_run_describe(r, r->whole ? KS_FINISHED : KS_STOPPED, NULL);
}

ks_status ks_train(const struct ks_train_options *options)
{
    ks_status status = KS_OK;
    struct ks_run *r = NULL;
    char *path = NULL;

    KS_GO(ks_settings_check(&options->settings));
    KS_GO(ks_run_new(options, &r));
    KS_GO(ks_run_claim(r));
    ks_run_start_clock(r);
    listen_to_signals();
    KS_GO(ks_run_describe(r, KS_RUNNING, NULL));
    KS_GO(ks_run_path(r, "progress.csv", &path));
    KS_GO(ks_metrics_new(path, r->agent, &r->metrics));
    KS_GO(train_and_describe(r));
done:
    free(path);
    ks_run_free(r);
    return status;
}
