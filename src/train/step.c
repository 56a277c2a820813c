/* One agent step of a run: acting, the environment, replay, updates.
 *
 * The first update needs the environment's step for three things alone: the new transition, should
 * it be drawn; its reward, which moves the scale of rewards; and that it has been made. So it
 * begins while a thread of its own steps the environment, and waits for it where it reads rewards,
 * or before it begins where the transition is drawn. Nothing else depends on the thread. */
#include "train/run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "agent/stream.h"
#include "core/progress.h"

static struct ks_window window(const struct ks_run *r)
{
    return (struct ks_window){r->options->settings.n_step, r->gamma};
}

/* The minibatch in r->rows; its rewards are raw yet. */
static struct ks_batch view(struct ks_run *r)
{
    return (struct ks_batch){r->rows.s, r->rows.a, r->rows.next_s, r->rows.reward, r->rows.mask};
}

void ks_run_scale_rewards(struct ks_run *r)
{
    double scale = ks_returns_scale(&r->returns);

    for (size_t i = 0; i < r->rows.n; i++)
        r->rows.reward[i] /= scale;
}

struct ks_batch ks_run_batch(struct ks_run *r, struct ks_rng *rng)
{
    const struct ks_window w = window(r);

    ks_replay_draw(r->replay, rng, &w, &r->rows);
    return view(r);
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

/* What the environment did in one agent step. */
struct move {
    struct ks_run *run;
    double reward;
    bool ended; /* the episode */
    ks_status status;
    char error[1024]; /* of the thread that made the step */
};

/* The action for action_repeat environment steps, or until the episode is over. The start routine
 * of a thread. */
static void *step_environment(void *argument)
{
    struct move *m = argument;
    struct ks_player *p = &m->run->player;

    for (size_t k = 0; k < m->run->options->settings.action_repeat && !m->ended; k++) {
        double reward = 0;

        m->status = ks_env_step(p->env, p->action, p->observation, &reward, &m->ended);
        if (m->status != KS_OK) {
            snprintf(m->error, sizeof m->error, "%s", ks_error_text());
            return NULL;
        }
        m->reward += reward;
    }
    return NULL;
}

/* Stores the transition. No task ends in a true terminal state, so the mask is 1. */
static ks_status store(struct ks_run *r, const struct move *m)
{
    struct ks_player *p = &r->player;

    if (m->status != KS_OK)
        return ks_fail(m->status, "%s", m->error);
    memcpy(r->last_s, p->s, r->agent->config.observations * sizeof *p->s);
    ks_player_observe(p);
    KS_TRY(ks_replay_add(
        r->replay, &(struct ks_transition){r->last_s, p->a, p->s, (float)m->reward, 1, m->ended}));
    ks_returns_add(&r->returns, r->gamma, m->reward, m->ended);
    r->agent_steps++;
    r->env_step += r->options->settings.action_repeat;
    r->recorded = false;
    ks_run_report(r, p);
    return KS_OK;
}

static ks_status step_and_store(struct ks_run *r, struct move *m)
{
    step_environment(m);
    return store(r, m);
}

ks_status ks_run_start_episode(struct ks_run *r)
{
    KS_TRY(ks_env_reset(r->player.env, &r->resets, r->player.observation));
    ks_run_report(r, &r->player);
    ks_player_observe(&r->player);
    return KS_OK;
}

/* The numbers that the next update draws its minibatch with. */
static struct ks_rng minibatch_rng(const struct ks_run *r)
{
    struct ks_rng rng = ks_stream(r->options->seed, KS_REPLAY, 0);

    rng.drawn = (uint64_t)r->agent->updates * r->rows.n;
    return rng;
}

/* Replay has not changed since: the last update of an agent step is made after the step is stored,
 * or draws what it would draw then. */
struct ks_batch ks_run_last_batch(struct ks_run *r)
{
    struct ks_rng rng = minibatch_rng(r);

    rng.drawn -= r->rows.n;
    return ks_run_batch(r, &rng);
}

static ks_status update(struct ks_run *r)
{
    struct ks_update figures = {.critic_loss = 0};
    struct ks_rng rng = minibatch_rng(r);
    double start = ks_seconds();
    struct ks_batch batch = ks_run_batch(r, &rng);

    if (r->options->settings.reward_normalization)
        ks_run_scale_rewards(r);
    KS_TRY(KS(agent_update)(r->agent, &batch, &figures));
    ks_metrics_add(r->metrics, &figures, ks_seconds() - start);
    return KS_OK;
}

/* After ks_replay_draw_ahead. */
static ks_status update_beside(struct ks_run *r, struct move *m)
{
    struct ks_update figures = {.critic_loss = 0};
    struct ks_batch batch = view(r);
    double start = ks_seconds();
    pthread_t thread;
    bool beside = pthread_create(&thread, NULL, step_environment, m) == 0;

    KS(agent_begin)(r->agent, &batch);
    if (beside)
        pthread_join(thread, NULL);
    else
        step_environment(m);
    KS_TRY(store(r, m));
    if (r->options->settings.reward_normalization)
        ks_run_scale_rewards(r);
    KS_TRY(KS(agent_finish)(r->agent, &batch, &figures));
    ks_metrics_add(r->metrics, &figures, ks_seconds() - start);
    return KS_OK;
}

/* The environment's step and the first update. */
static ks_status step_and_update(struct ks_run *r, struct move *m)
{
    const struct ks_window w = window(r);
    struct ks_rng rng = minibatch_rng(r);

    if (r->options->settings.threads > 1 && ks_replay_draw_ahead(r->replay, &rng, &w, &r->rows))
        return update_beside(r, m);
    KS_TRY(step_and_store(r, m));
    return update(r);
}

static ks_status step(struct ks_run *r)
{
    const struct ks_settings *s = &r->options->settings;
    struct move m = {.run = r};

    choose_action(r);
    if (r->agent_steps < s->random_steps) {
        KS_TRY(step_and_store(r, &m));
    } else {
        KS_TRY(step_and_update(r, &m));
        for (size_t k = 1; k < s->utd; k++)
            KS_TRY(update(r));
    }
    return m.ended ? ks_run_start_episode(r) : KS_OK;
}

ks_status ks_run_step(struct ks_run *r)
{
    double start = ks_seconds();

    KS_TRY(step(r));
    r->metrics->step_seconds += ks_seconds() - start;
    return KS_OK;
}
