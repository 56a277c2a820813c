/* Critics in memory, without a file: blank ones for a test to fill, and random ones. */
#ifndef KS_TEST_MEMORY_CRITICS_H
#define KS_TEST_MEMORY_CRITICS_H

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/rng.h"
#include "io/checkpoint.h"
#include "io/text.h"
#include "net/arch.h"
#include "operators/operator.h"
#include "test.h"

struct critic_sizes {
    size_t ensemble, in, minibatches, rows, loss_rows;
};

/* A checkpoint whose parameters, statistics, inputs and targets are 0. */
static inline struct ks_checkpoint *blank_critic(const char *text, struct critic_sizes s)
{
    struct ks_checkpoint *c;
    struct KS(arch) *a;

    assert_ok(ks_alloc(1, sizeof *c, &c));
    assert_ok(ks_copy_string(text, &c->critic.text));
    assert_ok(KS(arch_parse)(text, "test", s.in, &a));
    c->critic.arch = a;
    c->critic.ensemble = s.ensemble;
    c->minibatches = s.minibatches, c->rows = s.rows, c->loss_rows = s.loss_rows;
    assert_ok(ks_alloc(s.ensemble * a->parameters, sizeof(double), &c->critic.w));
    assert_ok(ks_alloc(s.ensemble * a->frozen, sizeof(double), &c->critic.frozen));
    assert_ok(ks_alloc(s.ensemble * a->states, sizeof(double), &c->critic.state));
    assert_ok(ks_alloc(s.minibatches * s.rows * s.in, sizeof(double), &c->input));
    assert_ok(ks_alloc(s.minibatches * s.loss_rows * a->loss.targets, sizeof(double), &c->target));
    return c;
}

static inline void fill_normal(struct ks_rng *rng, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++)
        values[i] = ks_rng_normal(rng);
}

/* n standard normal numbers in a new array. */
static inline double *numbers(struct ks_rng *rng, size_t n)
{
    double *values;

    assert_ok(ks_alloc(n, sizeof *values, &values));
    fill_normal(rng, n, values);
    return values;
}

/* Normal parameters, inputs and targets, positive statistics. With more than one output the targets
 * of row i are 0.1 but for column i mod K, and sum to 1. */
static inline struct ks_checkpoint *random_critic(const char *text, struct critic_sizes s,
                                                  uint64_t seed)
{
    struct ks_rng rng = ks_rng_start(seed, 0);
    struct ks_checkpoint *c = blank_critic(text, s);
    const struct KS(arch) *a = c->critic.arch;
    size_t states = s.ensemble * a->states, k = a->loss.targets;
    size_t targets = s.minibatches * s.loss_rows * k;

    fill_normal(&rng, s.ensemble * a->parameters, c->critic.w);
    fill_normal(&rng, s.ensemble * a->frozen, c->critic.frozen);
    fill_normal(&rng, states, c->critic.state);
    for (size_t i = 0; i < states; i++)
        c->critic.state[i] = fabs(c->critic.state[i]);
    fill_normal(&rng, s.minibatches * s.rows * s.in, c->input);
    fill_normal(&rng, targets, c->target);
    for (size_t i = 0; i < targets && k > 1; i++)
        c->target[i] = i % k == i / k % k ? 1 - 0.1 * (double)(k - 1) : 0.1;
    return c;
}

/* The loss of all minibatches and critics. */
static inline struct ks_problem full_problem(const struct ks_checkpoint *c)
{
    return (struct ks_problem){
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};
}

#endif
