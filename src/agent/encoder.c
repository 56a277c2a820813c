#include "agent/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/stream.h"
#include "core/memory.h"

static const char *const names[KS_MODULES] = {
    [KS_STATE_MODULE] = "encoder's state",
    [KS_ACTION_MODULE] = "encoder's action",
    [KS_PAIR_MODULE] = "encoder's pair",
    [KS_MODEL_MODULE] = "encoder's model",
};

ks_status KS(module_parse)(const struct KS(agent) *a, const char *text, const char *name, size_t in,
                           bool images, struct KS(arch) **out)
{
    struct KS(arch) *arch;

    KS_TRY(KS(arch_parse)(text, name, in, out));
    arch = *out;
    arch->products = a->config.products;
    if (arch->loss.kind || arch->policy.actions > 0)
        return ks_fail(KS_FORMAT, "%s: expected a description that ends in 'outputs', found a %s",
                       name, arch->loss.kind ? "loss" : "policy");
    KS_TRY(KS(network_check)(arch, name, images));
    return arch->states > 0 || arch->joint
               ? ks_fail(KS_FORMAT, "%s: expected layers without running statistics", name)
               : KS_OK;
}

static ks_status parse(const struct KS(agent) *a, enum ks_module module, size_t in,
                       struct KS(encoder) *e)
{
    return KS(module_parse)(a, a->config.encoder[module], names[module], in, false,
                            &e->arch[module]);
}

static ks_status parse_modules(const struct KS(agent) *a, struct KS(encoder) *e)
{
    size_t z, expected;

    KS_TRY(parse(a, KS_STATE_MODULE, a->config.observations, e));
    KS_TRY(parse(a, KS_ACTION_MODULE, a->config.actions, e));
    z = e->arch[KS_STATE_MODULE]->out;
    KS_TRY(parse(a, KS_PAIR_MODULE, z + e->arch[KS_ACTION_MODULE]->out, e));
    KS_TRY(parse(a, KS_MODEL_MODULE, e->arch[KS_PAIR_MODULE]->out, e));
    expected = 1 + z + KS_REWARD_BINS;
    if (e->arch[KS_MODEL_MODULE]->out != expected)
        return ks_fail(
            KS_FORMAT, "%s: expected %zu outputs (1, the embedding's %zu and %d bins), found %zu",
            names[KS_MODEL_MODULE], expected, z, KS_REWARD_BINS, e->arch[KS_MODEL_MODULE]->out);
    return KS_OK;
}

static ks_status build_nets(size_t batch, struct KS(encoder) *e)
{
    const size_t rows = e->steps * batch;

    for (enum ks_module k = KS_STATE_MODULE; k < KS_MODULES; k++)
        KS_TRY(KS(net_new)(e->arch[k], batch, batch, false, &e->batch[k]));
    KS_TRY(KS(net_new)(e->arch[KS_STATE_MODULE], rows, rows, false, &e->all[KS_STATE_MODULE]));
    KS_TRY(KS(net_new)(e->arch[KS_ACTION_MODULE], rows, rows, false, &e->all[KS_ACTION_MODULE]));
    return KS(net_new)(e->arch[KS_STATE_MODULE], 1, 1, true, &e->one);
}

void KS(encoder_lay_out)(struct ks_arena *arena, const struct KS(agent) *a)
{
    struct KS(encoder) *e = a->encoder;
    const size_t batch = a->config.batch, rows = e->steps * batch;
    const size_t z = e->arch[KS_STATE_MODULE]->out, pair = e->arch[KS_PAIR_MODULE]->in;

    for (enum ks_module k = KS_STATE_MODULE; k < KS_MODULES; k++) {
        const struct KS(net) *larger = e->all[k] ? e->all[k] : e->batch[k];

        KS(trained_lay_out)(arena, e->batch[k], larger, e->batch[k], &e->module[k]);
        if (k != KS_MODEL_MODULE)
            e->module[k].target = KS_TAKE(arena, e->arch[k]->parameters, real);
    }
    e->s = KS_TAKE(arena, rows * a->config.observations, real);
    e->a = KS_TAKE(arena, rows * a->config.actions, real);
    e->target = KS_TAKE(arena, rows * z, real);
    e->pair_input = KS_TAKE(arena, rows * pair, real);
    e->pair_primal = KS_TAKE(arena, e->steps * e->batch[KS_PAIR_MODULE]->primal, real);
    e->model_primal = KS_TAKE(arena, e->steps * e->batch[KS_MODEL_MODULE]->primal, real);
    e->pair_bar = KS_TAKE(arena, batch * pair, real);
    e->state_bar = KS_TAKE(arena, batch * z, real);
    e->action_bar = KS_TAKE(arena, batch * a->config.actions, real);
}

ks_status KS(encoder_new)(const struct KS(agent) *a, struct KS(encoder) **encoder)
{
    struct KS(encoder) *e;

    KS_TRY(ks_alloc(1, sizeof *e, encoder));
    e = *encoder;
    e->steps = a->config.horizon;
    KS_TRY(parse_modules(a, e));
    return build_nets(a->config.batch, e);
}

void KS(encoder_free)(struct KS(encoder) *e)
{
    if (!e)
        return;
    for (enum ks_module k = KS_STATE_MODULE; k < KS_MODULES; k++) {
        KS(net_free)(e->batch[k]);
        KS(net_free)(e->all[k]);
        KS(arch_free)(e->arch[k]);
    }
    KS(net_free)(e->one);
    free(e);
}

ks_status KS(encoder_init)(struct KS(agent) *a)
{
    struct KS(encoder) *e = a->encoder;

    e->adam = a->critic_adam;
    e->adam.rate = a->config.encoder_rate;
    e->adam.tau = 0;
    for (enum ks_module k = KS_STATE_MODULE; k < KS_MODULES; k++)
        KS_TRY(KS(trained_init)(e->arch[k], &a->config.starts,
                                ks_stream(a->config.seed, KS_INIT_ENCODER, k), &e->module[k]));
    return KS_OK;
}

/* The output of module k for a minibatch, with its own or its target parameters. */
static const real *pass(struct KS(encoder) *e, enum ks_module k, bool target, const real *x)
{
    struct KS(trained) *t = &e->module[k];

    KS(net_forward)(e->batch[k], target ? t->target : t->w, NULL, x, t->primal);
    return KS(net_output)(e->batch[k], t->primal);
}

void KS(encode_states)(struct KS(agent) *a, bool target, const real *s, real *z)
{
    const size_t n = a->config.batch * a->encoder->arch[KS_STATE_MODULE]->out;

    memcpy(z, pass(a->encoder, KS_STATE_MODULE, target, s), n * sizeof *z);
}

/* The rows [z; u] of the pair's input, from rows of z that are `stride` apart. */
static void join(const struct KS(agent) *a, const real *z, size_t stride, const real *u, real *rows)
{
    const size_t nz = a->encoder->arch[KS_STATE_MODULE]->out;
    const size_t nu = a->encoder->arch[KS_ACTION_MODULE]->out;

    for (size_t i = 0; i < a->config.batch; i++, rows += nz + nu) {
        memcpy(rows, z + i * stride, nz * sizeof *rows);
        memcpy(rows + nz, u + i * nu, nu * sizeof *rows);
    }
}

void KS(encode_pairs)(struct KS(agent) *a, bool target, const real *z, const real *actions, real *x)
{
    struct KS(encoder) *e = a->encoder;

    join(a, z, e->arch[KS_STATE_MODULE]->out, pass(e, KS_ACTION_MODULE, target, actions),
         e->pair_input);
    memcpy(x, pass(e, KS_PAIR_MODULE, target, e->pair_input),
           a->config.batch * e->arch[KS_PAIR_MODULE]->out * sizeof *x);
}

void KS(encode_pairs_backward)(struct KS(agent) *a, const real *actions, const real *x_bar,
                               real *a_bar)
{
    struct KS(encoder) *e = a->encoder;
    struct KS(trained) *pair = &e->module[KS_PAIR_MODULE], *action = &e->module[KS_ACTION_MODULE];
    const size_t nz = e->arch[KS_STATE_MODULE]->out, nu = e->arch[KS_ACTION_MODULE]->out;
    real *u_bar = KS(net_output_bar)(e->batch[KS_ACTION_MODULE], action->adjoint);

    memcpy(KS(net_output_bar)(e->batch[KS_PAIR_MODULE], pair->adjoint), x_bar,
           a->config.batch * e->arch[KS_PAIR_MODULE]->out * sizeof *x_bar);
    KS(trained_backward)(e->batch[KS_PAIR_MODULE], pair, e->pair_input, e->pair_bar, false);
    for (size_t i = 0; i < a->config.batch; i++)
        memcpy(u_bar + i * nu, e->pair_bar + i * (nz + nu) + nz, nu * sizeof *u_bar);
    KS(trained_backward)(e->batch[KS_ACTION_MODULE], action, actions, a_bar, false);
}

/* The encoder's loss over windows and its gradient (encoder.h). The forward pass keeps the
 * activations of every step; the backward pass goes through the steps from the last to the first
 * and carries dL/dz from each step to the one before. */

static const double REWARD_WEIGHT = 0.1, DONE_WEIGHT = 0.1;
static const double BIN_RANGE = 10; /* of the bins before the exponential */

double KS(reward_bin)(size_t k)
{
    const double x = -BIN_RANGE + 2 * BIN_RANGE * (double)k / (KS_REWARD_BINS - 1);

    return copysign(expm1(fabs(x)), x);
}

void KS(two_hot)(double reward, size_t *low, double *share)
{
    const size_t last = KS_REWARD_BINS - 1;
    const double x = copysign(log1p(fabs(reward)), reward);
    const double at = fmin(fmax((x + BIN_RANGE) / (2 * BIN_RANGE) * (double)last, 0), (double)last);
    size_t k = at < (double)last ? (size_t)at : last - 1;

    while (k + 1 < last && KS(reward_bin)(k + 1) <= reward) /* the logarithm was rounded */
        k++;
    while (k > 0 && KS(reward_bin)(k) > reward)
        k--;
    *low = k;
    *share = (reward - KS(reward_bin)(k)) / (KS(reward_bin)(k + 1) - KS(reward_bin)(k));
    *share = fmin(fmax(*share, 0), 1);
}

void KS(widen)(size_t n, const float *from, real *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (real)from[i];
}

/* state_target of the states after each step, and u of all actions at once. */
static void encode_windows(struct KS(agent) *a, const struct ks_windows *w)
{
    struct KS(encoder) *e = a->encoder;
    struct KS(trained) *state = &e->module[KS_STATE_MODULE], *action = &e->module[KS_ACTION_MODULE];
    const size_t batch = a->config.batch, rows = w->steps * batch, obs = a->config.observations;

    KS(widen)(rows * obs, w->s + batch * obs, e->s);
    KS(net_forward)(e->all[KS_STATE_MODULE], state->target, NULL, e->s, state->primal);
    memcpy(e->target, KS(net_output)(e->all[KS_STATE_MODULE], state->primal),
           rows * e->arch[KS_STATE_MODULE]->out * sizeof *e->target);
    KS(widen)(batch * obs, w->s, e->s);
    KS(net_forward)(e->batch[KS_STATE_MODULE], state->w, NULL, e->s, state->primal);
    KS(widen)(rows * a->config.actions, w->a, e->a);
    KS(net_forward)(e->all[KS_ACTION_MODULE], action->w, NULL, e->a, action->primal);
}

/* The blocks and arrays of one step. */
struct step {
    real *pair_input, *pair_primal, *model_primal;
    const real *u, *target, *outputs;
};

static struct step step_at(const struct KS(agent) *a, size_t i)
{
    const struct KS(encoder) *e = a->encoder;
    const size_t batch = a->config.batch;
    const real *u = KS(net_output)(e->all[KS_ACTION_MODULE], e->module[KS_ACTION_MODULE].primal);
    struct step s = {
        .pair_input = e->pair_input + i * batch * e->arch[KS_PAIR_MODULE]->in,
        .pair_primal = e->pair_primal + i * e->batch[KS_PAIR_MODULE]->primal,
        .model_primal = e->model_primal + i * e->batch[KS_MODEL_MODULE]->primal,
        .u = u + i * batch * e->arch[KS_ACTION_MODULE]->out,
        .target = e->target + i * batch * e->arch[KS_STATE_MODULE]->out,
    };

    s.outputs = KS(net_output)(e->batch[KS_MODEL_MODULE], s.model_primal);
    return s;
}

/* Predicts from z, whose rows are `stride` apart. */
static void predict(struct KS(agent) *a, const struct step *s, const real *z, size_t stride)
{
    struct KS(encoder) *e = a->encoder;

    join(a, z, stride, s->u, s->pair_input);
    KS(net_forward)
    (e->batch[KS_PAIR_MODULE], e->module[KS_PAIR_MODULE].w, NULL, s->pair_input, s->pair_primal);
    KS(net_forward)
    (e->batch[KS_MODEL_MODULE], e->module[KS_MODEL_MODULE].w, NULL,
     KS(net_output)(e->batch[KS_PAIR_MODULE], s->pair_primal), s->model_primal);
}

/* The loss of one row of a step's outputs [1 + Z + bins], and its derivative in them. */
struct row_loss {
    size_t width;        /* Z                                                       */
    const real *target;  /* [Z]                                                     */
    double reward, done; /* what should be predicted                                */
    double kept;         /* factor of the row: k / batch                            */
    bool terminates;
};

static double state_loss(const struct row_loss *l, const real *z, real *bar)
{
    const double scale = l->kept / (double)l->width;
    double sum = 0;

    for (size_t j = 0; j < l->width; j++) {
        const double d = (double)z[j] - (double)l->target[j];

        sum += d * d;
        bar[j] = (real)(2 * scale * d);
    }
    return scale * sum;
}

static double reward_loss(const struct row_loss *l, const real *logit, real *bar)
{
    const double scale = REWARD_WEIGHT * l->kept;
    double share, largest = (double)logit[0], sum = 0, log_sum;
    size_t low;

    KS(two_hot)(l->reward, &low, &share);
    for (size_t k = 1; k < KS_REWARD_BINS; k++)
        largest = fmax(largest, (double)logit[k]);
    for (size_t k = 0; k < KS_REWARD_BINS; k++)
        sum += exp((double)logit[k] - largest);
    log_sum = largest + log(sum);
    for (size_t k = 0; k < KS_REWARD_BINS; k++)
        bar[k] = (real)(scale * exp((double)logit[k] - log_sum));
    bar[low] -= (real)(scale * (1 - share));
    bar[low + 1] -= (real)(scale * share);
    return scale * (log_sum - (1 - share) * (double)logit[low] - share * (double)logit[low + 1]);
}

static double done_loss(const struct row_loss *l, double done, real *bar)
{
    const double scale = l->terminates ? DONE_WEIGHT * l->kept : 0, d = done - l->done;

    *bar = (real)(2 * scale * d);
    return scale * d * d;
}

/* The loss of step i. Sets the model's output adjoint, in which dL/dz of the later steps is added
 * to the adjoint of z'. */
static double step_loss(struct KS(agent) *a, const struct ks_windows *w, size_t i,
                        const struct step *s)
{
    struct KS(encoder) *e = a->encoder;
    const size_t batch = a->config.batch, nz = e->arch[KS_STATE_MODULE]->out;
    const size_t width = e->arch[KS_MODEL_MODULE]->out;
    real *bars = KS(net_output_bar)(e->batch[KS_MODEL_MODULE], e->module[KS_MODEL_MODULE].adjoint);
    double loss = 0;

    for (size_t b = 0; b < batch; b++) {
        const size_t at = i * batch + b;
        const real *f = s->outputs + b * width;
        real *bar = bars + b * width;
        const struct row_loss l = {.width = nz,
                                   .target = s->target + b * nz,
                                   .reward = (double)w->reward[at],
                                   .done = 1 - (double)w->mask[at],
                                   .kept = (double)w->kept[at] / (double)batch,
                                   .terminates = w->terminates};

        loss += done_loss(&l, (double)f[0], bar);
        loss += state_loss(&l, f + 1, bar + 1);
        loss += reward_loss(&l, f + 1 + nz, bar + 1 + nz);
        for (size_t j = 0; j < nz && i + 1 < w->steps; j++)
            bar[1 + j] += e->state_bar[b * nz + j];
    }
    return loss;
}

/* From the model's output adjoint to dL/dz of the step, and to the adjoint of its u. */
static void step_backward(struct KS(agent) *a, size_t i, const struct step *s)
{
    struct KS(encoder) *e = a->encoder;
    const struct KS(net) *pair = e->batch[KS_PAIR_MODULE];
    struct KS(trained) *p = &e->module[KS_PAIR_MODULE], *m = &e->module[KS_MODEL_MODULE];
    const size_t batch = a->config.batch, nz = e->arch[KS_STATE_MODULE]->out;
    const size_t nu = e->arch[KS_ACTION_MODULE]->out;
    real *u_bar = KS(net_output_bar)(e->all[KS_ACTION_MODULE], e->module[KS_ACTION_MODULE].adjoint);

    KS(net_backward)
    (e->batch[KS_MODEL_MODULE],
     &(struct KS(net_backward)){.w = m->w,
                                .x = KS(net_output)(pair, s->pair_primal),
                                .primal = s->model_primal,
                                .adjoint = m->adjoint,
                                .x_bar = KS(net_output_bar)(pair, p->adjoint),
                                .w_bar = m->g});
    KS(net_backward)
    (pair, &(struct KS(net_backward)){.w = p->w,
                                      .x = s->pair_input,
                                      .primal = s->pair_primal,
                                      .adjoint = p->adjoint,
                                      .x_bar = e->pair_bar,
                                      .w_bar = p->g});
    for (size_t b = 0; b < batch; b++) {
        const real *row = e->pair_bar + b * (nz + nu);

        memcpy(e->state_bar + b * nz, row, nz * sizeof *row);
        memcpy(u_bar + (i * batch + b) * nu, row + nz, nu * sizeof *row);
    }
}

double KS(encoder_gradient)(struct KS(agent) *a, const struct ks_windows *w)
{
    struct KS(encoder) *e = a->encoder;
    struct KS(trained) *state = &e->module[KS_STATE_MODULE], *action = &e->module[KS_ACTION_MODULE];
    const size_t nz = e->arch[KS_STATE_MODULE]->out, width = e->arch[KS_MODEL_MODULE]->out;
    double loss = 0;

    for (enum ks_module k = KS_PAIR_MODULE; k < KS_MODULES; k++) /* to which the steps add */
        memset(e->module[k].g, 0, e->arch[k]->parameters * sizeof *e->module[k].g);
    encode_windows(a, w);
    for (size_t i = 0; i < w->steps; i++) {
        const struct step s = step_at(a, i);
        const real *z = i > 0 ? step_at(a, i - 1).outputs + 1
                              : KS(net_output)(e->batch[KS_STATE_MODULE], state->primal);

        predict(a, &s, z, i > 0 ? width : nz);
    }
    for (size_t i = w->steps; i-- > 0;) {
        const struct step s = step_at(a, i);

        loss += step_loss(a, w, i, &s);
        step_backward(a, i, &s);
    }
    memcpy(KS(net_output_bar)(e->batch[KS_STATE_MODULE], state->adjoint), e->state_bar,
           a->config.batch * nz * sizeof *e->state_bar);
    KS(trained_backward)(e->batch[KS_STATE_MODULE], state, e->s, NULL, true);
    KS(trained_backward)(e->all[KS_ACTION_MODULE], action, e->a, NULL, true);
    return loss;
}

ks_status KS(encoder_step)(struct KS(agent) *a, const struct ks_windows *w)
{
    struct KS(encoder) *e = a->encoder;
    const double loss = KS(encoder_gradient)(a, w);
    bool finite = true;

    for (enum ks_module k = KS_STATE_MODULE; k < KS_MODULES; k++)
        finite &= KS(adam_step)(e->arch[k], &e->adam, &e->module[k]);
    e->adam.step++;
    if (!finite)
        return ks_fail(KS_NUMBER, "a parameter of the encoder is no longer finite");
    return isfinite(loss) ? KS_OK : ks_fail(KS_NUMBER, "the encoder's loss is %g", loss);
}
