/* One agent step of a run: acting, the environment, replay, updates. */
#include "ks/run.h"

#include <string.h>

#include "ks/program.h"
#include "ks/stream.h"

struct ks_batch ks_run_batch(struct ks_run *r, struct ks_rng *rng, bool raw)
{
    const struct ks_window window = {r->options->settings.n_step, r->gamma};
    double scale = raw ? 1 : ks_returns_scale(&r->returns);

    ks_replay_draw(r->replay, rng, &window, &r->rows);
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
    KS_TRY(ks_replay_add(r->replay,
                         &(struct ks_transition){r->last_s, p->a, p->s, (float)sum, 1, *ended}));
    ks_returns_add(&r->returns, r->gamma, sum, *ended);
    r->agent_steps++;
    r->env_step += r->options->settings.action_repeat;
    r->recorded = false;
    ks_run_report(r, p);
    return KS_OK;
}

ks_status ks_run_start_episode(struct ks_run *r)
{
    KS_TRY(ks_env_reset(r->player.env, &r->resets, r->player.observation));
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

static ks_status step(struct ks_run *r)
{
    const struct ks_settings *s = &r->options->settings;
    bool ended;

    choose_action(r);
    KS_TRY(step_environment(r, &ended));
    if (r->agent_steps > s->random_steps)
        for (size_t k = 0; k < s->utd; k++)
            KS_TRY(update(r));
    return ended ? ks_run_start_episode(r) : KS_OK;
}

ks_status ks_run_step(struct ks_run *r)
{
    double start = ks_seconds();

    KS_TRY(step(r));
    r->metrics->step_seconds += ks_seconds() - start;
    return KS_OK;
}
