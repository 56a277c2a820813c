#include "ks/agent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ks/init.h"
#include "ks/memory.h"
#include "ks/policy.h"
#include "ks/stream.h"

size_t KS(agent_width)(const struct ks_agent *a)
{
    return a->config.observations + a->config.actions;
}

size_t KS(agent_rows)(const struct ks_agent *a)
{
    return a->config.batch * (a->critic_arch->joint ? 2 : 1);
}

double KS(agent_temperature)(const struct ks_agent *a)
{
    return exp(a->log_temperature);
}

static ks_status parse(struct ks_agent *a)
{
    const struct ks_agent_config *c = &a->config;
    const char *name = c->name ? c->name : "critic";

    KS_TRY(KS(arch_parse)(c->critic, name, KS(agent_width)(a), &a->critic_arch));
    KS_TRY(KS(arch_parse)(c->actor, "actor", c->observations, &a->actor_arch));
    if (!a->critic_arch->loss.kind || (strcmp(a->critic_arch->loss.kind->name, "ce") != 0 &&
                                       strcmp(a->critic_arch->loss.kind->name, "mse") != 0))
        return ks_fail(KS_FORMAT, "%s: expected 'loss ce' or 'loss mse' to train it, found %s",
                       name,
                       a->critic_arch->loss.kind ? a->critic_arch->loss.kind->name : "a policy");
    if (a->actor_arch->policy.actions != c->actions)
        return ks_fail(KS_FORMAT, "actor: expected a policy of %zu actions, found %zu", c->actions,
                       a->actor_arch->policy.actions);
    return KS_OK;
}

static ks_status build_nets(struct ks_agent *a)
{
    size_t batch = a->config.batch, rows = KS(agent_rows)(a);

    KS_TRY(KS(net_new)(a->critic_arch, rows, batch, false, &a->critic_train));
    KS_TRY(KS(net_new)(a->critic_arch, batch, batch, true, &a->critic_eval));
    KS_TRY(KS(net_new)(a->actor_arch, batch, batch, false, &a->actor_train));
    KS_TRY(KS(net_new)(a->actor_arch, batch, batch, true, &a->actor_eval));
    return KS(net_new)(a->actor_arch, 1, 1, true, &a->actor_one);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* `n` zeroed reals. */
static ks_status reals(size_t n, real **out)
{
    return ks_alloc(n, sizeof **out, out);
}

static ks_status allocate_critic(const struct ks_agent *a, struct ks_critic *c)
{
    size_t n = a->critic_arch->parameters;

    KS_TRY(reals(n, &c->w));
    KS_TRY(reals(n, &c->m));
    KS_TRY(reals(n, &c->v));
    KS_TRY(reals(n, &c->g));
    KS_TRY(reals(n, &c->target));
    KS_TRY(reals(a->critic_arch->states, &c->state));
    KS_TRY(reals(larger(a->critic_train->primal, a->critic_eval->primal), &c->primal));
    KS_TRY(reals(larger(a->critic_train->adjoint, a->critic_eval->adjoint), &c->adjoint));
    KS_TRY(reals(a->config.batch * KS(agent_width)(a), &c->x_bar));
    return reals(KS(widest)(a->critic_arch), &c->columns);
}

static ks_status allocate_pass(const struct ks_agent *a, struct ks_actor_pass *pass)
{
    KS_TRY(reals(larger(a->actor_train->primal, a->actor_eval->primal), &pass->primal));
    KS_TRY(reals(a->config.batch * a->config.actions, &pass->noise));
    return reals(a->config.batch, &pass->log_pi);
}

static ks_status allocate_actor(struct ks_agent *a)
{
    size_t n = a->actor_arch->parameters;

    KS_TRY(reals(n, &a->actor_w));
    KS_TRY(reals(n, &a->actor_m));
    KS_TRY(reals(n, &a->actor_v));
    KS_TRY(reals(n, &a->actor_g));
    KS_TRY(reals(a->actor_arch->states, &a->actor_state));
    KS_TRY(reals(a->actor_arch->states, &a->actor_next_state));
    KS_TRY(allocate_pass(a, &a->next));
    KS_TRY(allocate_pass(a, &a->policy));
    KS_TRY(reals(a->actor_train->adjoint, &a->actor_adjoint));
    return reals(KS(widest)(a->actor_arch), &a->actor_columns);
}

static ks_status allocate(struct ks_agent *a)
{
    size_t batch = a->config.batch, outputs = a->critic_arch->out, ensemble = a->config.ensemble;
    size_t threads = (size_t)a->config.threads;

    KS_TRY(ks_alloc(ensemble, sizeof *a->critic, &a->critic));
    for (size_t e = 0; e < ensemble; e++)
        KS_TRY(allocate_critic(a, &a->critic[e]));
    KS_TRY(allocate_actor(a));
    KS_TRY(reals((batch + KS(agent_rows)(a)) * KS(agent_width)(a), &a->input));
    KS_TRY(reals(batch * a->config.observations, &a->s));
    KS_TRY(reals(batch * a->config.observations, &a->next_s));
    KS_TRY(reals(batch * KS(agent_width)(a), &a->policy_input));
    KS_TRY(reals(batch * KS(agent_width)(a), &a->action_bar));
    KS_TRY(reals(batch * a->critic_arch->loss.targets, &a->target));
    KS_TRY(reals(larger(threads * 2 * outputs, KS(agent_width)(a)), &a->row));
    KS_TRY(reals(ensemble * batch * outputs, &a->values));
    KS_TRY(ks_alloc(ensemble * batch, sizeof *a->q, &a->q));
    return ks_alloc(ensemble, sizeof *a->outputs, &a->outputs);
}

static ks_status init(struct ks_agent *a)
{
    const struct ks_agent_config *c = &a->config;
    struct ks_rng rng = ks_stream(c->seed, KS_INIT_ACTOR, 0);

    KS_TRY(KS(init_network)(a->actor_arch, &rng, a->actor_w, a->actor_state));
    KS(project)(a->actor_arch, a->actor_w, a->actor_columns);
    for (size_t e = 0; e < c->ensemble; e++) {
        struct ks_critic *critic = &a->critic[e];

        rng = ks_stream(c->seed, KS_INIT_CRITIC, e);
        KS_TRY(KS(init_network)(a->critic_arch, &rng, critic->w, critic->state));
        KS(project)(a->critic_arch, critic->w, critic->columns);
        memcpy(critic->target, critic->w, a->critic_arch->parameters * sizeof *critic->w);
    }
    a->log_temperature = log(c->temperature);
    a->critic_adam = (struct ks_adam){
        .schedule = c->critic_rate, .weight_decay = c->weight_decay, .decayed = c->decay};
    a->actor_adam = a->critic_adam;
    a->actor_adam.schedule = c->actor_rate;
    return KS_OK;
}

ks_status KS(agent_new)(const struct ks_agent_config *config, struct ks_agent **agent)
{
    ks_status status = KS_OK;
    struct ks_agent *a = NULL;

    *agent = NULL;
    KS_GO(ks_alloc(1, sizeof *a, &a));
    a->config = *config;
    KS_GO(parse(a));
    a->config.critic = a->config.actor = a->config.name = NULL;
    KS_GO(build_nets(a));
    KS_GO(allocate(a));
    KS_GO(init(a));
    *agent = a;
    return KS_OK;
done:
    KS(agent_free)(a);
    return status;
}

static void free_critic(struct ks_critic *c)
{
    free(c->w);
    free(c->m);
    free(c->v);
    free(c->g);
    free(c->target);
    free(c->state);
    free(c->primal);
    free(c->adjoint);
    free(c->x_bar);
    free(c->columns);
}

void KS(agent_free)(struct ks_agent *a)
{
    if (!a)
        return;
    for (size_t e = 0; a->critic && e < a->config.ensemble; e++)
        free_critic(&a->critic[e]);
    free(a->critic);
    real *block[] = {
        a->actor_w,          a->actor_m,       a->actor_v,       a->actor_g,     a->actor_state,
        a->actor_next_state, a->actor_adjoint, a->actor_columns, a->input,       a->s,
        a->next_s,           a->policy_input,  a->action_bar,    a->target,      a->row,
        a->values,           a->next.primal,   a->next.noise,    a->next.log_pi, a->policy.primal,
        a->policy.noise,     a->policy.log_pi};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
    free(a->q);
    free(a->outputs);
    KS(net_free)(a->critic_train);
    KS(net_free)(a->critic_eval);
    KS(net_free)(a->actor_train);
    KS(net_free)(a->actor_eval);
    KS(net_free)(a->actor_one);
    KS(arch_free)(a->critic_arch);
    KS(arch_free)(a->actor_arch);
    free(a);
}

void KS(agent_act)(struct ks_agent *a, const float *observation, const double *noise, float *action)
{
    size_t n = a->config.actions;
    struct ks_policy_pass pass;
    const real *head;

    for (size_t j = 0; j < a->config.observations; j++)
        a->row[j] = (real)observation[j];
    KS(net_forward)(a->actor_one, a->actor_w, a->actor_state, a->row, a->next.primal);
    head = KS(net_output)(a->actor_one, a->next.primal);
    for (size_t j = 0; j < n && noise; j++)
        a->next.noise[j] = (real)noise[j];
    pass = (struct ks_policy_pass){.rows = 1,
                                   .stride = n,
                                   .head = head,
                                   .noise = a->next.noise,
                                   .action = a->row,
                                   .log_pi = a->next.log_pi};
    if (noise)
        KS(policy_sample)(&a->actor_arch->policy, &pass, 0);
    else
        KS(policy_mean)(&a->actor_arch->policy, head, a->row);
    for (size_t j = 0; j < n; j++)
        action[j] = (float)a->row[j];
}

static ks_status check(const char *what, size_t n, const real *x)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return ks_fail(KS_NUMBER, "%s: number %zu is %g", what, i, (double)x[i]);
    return KS_OK;
}

ks_status KS(agent_check)(const struct ks_agent *a)
{
    for (size_t e = 0; e < a->config.ensemble; e++) {
        const struct ks_critic *c = &a->critic[e];

        KS_TRY(check("critic parameters", a->critic_arch->parameters, c->w));
        KS_TRY(check("critic running statistics", a->critic_arch->states, c->state));
        KS_TRY(check("target parameters", a->critic_arch->parameters, c->target));
        KS_TRY(check("critic first moments", a->critic_arch->parameters, c->m));
        KS_TRY(check("critic second moments", a->critic_arch->parameters, c->v));
    }
    KS_TRY(check("actor parameters", a->actor_arch->parameters, a->actor_w));
    KS_TRY(check("actor first moments", a->actor_arch->parameters, a->actor_m));
    KS_TRY(check("actor second moments", a->actor_arch->parameters, a->actor_v));
    if (!isfinite(a->temperature_m) || !isfinite(a->temperature_v))
        return ks_fail(KS_NUMBER, "temperature moments: %g and %g", a->temperature_m,
                       a->temperature_v);
    return check("actor running statistics", a->actor_arch->states, a->actor_state);
}
