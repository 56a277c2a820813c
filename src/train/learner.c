#include "train/learner.h"

#include <math.h>
#include <stdlib.h>

#include "agent/stream.h"
#include "core/memory.h"

/* The learning rates fall over all updates of the run, as if none of its steps were random. Each
 * optimizer counts its own steps, so with a policy delay the actor's rate falls less far. */
static ks_status new_agent(struct ks_learner *l)
{
    const struct ks_plan *plan = l->plan;
    const struct ks_settings *s = &plan->options->settings;
    double updates = (double)s->utd * (double)plan->agent_steps;
    size_t actions = ks_env_actions(l->player.env);
    struct ks_agent_config config = {
        .critic = plan->critic_text,
        .actor = plan->actor_text,
        .name = plan->options->architecture,
        .observations = ks_env_observations(l->player.env),
        .actions = actions,
        .ensemble = s->critics,
        .batch = s->batch,
        .gamma = plan->gamma,
        .tau = s->tau,
        .critic_rate = {s->critic_lr, s->lr_end, updates},
        .actor_rate = {s->actor_lr, s->lr_end, updates},
        .policy_delay = s->policy_delay,
        .temperature = s->temperature,
        .target_entropy = isnan(s->target_entropy) ? -(double)actions / 2 : s->target_entropy,
        .weight_decay = s->weight_decay,
        .decay = (enum ks_decay)s->decay,
        .seed = plan->options->seed,
        .threads = (int)(s->threads < s->critics ? s->threads : s->critics),
    };

    return KS(agent_new)(&config, &l->agent);
}

/* Replay never holds more transitions than the run makes. */
static ks_status new_replay(struct ks_learner *l)
{
    size_t observations = ks_env_observations(l->player.env);
    size_t actions = ks_env_actions(l->player.env), batch = l->plan->options->settings.batch;
    size_t capacity = l->plan->options->settings.replay, steps = l->plan->agent_steps;

    KS_TRY(ks_replay_new(steps < capacity ? steps : capacity, observations, actions, &l->replay));
    l->rows.n = batch;
    KS_TRY(ks_alloc(batch * observations, sizeof *l->rows.s, &l->rows.s));
    KS_TRY(ks_alloc(batch * actions, sizeof *l->rows.a, &l->rows.a));
    KS_TRY(ks_alloc(batch * observations, sizeof *l->rows.next_s, &l->rows.next_s));
    KS_TRY(ks_alloc(batch, sizeof *l->rows.mask, &l->rows.mask));
    return ks_alloc(batch, sizeof *l->rows.reward, &l->rows.reward);
}

ks_status ks_learner_init(const struct ks_plan *plan, struct ks_learner *l)
{
    l->plan = plan;
    l->resets = ks_stream(plan->options->seed, KS_RESETS, 0);
    KS_TRY(new_agent(l));
    KS_TRY(new_replay(l));
    return ks_alloc(ks_env_actions(l->player.env), sizeof *l->noise, &l->noise);
}

void ks_learner_free(struct ks_learner *l)
{
    ks_player_free(&l->player);
    KS(agent_free)(l->agent);
    ks_replay_free(l->replay);
    free(l->rows.s);
    free(l->rows.a);
    free(l->rows.next_s);
    free(l->rows.mask);
    free(l->rows.reward);
    free(l->noise);
}

struct ks_window ks_learner_window(const struct ks_learner *l)
{
    return (struct ks_window){l->plan->options->settings.n_step, l->plan->gamma};
}

struct ks_rng ks_learner_minibatch_rng(const struct ks_learner *l)
{
    struct ks_rng rng = ks_stream(l->plan->options->seed, KS_REPLAY, 0);

    rng.drawn = (uint64_t)l->agent->updates * l->rows.n;
    return rng;
}

struct ks_batch ks_learner_view(const struct ks_learner *l)
{
    return (struct ks_batch){l->rows.s, l->rows.a, l->rows.next_s, l->rows.reward, l->rows.mask};
}

struct ks_batch ks_learner_batch(struct ks_learner *l, struct ks_rng *rng)
{
    const struct ks_window window = ks_learner_window(l);

    ks_replay_draw(l->replay, rng, &window, &l->rows);
    return ks_learner_view(l);
}

/* Replay has not changed since the last update: that update was made after the step's transition
 * was stored, or it drew what it would have drawn then (ks_replay_draw_ahead). */
struct ks_batch ks_learner_last_batch(struct ks_learner *l)
{
    struct ks_rng rng = ks_learner_minibatch_rng(l);

    rng.drawn -= l->rows.n;
    return ks_learner_batch(l, &rng);
}

void ks_learner_scale_rewards(struct ks_learner *l)
{
    double scale = ks_returns_scale(&l->returns);

    for (size_t i = 0; i < l->rows.n; i++)
        l->rows.reward[i] /= scale;
}
