#include "agent/agent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/actor.h"
#include "agent/stream.h"
#include "core/memory.h"

size_t KS(agent_width)(const struct KS(agent) *a)
{
    return a->critic_arch->in;
}

size_t KS(agent_rows)(const struct KS(agent) *a)
{
    return a->config.batch * (a->critic_arch->joint ? 2 : 1);
}

size_t KS(agent_critic_parameters)(const struct KS(agent) *a)
{
    return a->config.ensemble * a->critic_arch->parameters;
}

double KS(agent_temperature)(const struct KS(agent) *a)
{
    return exp(a->log_temperature);
}

ks_status KS(network_check)(const struct KS(arch) *arch, const char *name, bool images)
{
    if (arch->frozen > 0)
        return ks_fail(KS_FORMAT, "%s: trainable=no is for analysis: training updates all layers",
                       name);
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];

        if (l->kind->reads_input || (!images && l->kind == &KS(conv2d)))
            return ks_fail(KS_FORMAT,
                           "%s: '%s' is for analysis: training has no gradient through it", name,
                           l->kind->name);
        if (l->normed && l->reads_state)
            return ks_fail(
                KS_FORMAT,
                "%s: norm=spectral is for analysis: training does not update its u and v", name);
    }
    return KS_OK;
}

/* What the critics' description must be for training. */
static ks_status check_critic(const struct KS(agent) *a, const char *name)
{
    const struct KS(loss_kind) *loss = a->critic_arch->loss.kind;

    if (!loss || !loss->trainable)
        return ks_fail(
            KS_FORMAT,
            "%s: expected 'loss ce', 'loss mse', 'loss huber' or 'loss quantile', found %s", name,
            loss                                 ? loss->name
            : a->critic_arch->policy.actions > 0 ? "a policy"
                                                 : "outputs");
    if (!loss->distribution && !loss->any_targets && a->critic_arch->loss.outputs > 1)
        return ks_fail(KS_FORMAT,
                       "%s: loss %s: for training expected a last dense of 1 column, found %zu",
                       name, loss->name, a->critic_arch->loss.outputs);
    if (a->critic_arch->layer[a->critic_arch->n_layers - 1].kind != &KS(dense))
        return ks_fail(KS_FORMAT, "%s: for training the last layer must be a dense", name);
    return KS(network_check)(a->critic_arch, name, false);
}

/* For messages: a policy of another kind than is expected. */
static const char *other_policy(const struct ks_policy *policy, bool fixed)
{
    if (policy->shift)
        return "policy shift of ";
    if (policy->actions == 0 || policy->fixed == fixed)
        return "";
    return fixed ? "policy tanh-gaussian of " : "policy tanh of ";
}

static bool is_deterministic(const struct KS(agent) *a)
{
    return a->encoder || a->pixels;
}

/* With an encoder no network has batch statistics. */
static ks_status check_actor(const struct KS(agent) *a, const char *name)
{
    const struct ks_policy *policy = &a->actor_arch->policy;
    const bool fixed = is_deterministic(a);

    if (policy->actions != a->config.actions || policy->shift || policy->fixed != fixed)
        return ks_fail(KS_FORMAT, "actor: expected 'policy %s' of %zu actions, found %s%zu",
                       fixed ? "tanh" : "tanh-gaussian", a->config.actions,
                       other_policy(policy, fixed), policy->actions);
    if (fixed && (a->config.order == KS_ACTOR_FIRST || a->config.optimist))
        return ks_fail(KS_FORMAT,
                       "%s: with a deterministic actor: expected update_order=critics-first and no "
                       "optimist",
                       name);
    if (a->encoder && (a->critic_arch->joint || a->critic_arch->states > 0 ||
                       a->critic_arch->loss.kind->distribution || a->critic_arch->out != 1))
        return ks_fail(KS_FORMAT,
                       "%s: with an encoder: expected critics with one output and "
                       "without running statistics",
                       name);
    return a->encoder && (a->actor_arch->joint || a->actor_arch->states > 0)
               ? ks_fail(KS_FORMAT, "actor: with an encoder: expected no running statistics")
               : KS_OK;
}

static ks_status parse(struct KS(agent) *a)
{
    const struct ks_agent_config *c = &a->config;
    const char *name = c->name ? c->name : "critic";
    size_t critic_in = c->observations + c->actions, actor_in = c->observations;

    if (c->encoder) {
        KS_TRY(KS(encoder_new)(a, &a->encoder));
        critic_in = a->encoder->arch[KS_PAIR_MODULE]->out;
        actor_in = a->encoder->arch[KS_STATE_MODULE]->out;
    }
    if (c->pixels) {
        KS_TRY(KS(pixels_new)(a, &a->pixels));
        critic_in = a->pixels->arch[KS_TRUNK]->out + c->actions;
        actor_in = a->pixels->arch[KS_IMAGE]->out;
    }
    KS_TRY(KS(arch_parse)(c->critic, name, critic_in, &a->critic_arch));
    KS_TRY(KS(arch_parse)(c->actor, "actor", actor_in, &a->actor_arch));
    a->critic_arch->products = a->actor_arch->products = c->products;
    KS_TRY(check_critic(a, name));
    KS_TRY(KS(network_check)(a->actor_arch, "actor", false));
    return check_actor(a, name);
}

static ks_status build_nets(struct KS(agent) *a)
{
    size_t batch = a->config.batch, rows = KS(agent_rows)(a);

    KS_TRY(KS(net_new)(a->critic_arch, rows, batch, false, &a->critic_train));
    KS_TRY(KS(net_new)(a->critic_arch, batch, batch, true, &a->critic_eval));
    KS_TRY(KS(net_new)(a->critic_arch, 2 * batch, 2 * batch, false, &a->critic_both));
    KS_TRY(KS(net_new)(a->actor_arch, batch, batch, false, &a->actor_train));
    KS_TRY(KS(net_new)(a->actor_arch, batch, batch, true, &a->actor_eval));
    return KS(net_new)(a->actor_arch, 1, 1, true, &a->actor_one);
}

static void lay_out_draw(struct ks_arena *arena, const struct ks_agent_config *c,
                         struct KS(draw) *draw)
{
    draw->noise = KS_TAKE(arena, c->batch * c->actions, real);
    draw->log_pi = KS_TAKE(arena, c->batch, real);
}

static void lay_out_acting(struct ks_arena *arena, struct KS(agent) *a)
{
    a->acting.s = KS_TAKE(arena, a->config.observations, real);
    a->acting.primal = KS_TAKE(arena, a->actor_one->primal, real);
    a->acting.noise = KS_TAKE(arena, a->config.actions, real);
    a->acting.action = KS_TAKE(arena, a->config.actions, real);
}

static void lay_out_networks(struct ks_arena *arena, struct KS(agent) *a)
{
    size_t ensemble = a->config.ensemble;

    a->critic = KS_TAKE(arena, ensemble, struct KS(trained));
    for (size_t e = 0; e < ensemble; e++) {
        struct KS(trained) *critic = KS_TAKEN(a->critic, e, struct KS(trained));

        KS(trained_lay_out)(arena, a->critic_train, a->critic_eval, a->critic_both, critic);
        critic->target = KS_TAKE(arena, a->critic_arch->parameters, real);
    }
    a->critic_step = KS_TAKE(arena, ensemble, struct ks_critic_step);
    KS(trained_lay_out)(arena, a->actor_train, a->actor_eval, a->actor_eval, &a->actor);
    if (a->encoder)
        a->actor.target = KS_TAKE(arena, a->actor_arch->parameters, real);
    a->next_primal = KS_TAKE(arena, a->actor_eval->primal, real);
    a->next_state = KS_TAKE(arena, a->actor_arch->states, real);
}

/* What follows n numbers of an array; NULL while counting. */
static real *behind(real *array, size_t n)
{
    return array ? array + n : NULL;
}

static void lay_out(struct ks_arena *arena, void *agent)
{
    struct KS(agent) *a = agent;
    size_t batch = a->config.batch, outputs = a->critic_arch->out, ensemble = a->config.ensemble;
    size_t width = KS(agent_width)(a), seen = batch * a->actor_arch->in;

    lay_out_networks(arena, a);
    lay_out_draw(arena, &a->config, &a->next);
    lay_out_draw(arena, &a->config, &a->policy);
    lay_out_acting(arena, a);
    a->input = KS_TAKE(arena, (batch + KS(agent_rows)(a)) * width, real);
    a->target_input = a->pixels ? KS_TAKE(arena, 2 * batch * width, real)
                                : behind(a->input, batch * width);
    a->s = KS_TAKE(arena, 2 * seen, real);
    a->next_s = behind(a->s, seen);
    if (a->encoder)
        a->deviation = KS_TAKE(arena, batch, real);
    a->policy_input = KS_TAKE(arena, batch * width, real);
    a->x_bar = KS_TAKE(arena, ensemble * (a->pixels ? KS(agent_rows)(a) : batch) * width, real);
    a->action_bar = KS_TAKE(arena, batch * width, real);
    a->target = KS_TAKE(arena, batch * a->critic_arch->loss.targets, real);
    a->row = KS_TAKE(arena, (size_t)a->config.threads * 2 * outputs, real);
    a->values = KS_TAKE(arena, ensemble * batch * outputs, real);
    a->q = KS_TAKE(arena, ensemble * batch, double);
    a->outputs = KS_TAKE(arena, ensemble, const real *);
    if (a->encoder)
        KS(encoder_lay_out)(arena, a);
    if (a->pixels)
        KS(pixels_lay_out)(arena, a);
    if (a->optimist)
        KS(optimist_lay_out)(arena, a);
}

ks_status KS(agent_reset)(struct KS(agent) *a)
{
    const struct ks_agent_config *c = &a->config;

    KS_TRY(KS(trained_init)(a->actor_arch, &c->starts, ks_stream(c->seed, KS_INIT_ACTOR, 0),
                            &a->actor));
    for (size_t e = 0; e < c->ensemble; e++)
        KS_TRY(KS(trained_init)(a->critic_arch, &c->starts, ks_stream(c->seed, KS_INIT_CRITIC, e),
                                &a->critic[e]));
    a->log_temperature = is_deterministic(a) ? -INFINITY : log(c->temperature); /* T = 0 */
    a->temperature_m = a->temperature_v = 0;
    a->value_scale = 1;
    a->critic_adam = (struct ks_adam){.rate = c->critic_rate,
                                      .beta1 = c->beta1,
                                      .weight_decay = c->weight_decay,
                                      .decayed = c->decay,
                                      .tau = c->target_period > 0 ? 0 : c->tau};
    a->actor_adam = a->critic_adam;
    a->actor_adam.rate = c->actor_rate;
    a->temperature_adam = (struct ks_adam){
        .rate = c->actor_rate, .beta1 = c->temperature_beta1, .weight_decay = c->temperature_decay};
    if (a->encoder)
        KS_TRY(KS(encoder_init)(a));
    if (a->pixels)
        KS_TRY(KS(pixels_init)(a));
    return a->optimist ? KS(optimist_init)(a) : KS_OK;
}

ks_status KS(agent_new)(const struct ks_agent_config *config, struct KS(agent) **agent)
{
    ks_status status = KS_OK;
    struct KS(agent) *a = NULL;

    *agent = NULL;
    KS_GO(ks_alloc(1, sizeof *a, &a));
    a->config = *config;
    a->kind = config->encoder ? &KS(mrq) : config->pixels ? &KS(drq) : &KS(soft_actor_critic);
    KS_GO(parse(a));
    KS_GO(build_nets(a));
    if (config->optimist)
        KS_GO(KS(optimist_new)(a, config->optimist, &a->optimist));
    KS_GO(ks_arena_make(&a->arena, lay_out, a));
    a->config.critic = a->config.actor = a->config.optimist = a->config.name = NULL;
    a->config.encoder = a->config.pixels = NULL;
    KS_GO(KS(agent_reset)(a));
    *agent = a;
    return KS_OK;
done:
    KS(agent_free)(a);
    return status;
}

void KS(agent_free)(struct KS(agent) *a)
{
    if (!a)
        return;
    ks_arena_free(&a->arena);
    KS(optimist_free)(a->optimist);
    KS(encoder_free)(a->encoder);
    KS(pixels_free)(a->pixels);
    KS(net_free)(a->critic_train);
    KS(net_free)(a->critic_eval);
    KS(net_free)(a->critic_both);
    KS(net_free)(a->actor_train);
    KS(net_free)(a->actor_eval);
    KS(net_free)(a->actor_one);
    KS(arch_free)(a->critic_arch);
    KS(arch_free)(a->actor_arch);
    free(a);
}

void KS(agent_act)(struct KS(agent) *a, const float *observation, const double *noise,
                   float *action)
{
    struct KS(acting) *t = &a->acting;

    for (size_t j = 0; j < a->config.observations; j++)
        t->s[j] = (real)observation[j];
    for (size_t j = 0; j < a->config.actions && noise; j++)
        t->noise[j] = (real)noise[j];
    a->kind->act(a, noise != NULL);
    for (size_t j = 0; j < a->config.actions; j++)
        action[j] = (float)t->action[j];
}

void KS(agent_refresh)(struct KS(agent) *a, double value_scale)
{
    for (size_t e = 0; e < a->config.ensemble; e++)
        KS(trained_copy)(a->critic_arch, &a->critic[e]);
    KS(trained_copy)(a->actor_arch, &a->actor);
    for (size_t k = 0; a->encoder && k < KS_MODULES; k++)
        KS(trained_copy)(a->encoder->arch[k], &a->encoder->module[k]);
    for (size_t k = 0; a->pixels && k < KS_PIXELS_PARTS; k++)
        KS(trained_copy)(a->pixels->arch[k], &a->pixels->part[k]);
    a->value_scale = value_scale;
}

static ks_status check(const char *name, const char *what, size_t n, const real *x)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return ks_fail(KS_NUMBER, "%s %s: entry %zu is %g", name, what, i, (double)x[i]);
    return KS_OK;
}

static ks_status check_trained(const char *name, const struct KS(arch) *arch,
                               const struct KS(trained) *t)
{
    KS_TRY(check(name, "parameters", arch->parameters, t->w));
    KS_TRY(check(name, "running statistics", arch->states, t->state));
    if (t->target)
        KS_TRY(check(name, "target parameters", arch->parameters, t->target));
    KS_TRY(check(name, "first moments", arch->parameters, t->m));
    return check(name, "second moments", arch->parameters, t->v);
}

ks_status KS(agent_check)(const struct KS(agent) *a)
{
    for (size_t e = 0; e < a->config.ensemble; e++)
        KS_TRY(check_trained("critic", a->critic_arch, &a->critic[e]));
    KS_TRY(check_trained("actor", a->actor_arch, &a->actor));
    if (a->optimist)
        KS_TRY(check_trained("optimistic actor", a->optimist->arch, &a->optimist->shift));
    for (enum ks_module k = KS_STATE_MODULE; a->encoder && k < KS_MODULES; k++)
        KS_TRY(check_trained("encoder", a->encoder->arch[k], &a->encoder->module[k]));
    for (enum ks_pixels_part k = KS_IMAGE; a->pixels && k < KS_PIXELS_PARTS; k++)
        KS_TRY(check_trained(k == KS_IMAGE ? "image" : "trunk", a->pixels->arch[k],
                             &a->pixels->part[k]));
    if (!isfinite(a->temperature_m) || !isfinite(a->temperature_v))
        return ks_fail(KS_NUMBER, "temperature moments: %g and %g", a->temperature_m,
                       a->temperature_v);
    return KS_OK;
}

/* A checkpoint holds all numbers, and its parsed descriptions, in double. */

static void copy(size_t n, const real *from, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

static ks_status export_networks(const struct KS(arch) *arch, size_t ensemble,
                                 const struct KS(trained) *t, struct ks_networks *networks)
{
    KS_TRY(ks_networks_allocate(arch->text, arch->in, ensemble, true, networks));
    for (size_t e = 0; e < ensemble; e++) {
        copy(arch->parameters, t[e].w, networks->w + e * arch->parameters);
        if (arch->states > 0)
            copy(arch->states, t[e].state, networks->state + e * arch->states);
    }
    return KS_OK;
}

/* The targets' running statistics are not stored: they are never used. */
ks_status KS(agent_export)(const struct KS(agent) *a, struct ks_checkpoint *checkpoint)
{
    size_t ensemble = a->config.ensemble, n = a->critic_arch->parameters;

    KS_TRY(export_networks(a->critic_arch, ensemble, a->critic, &checkpoint->critic));
    KS_TRY(ks_networks_allocate(a->critic_arch->text, a->critic_arch->in, ensemble, false,
                                &checkpoint->target_critic));
    KS_TRY(export_networks(a->actor_arch, 1, &a->actor, &checkpoint->actor));
    KS_TRY(
        ks_alloc(KS(agent_critic_parameters)(a), sizeof *checkpoint->adam_m, &checkpoint->adam_m));
    KS_TRY(
        ks_alloc(KS(agent_critic_parameters)(a), sizeof *checkpoint->adam_v, &checkpoint->adam_v));
    for (size_t e = 0; e < ensemble; e++) {
        copy(n, a->critic[e].target, checkpoint->target_critic.w + e * n);
        copy(n, a->critic[e].m, checkpoint->adam_m + e * n);
        copy(n, a->critic[e].v, checkpoint->adam_v + e * n);
    }
    checkpoint->adam_step = a->critic_adam.step;
    checkpoint->adam = KS_ADAM_DEFAULTS;
    checkpoint->adam.beta1 = a->config.beta1;
    return KS_OK;
}
