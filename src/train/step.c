/* The first update of an agent step depends on that step of the environment in three ways only: the
 * new transition, if it is drawn; the new reward, which moves the scale of rewards; and the count
 * of transitions. So the update starts while another thread steps the environment, and waits for
 * that thread before it reads rewards. If the new transition is drawn, or decides about what is
 * drawn (priorities), or with frames, the update starts after the step. The result does not depend
 * on the thread.
 */
#include "train/learner.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "agent/stream.h"
#include "core/progress.h"
#include "train/metrics.h"

/* The standard deviation of the noise on the actions of agent step number k and in its updates. */
static double noise_at(const struct ks_settings *s, size_t k)
{
    const double share = fmin((double)k / (double)s->noise_steps, 1);

    return (1 - share) * s->noise + share * s->noise_end;
}

/* The random numbers of agent step number k depend only on k and the seed. */
static void choose_action(struct ks_learner *l)
{
    const struct ks_train_options *o = l->plan->options;
    size_t actions = l->agent->config.actions;
    struct ks_rng rng = ks_stream(o->seed, KS_EXPLORATION, 0);

    rng.drawn = (uint64_t)l->agent_steps * actions;
    l->agent->noise = noise_at(&o->settings, l->agent_steps);
    if (l->normalizer)
        ks_normalizer_add(l->normalizer, l->player.s);
    if (l->agent_steps < o->settings.random_steps) {
        for (size_t i = 0; i < actions; i++)
            l->player.a[i] = (float)ks_rng_uniform(&rng, -1, 1);
    } else {
        for (size_t i = 0; i < actions; i++)
            l->noise[i] = ks_rng_normal(&rng);
        KS(agent_act)
        (l->agent, ks_normalizer_see(l->normalizer, l->player.s), l->noise, l->player.a);
    }
    ks_player_set_action(&l->player);
}

/* What one agent step starts from, and what the environment did in it. */
struct env_result {
    struct ks_player *player;
    size_t action_repeat;
    double temperature; /* of the agent, before the step's updates: it may scale rewards */
    double reward;
    enum ks_env_end end; /* of the episode */
    ks_status status;
    char error[1024]; /* the message, which is kept per thread */
};

/* Applies the action for action_repeat environment steps, or until the episode ends. The start
 * routine of a thread. */
static void *step_environment(void *argument)
{
    struct env_result *m = argument;
    struct ks_player *p = m->player;

    for (size_t k = 0; k < m->action_repeat && m->end == KS_ENV_GOES_ON; k++) {
        double reward = 0;

        m->status = ks_env_step(p->env, p->action, p->observation, &reward, &m->end);
        if (m->status != KS_OK) {
            snprintf(m->error, sizeof m->error, "%s", ks_error_text());
            return NULL;
        }
        m->reward += reward;
    }
    return NULL;
}

/* Stores the transition. The mask is 0 after a terminal state, whose value is 0. */
static ks_status store(struct ks_learner *l, const struct env_result *m)
{
    const bool ended = m->end != KS_ENV_GOES_ON;
    struct ks_player *p = &l->player;
    struct ks_transition t = {
        .reward = (float)m->reward, .mask = m->end == KS_ENV_TERMINATED ? 0 : 1, .last = ended};

    if (m->status != KS_OK)
        return ks_fail(m->status, "%s", m->error);
    KS_TRY(ks_player_observe(p));
    t.s = p->previous_s, t.a = p->a, t.next_s = p->s;
    if (p->frames)
        t.frame = ks_player_frame(p, true);
    KS_TRY(ks_replay_add(l->replay, &t));
    ks_priorities_add(l->priorities);
    ks_returns_add(&l->returns, l->plan->options->settings.reward_scaling, l->plan->gamma,
                   m->reward, ended);
    if (ended)
        ks_returns_end_episode(&l->returns, l->replay, l->plan->gamma, m->end == KS_ENV_TRUNCATED);
    if (ended && p->frames)
        KS_TRY(ks_replay_add(l->replay, &(struct ks_transition){.frame = ks_player_frame(p, false),
                                                                .only_frame = true}));
    l->agent_steps++;
    l->env_step +=
        m->action_repeat; /* also if the episode ended earlier: milestones are multiples */
    ks_player_report(p, l->env_step);
    return KS_OK;
}

static ks_status step_and_store(struct ks_learner *l, struct env_result *m)
{
    step_environment(m);
    return store(l, m);
}

ks_status ks_learner_start_episode(struct ks_learner *l)
{
    KS_TRY(ks_player_start(&l->player, &l->resets));
    ks_player_report(&l->player, l->env_step);
    return KS_OK;
}

static ks_status update(struct ks_learner *l, const struct env_result *m,
                        struct ks_metrics *metrics)
{
    struct ks_update found = {.critic_loss = 0};
    double start = ks_seconds();
    struct ks_batch batch;

    KS_TRY(ks_learner_refresh(l));
    KS_TRY(ks_learner_next_batch(l, &batch));
    ks_learner_scale_rewards(l, m->temperature);
    KS_TRY(KS(agent_update)(l->agent, &batch, &found));
    ks_learner_set_priorities(l);
    ks_metrics_add(metrics, &found, ks_seconds() - start);
    return KS_OK;
}

/* The minibatch was drawn by ks_learner_batch_ahead. */
static ks_status update_while_stepping(struct ks_learner *l, const struct ks_batch *batch,
                                       struct env_result *m, struct ks_metrics *metrics)
{
    struct ks_update found = {.critic_loss = 0};
    double start = ks_seconds();
    pthread_t thread;
    bool started = pthread_create(&thread, NULL, step_environment, m) == 0;
    ks_status begun = KS(agent_begin)(l->agent, batch, &found);

    if (started)
        pthread_join(thread, NULL);
    else
        step_environment(m);
    KS_TRY(begun);
    KS_TRY(store(l, m));
    ks_learner_scale_rewards(l, m->temperature);
    KS_TRY(KS(agent_finish)(l->agent, batch, &found));
    ks_metrics_add(metrics, &found, ks_seconds() - start);
    return KS_OK;
}

/* The environment's step and the first update. */
static ks_status step_and_update(struct ks_learner *l, struct env_result *m,
                                 struct ks_metrics *metrics)
{
    struct ks_batch batch;

    if (l->plan->options->settings.threads > 1 && ks_learner_batch_ahead(l, &batch))
        return update_while_stepping(l, &batch, m, metrics);
    KS_TRY(step_and_store(l, m));
    return update(l, m, metrics);
}

static ks_status step(struct ks_learner *l, struct ks_metrics *metrics)
{
    const struct ks_settings *s = &l->plan->options->settings;
    struct env_result m = {.player = &l->player,
                           .action_repeat = s->action_repeat,
                           .temperature = KS(agent_temperature)(l->agent)};

    choose_action(l);
    if (l->agent_steps + 1 == s->reset_step)
        KS_TRY(KS(agent_reset)(l->agent));
    if (l->agent_steps < s->random_steps ||
        (l->agent_steps - s->random_steps) % s->update_every != 0) {
        KS_TRY(step_and_store(l, &m));
    } else {
        KS_TRY(step_and_update(l, &m, metrics));
        for (size_t k = 1; k < s->utd; k++)
            KS_TRY(update(l, &m, metrics));
    }
    return m.end != KS_ENV_GOES_ON ? ks_learner_start_episode(l) : KS_OK;
}

ks_status ks_learner_step(struct ks_learner *l, struct ks_metrics *metrics)
{
    double start = ks_seconds();

    KS_TRY(step(l, metrics));
    metrics->step_seconds += ks_seconds() - start;
    return KS_OK;
}
