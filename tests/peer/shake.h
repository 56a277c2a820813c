/* Perturbs an agent's parameters, statistics and moments. A fresh agent, with biases of 0 and
 * scales of 1, would hide missing terms in comparisons. */
#ifndef KS_SHAKE_H
#define KS_SHAKE_H

#include <math.h>

#include "agent/agent.h"
#include "core/rng.h"

enum { SHAKES = 11 }; /* the seed */

/* Changes entries by up to a few tenths of the size of a kernel's column, a scale or a statistic.
 */
static inline void shake(const struct KS(arch) *arch, struct ks_rng *rng, real *w)
{
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        real *at = w + l->offset;

        for (size_t k = 0; k < l->n_params; k++) {
            size_t rows = l->param[k].rows, n = KS(array_size)(&l->param[k]);
            double size = rows > 0 ? 0.3 / sqrt((double)rows) : 0.1;

            for (size_t j = 0; j < n; j++)
                at[j] += (real)(size * ks_rng_normal(rng));
            at += n;
        }
    }
}

static inline void shake_statistics(size_t n, struct ks_rng *rng, real *state)
{
    for (size_t i = 0; i < n; i++)
        state[i] = (real)fabs((double)state[i] + 0.3 * ks_rng_normal(rng));
}

static inline void shake_moments(size_t n, struct ks_rng *rng, real *m, real *v)
{
    for (size_t i = 0; i < n; i++) {
        m[i] = (real)(1e-3 * ks_rng_normal(rng));
        v[i] = (real)pow(1e-3 * ks_rng_normal(rng), 2);
    }
}

static inline void shake_agent(struct KS(agent) *a)
{
    struct ks_rng rng = ks_rng_start(SHAKES, 3);

    for (size_t e = 0; e < a->config.ensemble; e++) {
        struct KS(trained) *c = &a->critic[e];

        shake(a->critic_arch, &rng, c->w);
        shake(a->critic_arch, &rng, c->target);
        shake_statistics(a->critic_arch->states, &rng, c->state);
        shake_moments(a->critic_arch->parameters, &rng, c->m, c->v);
    }
    shake(a->actor_arch, &rng, a->actor.w);
    shake_statistics(a->actor_arch->states, &rng, a->actor.state);
    shake_moments(a->actor_arch->parameters, &rng, a->actor.m, a->actor.v);
    if (a->optimist) {
        shake(a->optimist->arch, &rng, a->optimist->shift.w);
        shake_moments(a->optimist->arch->parameters, &rng, a->optimist->shift.m,
                      a->optimist->shift.v);
        a->optimist->optimism.m = a->optimist->price.m = 0.1;
        a->optimist->optimism.v = a->optimist->price.v = 0.02;
    }
    a->log_temperature += 2;
    a->temperature_m = 0.1;
    a->temperature_v = 0.02;
    a->critic_adam.step = 37;
    a->actor_adam.step = 13;
}

#endif
