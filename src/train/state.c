/* All that the further course of a run depends on, but for its replay, as bytes. One function lists
 * it; measuring, writing and reading all walk through that list. */
#include "ks/run.h"

#include <string.h>

enum direction { MEASURE, WRITE, READ };

struct pack {
    enum direction direction;
    unsigned char *bytes;
    size_t at;
};

static void item(struct pack *p, void *data, size_t size)
{
    if (p->direction == WRITE)
        memcpy(p->bytes + p->at, data, size);
    else if (p->direction == READ)
        memcpy(data, p->bytes + p->at, size);
    p->at += size;
}

static void reals(struct pack *p, size_t n, real *x)
{
    item(p, x, n * sizeof *x);
}

static void pack_trained(struct pack *p, const struct ks_arch *arch, struct ks_trained *t)
{
    reals(p, arch->parameters, t->w);
    reals(p, arch->parameters, t->m);
    reals(p, arch->parameters, t->v);
    reals(p, arch->parameters, t->g);
    if (t->target)
        reals(p, arch->parameters, t->target);
    reals(p, arch->states, t->state);
}

/* Gradients and the last minibatch are there for the row of progress.csv that an interrupted
 * evaluation still owes. */
static void pack_agent(struct pack *p, struct ks_agent *a)
{
    for (size_t e = 0; e < a->config.ensemble; e++)
        pack_trained(p, a->critic_arch, &a->critic[e]);
    pack_trained(p, a->actor_arch, &a->actor);
    reals(p, a->config.batch * KS(agent_width)(a), a->input);
    reals(p, a->config.batch * a->config.observations, a->s);
    item(p, &a->log_temperature, sizeof a->log_temperature);
    item(p, &a->temperature_m, sizeof a->temperature_m);
    item(p, &a->temperature_v, sizeof a->temperature_v);
    item(p, &a->critic_adam.step, sizeof a->critic_adam.step);
    item(p, &a->actor_adam.step, sizeof a->actor_adam.step);
    item(p, &a->updates, sizeof a->updates);
}

static void pack_metrics(struct pack *p, struct ks_metrics *m)
{
    item(p, &m->sum, sizeof m->sum);
    item(p, &m->updates, sizeof m->updates);
    item(p, &m->actor_steps, sizeof m->actor_steps);
    item(p, &m->env_step, sizeof m->env_step);
    item(p, &m->step_seconds, sizeof m->step_seconds);
    item(p, &m->update_seconds, sizeof m->update_seconds);
}

/* Streams other than that of the start states are keyed by the counters of steps and updates. */
static void pack_run(struct pack *p, struct ks_run *r)
{
    struct ks_player *player = &r->player;

    pack_agent(p, r->agent);
    pack_metrics(p, r->metrics);
    item(p, &r->returns, sizeof r->returns);
    item(p, &r->agent_steps, sizeof r->agent_steps);
    item(p, &r->env_step, sizeof r->env_step);
    item(p, &r->recorded, sizeof r->recorded);
    item(p, &r->resets, sizeof r->resets);
    item(p, &r->return_mean, sizeof r->return_mean);
    item(p, r->episode_returns, r->options->settings.eval_episodes * sizeof *r->episode_returns);
    item(p, r->started, sizeof r->started);
    item(p, &r->evaluator.divergences, sizeof r->evaluator.divergences);
    item(p, player->observation, ks_env_observations(player->env) * sizeof *player->observation);
    item(p, r->env_state, ks_env_state_size(player->env) * sizeof *r->env_state);
}

size_t ks_run_state_size(struct ks_run *r)
{
    struct pack p = {.direction = MEASURE};

    pack_run(&p, r);
    return p.at;
}

void ks_run_state_get(struct ks_run *r, unsigned char *bytes)
{
    struct pack p = {.direction = WRITE, .bytes = bytes};

    ks_env_state_get(r->player.env, r->env_state);
    pack_run(&p, r);
}

ks_status ks_run_state_set(struct ks_run *r, const unsigned char *bytes)
{
    struct pack p = {.direction = READ, .bytes = (unsigned char *)bytes};

    pack_run(&p, r);
    ks_player_observe(&r->player);
    KS_TRY(ks_env_state_set(r->player.env, ks_env_state_size(r->player.env), r->env_state));
    r->player.divergences = ks_env_divergences(r->player.env);
    ks_env_divergences_set(r->evaluator.env, r->evaluator.divergences);
    return KS_OK;
}
