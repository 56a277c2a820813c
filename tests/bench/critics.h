/* Random critics with minibatches, for benchmarks of products. */
#ifndef KS_BENCH_CRITICS_H
#define KS_BENCH_CRITICS_H

#include "core/memory.h"
#include "core/rng.h"
#include "io/checkpoint.h"
#include "net/arch.h"
#include "operators/operator.h"

#include "must.h"

enum { BATCH = 256 };

static inline double *normal(size_t n, double scale)
{
    struct ks_rng rng = ks_rng_start(0, n);
    double *a;

    must(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++)
        a[i] = scale * ks_rng_normal(&rng);
    return a;
}

/* `ensemble` critics of this description with `in` inputs. A network with batch normalization sees
 * the rows of both steps of a transition. */
static inline struct ks_checkpoint *make_critics(const char *text, size_t ensemble, size_t in,
                                                 size_t minibatches)
{
    struct KS(arch) *arch;
    struct ks_checkpoint *c;
    size_t k;

    must(ks_alloc(1, sizeof *c, &c));
    must(ks_networks_allocate(text, in, ensemble, false, &c->critic));
    free(c->critic.w);
    c->critic.w = normal(ks_networks_parameters(&c->critic), 0.05);
    must(KS(arch_parse)(text, "bench", in, &arch));
    k = arch->out;
    c->minibatches = minibatches, c->loss_rows = BATCH;
    c->rows = arch->joint ? 2 * BATCH : BATCH;
    KS(arch_free)(arch);
    c->input = normal(minibatches * c->rows * in, 1);
    must(ks_alloc(minibatches * BATCH * k, sizeof *c->target, &c->target));
    for (size_t i = 0; i < minibatches * BATCH; i++)
        c->target[i * k + i % k] = 1;
    return c;
}

/* The Hessian's problem of all of them. */
static inline struct ks_problem pose(const struct ks_checkpoint *c)
{
    return (struct ks_problem){
        .checkpoint = c, .minibatches = c->minibatches, .scale = 1, .critic = -1, .layer = -1};
}

#endif
