#include "agent/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/stream.h"
#include "agent/trained.h"
#include "core/memory.h"

static const char *const names[KS_PARTS] = {
    [KS_STATE_PART] = "encoder's state",
    [KS_ACTION_PART] = "encoder's action",
    [KS_PAIR_PART] = "encoder's pair",
    [KS_MODEL_PART] = "encoder's model",
};

static ks_status parse(const struct KS(agent) *a, enum ks_part part, size_t in,
                       struct KS(encoder) *e)
{
    struct KS(arch) *arch;

    KS_TRY(KS(arch_parse)(a->config.encoder[part], names[part], in, &e->arch[part]));
    arch = e->arch[part];
    if (arch->loss.kind || arch->policy.actions > 0)
        return ks_fail(KS_FORMAT, "%s: expected a description that ends in 'outputs', found a %s",
                       names[part], arch->loss.kind ? "loss" : "policy");
    if (arch->states > 0 || arch->joint || arch->frozen > 0)
        return ks_fail(KS_FORMAT, "%s: expected layers without running statistics and trainable=no",
                       names[part]);
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].kind->reads_input || arch->layer[i].kind == &KS(conv2d))
            return ks_fail(KS_FORMAT,
                           "%s: '%s' is for analysis: training has no gradient through it",
                           names[part], arch->layer[i].kind->name);
    return KS_OK;
}

static ks_status parse_parts(const struct KS(agent) *a, struct KS(encoder) *e)
{
    size_t z, expected;

    KS_TRY(parse(a, KS_STATE_PART, a->config.observations, e));
    KS_TRY(parse(a, KS_ACTION_PART, a->config.actions, e));
    z = e->arch[KS_STATE_PART]->out;
    KS_TRY(parse(a, KS_PAIR_PART, z + e->arch[KS_ACTION_PART]->out, e));
    KS_TRY(parse(a, KS_MODEL_PART, e->arch[KS_PAIR_PART]->out, e));
    expected = 1 + z + KS_REWARD_BINS;
    if (e->arch[KS_MODEL_PART]->out != expected)
        return ks_fail(
            KS_FORMAT, "%s: expected %zu outputs (1, the embedding's %zu and %d bins), found %zu",
            names[KS_MODEL_PART], expected, z, KS_REWARD_BINS, e->arch[KS_MODEL_PART]->out);
    return KS_OK;
}

static ks_status build_nets(size_t batch, struct KS(encoder) *e)
{
    const size_t rows = e->steps * batch;

    for (enum ks_part k = KS_STATE_PART; k < KS_PARTS; k++)
        KS_TRY(KS(net_new)(e->arch[k], batch, batch, false, &e->batch[k]));
    KS_TRY(KS(net_new)(e->arch[KS_STATE_PART], rows, rows, false, &e->all[KS_STATE_PART]));
    KS_TRY(KS(net_new)(e->arch[KS_ACTION_PART], rows, rows, false, &e->all[KS_ACTION_PART]));
    return KS(net_new)(e->arch[KS_STATE_PART], 1, 1, true, &e->one);
}

static ks_status allocate(const struct KS(agent) *a, struct KS(encoder) *e)
{
    const size_t batch = a->config.batch, rows = e->steps * batch;
    const size_t z = e->arch[KS_STATE_PART]->out, pair = e->arch[KS_PAIR_PART]->in;

    for (enum ks_part k = KS_STATE_PART; k < KS_PARTS; k++) {
        const struct KS(net) *larger = e->all[k] ? e->all[k] : e->batch[k];

        KS_TRY(KS(trained_allocate)(e->batch[k], larger, e->batch[k], &e->part[k]));
        if (k != KS_MODEL_PART)
            KS_TRY(KS(reals)(e->arch[k]->parameters, &e->part[k].target));
    }
    KS_TRY(KS(reals)(rows * a->config.observations, &e->s));
    KS_TRY(KS(reals)(rows * a->config.actions, &e->a));
    KS_TRY(KS(reals)(rows * z, &e->target));
    KS_TRY(KS(reals)(rows * pair, &e->pair_input));
    KS_TRY(KS(reals)(e->steps * e->batch[KS_PAIR_PART]->primal, &e->pair_primal));
    KS_TRY(KS(reals)(e->steps * e->batch[KS_MODEL_PART]->primal, &e->model_primal));
    KS_TRY(KS(reals)(batch * pair, &e->pair_bar));
    KS_TRY(KS(reals)(batch * z, &e->state_bar));
    return KS(reals)(batch * a->config.actions, &e->action_bar);
}

static ks_status build(const struct KS(agent) *a, struct KS(encoder) *e)
{
    e->steps = a->config.horizon;
    KS_TRY(parse_parts(a, e));
    KS_TRY(build_nets(a->config.batch, e));
    return allocate(a, e);
}

ks_status KS(encoder_new)(const struct KS(agent) *a, struct KS(encoder) **encoder)
{
    KS_TRY(ks_alloc(1, sizeof **encoder, encoder));
    return build(a, *encoder);
}

void KS(encoder_free)(struct KS(encoder) *e)
{
    if (!e)
        return;
    for (enum ks_part k = KS_STATE_PART; k < KS_PARTS; k++) {
        KS(trained_free)(&e->part[k]);
        KS(net_free)(e->batch[k]);
        KS(net_free)(e->all[k]);
        KS(arch_free)(e->arch[k]);
    }
    KS(net_free)(e->one);
    real *block[] = {e->s,          e->a,           e->target,
                     e->pair_input, e->pair_primal, e->model_primal,
                     e->pair_bar,   e->state_bar,   e->action_bar};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        free(block[i]);
    free(e);
}

ks_status KS(encoder_init)(struct KS(agent) *a)
{
    struct KS(encoder) *e = a->encoder;

    e->adam = a->critic_adam;
    e->adam.rate = a->config.encoder_rate;
    e->adam.tau = 0;
    for (enum ks_part k = KS_STATE_PART; k < KS_PARTS; k++)
        KS_TRY(KS(trained_init)(e->arch[k], &a->config.starts,
                                ks_stream(a->config.seed, KS_INIT_ENCODER, k), &e->part[k]));
    return KS_OK;
}

void KS(encoder_copy_targets)(struct KS(encoder) *e)
{
    for (enum ks_part k = KS_STATE_PART; k < KS_MODEL_PART; k++)
        memcpy(e->part[k].target, e->part[k].w, e->arch[k]->parameters * sizeof *e->part[k].w);
}

/* The output of part k for a minibatch, with its own or its target parameters. */
static const real *pass(struct KS(encoder) *e, enum ks_part k, bool target, const real *x)
{
    struct KS(trained) *t = &e->part[k];

    KS(net_forward)(e->batch[k], target ? t->target : t->w, NULL, x, t->primal);
    return KS(net_output)(e->batch[k], t->primal);
}

void KS(encode_states)(struct KS(agent) *a, bool target, const real *s, real *z)
{
    const size_t n = a->config.batch * a->encoder->arch[KS_STATE_PART]->out;

    memcpy(z, pass(a->encoder, KS_STATE_PART, target, s), n * sizeof *z);
}

void KS(encode_pairs)(struct KS(agent) *a, bool target, const real *z, const real *actions, real *x)
{
    struct KS(encoder) *e = a->encoder;
    const size_t nz = e->arch[KS_STATE_PART]->out, nu = e->arch[KS_ACTION_PART]->out;
    const real *u = pass(e, KS_ACTION_PART, target, actions);

    for (size_t i = 0; i < a->config.batch; i++) {
        real *row = e->pair_input + i * (nz + nu);

        memcpy(row, z + i * nz, nz * sizeof *row);
        memcpy(row + nz, u + i * nu, nu * sizeof *row);
    }
    memcpy(x, pass(e, KS_PAIR_PART, target, e->pair_input),
           a->config.batch * e->arch[KS_PAIR_PART]->out * sizeof *x);
}

void KS(encode_pairs_backward)(struct KS(agent) *a, const real *actions, const real *x_bar,
                               real *a_bar)
{
    struct KS(encoder) *e = a->encoder;
    struct KS(trained) *pair = &e->part[KS_PAIR_PART], *action = &e->part[KS_ACTION_PART];
    const size_t nz = e->arch[KS_STATE_PART]->out, nu = e->arch[KS_ACTION_PART]->out;
    real *u_bar = KS(net_output_bar)(e->batch[KS_ACTION_PART], action->adjoint);

    memcpy(KS(net_output_bar)(e->batch[KS_PAIR_PART], pair->adjoint), x_bar,
           a->config.batch * e->arch[KS_PAIR_PART]->out * sizeof *x_bar);
    KS(net_backward)
    (e->batch[KS_PAIR_PART], &(struct KS(net_backward)){.w = pair->w,
                                                        .x = e->pair_input,
                                                        .primal = pair->primal,
                                                        .adjoint = pair->adjoint,
                                                        .x_bar = e->pair_bar});
    for (size_t i = 0; i < a->config.batch; i++)
        memcpy(u_bar + i * nu, e->pair_bar + i * (nz + nu) + nz, nu * sizeof *u_bar);
    KS(net_backward)
    (e->batch[KS_ACTION_PART], &(struct KS(net_backward)){.w = action->w,
                                                          .x = actions,
                                                          .primal = action->primal,
                                                          .adjoint = action->adjoint,
                                                          .x_bar = a_bar});
}
