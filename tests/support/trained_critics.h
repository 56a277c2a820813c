/* Critics after a few hundred steps of Adam, small enough to compute all their eigenvalues. The
 * targets are a smooth function of the inputs, whose distribution is far from standard normal. */
#ifndef KS_TEST_TRAINED_CRITICS_H
#define KS_TEST_TRAINED_CRITICS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "memory_critics.h"

enum { TASK_IN = 6, TASK_BATCHES = 2, TASK_ROWS = 64, TASK_STEPS = 300, TRAINED = 5 };

static const struct {
    const char *name, *text;
} trained[TRAINED] = {
    {"bn+wn+ce", "batchnorm\nrepeat 2 {\ndense 14 bias=no project=unit\nbatchnorm\nrelu\n}\n"
                 "dense 11 project=unit-kernel\nloss ce min=-2 max=2\n"},
    {"ln+mse", "layernorm\nrepeat 2 {\ndense 16\nlayernorm\nrelu\n}\ndense 1\nloss mse\n"},
    {"dense+ce", "repeat 2 {\ndense 12\nrelu\n}\ndense 11\nloss ce min=-2 max=2\n"},
    {"bn+mse", "batchnorm\nrepeat 2 {\ndense 20 bias=no\nbatchnorm\nrelu\n}\ndense 1\nloss mse\n"},
    {"dense+huber", "repeat 2 {\ndense 16\ntanh\n}\ndense 1\nloss huber\n"},
};

/* A return between -2 and 2. */
static inline double task_value(const double *x)
{
    return 1.5 * sin(x[0] + 0.5 * x[1]) + 0.4 * cos(2 * x[2] - x[3]) * x[4] / (1 + fabs(x[4]));
}

/* The two atoms next to the value share the probability. */
static inline void set_target(const struct KS(loss) *loss, double value, double *target)
{
    double at, step = (loss->max - loss->min) / ((double)loss->targets - 1);
    size_t k;

    if (!loss->kind->distribution) {
        *target = value;
        return;
    }
    at = fmin(fmax((value - loss->min) / step, 0), (double)loss->targets - 1.001);
    k = (size_t)at;
    target[k] = 1 - (at - (double)k);
    target[k + 1] = at - (double)k;
}

static inline void draw_task(struct ks_rng *rng, struct ks_checkpoint *c)
{
    const struct KS(loss) *loss = &c->critic.arch->loss;

    for (size_t i = 0; i < c->minibatches * c->rows; i++) {
        double *x = c->input + i * TASK_IN;

        for (size_t k = 0; k < TASK_IN; k++)
            x[k] = ks_rng_normal(rng);
        x[1] += 0.9 * x[0];
        x[4] *= 3;
        x[5] = 0.1 * x[5] + 2;
        set_target(loss, task_value(x), c->target + i * loss->targets);
    }
}

/* Scales projected columns to norm 1. */
static inline void project_columns(struct ks_networks *n)
{
    for (size_t i = 0; i < n->arch->n_layers; i++) {
        const struct KS(layer) *l = &n->arch->layer[i];

        for (size_t j = 0; l->sphere_rows > 0 && j < l->out; j++) {
            double *column = n->w + l->offset + j;
            double norm = cblas_dnrm2((int)l->sphere_rows, column, (int)l->out);

            cblas_dscal((int)l->sphere_rows, 1 / norm, column, (int)l->out);
        }
    }
}

static inline void draw_start(struct ks_rng *rng, struct ks_networks *n)
{
    double *w = n->w;

    for (size_t i = 0; i < n->arch->n_layers; i++)
        for (size_t k = 0; k < n->arch->layer[i].n_params; k++) {
            const struct ks_array *a = &n->arch->layer[i].param[k];

            for (size_t j = 0; j < KS(array_size)(a); j++, w++)
                *w = a->orthogonal ? ks_rng_normal(rng) / sqrt((double)a->rows) : a->start;
        }
    project_columns(n);
}

/* A step of Adam (Kingma, Ba 2015) with the gradient of all minibatches. */
static inline void adam_step(struct ks_checkpoint *c, const double *g)
{
    double t = (double)++c->adam_step, rate = 3e-3;

    for (size_t i = 0; i < c->critic.arch->parameters; i++) {
        c->adam_m[i] = 0.9 * c->adam_m[i] + 0.1 * g[i];
        c->adam_v[i] = 0.999 * c->adam_v[i] + 0.001 * g[i] * g[i];
        c->critic.w[i] -= rate * c->adam_m[i] / (1 - pow(0.9, t)) /
                          (sqrt(c->adam_v[i] / (1 - pow(0.999, t))) + 1e-8);
    }
    project_columns(&c->critic);
}

/* Critic `k` after training. */
static inline struct ks_checkpoint *train_critic(size_t k)
{
    struct ks_rng rng = ks_rng_start(0x747261696e, k);
    struct critic_sizes sizes = {1, TASK_IN, TASK_BATCHES, TASK_ROWS, TASK_ROWS};
    struct ks_checkpoint *c = blank_critic(trained[k].text, sizes);
    const struct KS(arch) *a = c->critic.arch;
    struct ks_problem q;
    double *gradient, loss;

    assert_ok(ks_alloc(a->parameters, sizeof(double), &c->adam_m));
    assert_ok(ks_alloc(a->parameters, sizeof(double), &c->adam_v));
    assert_ok(ks_alloc(a->parameters, sizeof *gradient, &gradient));
    draw_task(&rng, c);
    draw_start(&rng, &c->critic);
    q = full_problem(c);
    for (size_t i = 0; i < TASK_STEPS; i++) {
        assert_ok(ks_gradient(&q, NULL, &loss, gradient));
        adam_step(c, gradient);
    }
    free(gradient);
    return c;
}

/* The same critic with other minibatches of the task. */
static inline struct ks_checkpoint *draw_minibatches(const struct ks_checkpoint *c, size_t n,
                                                     uint64_t seed)
{
    struct ks_rng rng = ks_rng_start(0x6d696e69, seed);
    struct critic_sizes sizes = {1, TASK_IN, n, TASK_ROWS, TASK_ROWS};
    struct ks_checkpoint *other = blank_critic(c->critic.text, sizes);

    memcpy(other->critic.w, c->critic.w, c->critic.arch->parameters * sizeof(double));
    draw_task(&rng, other);
    return other;
}

#endif
