#include "agent/actor.h"

#include <string.h>

void KS(noise_draw)(const struct KS(agent) *a, struct ks_rng *rng, real *noise)
{
    size_t n = a->config.actions;

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t i = 0; i < a->config.batch; i++) {
        struct ks_rng row = *rng;

        row.drawn += i * n;
        for (size_t j = 0; j < n; j++)
            noise[i * n + j] = (real)ks_rng_normal(&row);
    }
    rng->drawn += a->config.batch * n;
}

void KS(noise_of_update)(const struct KS(agent) *a, enum ks_purpose purpose, int64_t update,
                         real *noise)
{
    struct ks_rng rng = ks_stream(a->config.seed, purpose, 0);

    rng.drawn = (uint64_t)update * a->config.batch * a->config.actions;
    KS(noise_draw)(a, &rng, noise);
}

struct KS(policy_pass) KS(actor_pass)(const struct KS(agent) *a, const real *head,
                                      const struct KS(draw) *draw, real *input)
{
    return (struct KS(policy_pass)){
        .rows = a->config.batch,
        .stride = KS(agent_width)(a),
        .head = head,
        .noise = draw->noise,
        .action = input + a->config.observations,
        .log_pi = draw->log_pi,
    };
}

void KS(actor_forward_next)(struct KS(agent) *a)
{
    KS(net_forward)(a->actor_eval, a->actor.w, a->actor.state, a->next_s, a->next_primal);
}

void KS(actor_forward)(struct KS(agent) *a, real *state)
{
    KS(net_forward)(a->actor_train, a->actor.w, state, a->s, a->actor.primal);
}

void KS(actor_sample_next)(struct KS(agent) *a)
{
    struct KS(policy_pass) p = KS(actor_pass)(a, KS(net_output)(a->actor_eval, a->next_primal),
                                              &a->next,
                                              a->input + a->config.batch * KS(agent_width)(a));

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t i = 0; i < p.rows; i++)
        KS(policy_sample)(&a->actor_arch->policy, &p, i);
}

void KS(actor_sample)(struct KS(agent) *a)
{
    struct KS(policy_pass) p = KS(actor_pass)(a, KS(net_output)(a->actor_train, a->actor.primal),
                                              &a->policy, a->policy_input);
    size_t obs = a->config.observations;

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t i = 0; i < p.rows; i++) {
        memcpy(a->policy_input + i * p.stride, a->s + i * obs, obs * sizeof *a->s);
        KS(policy_sample)(&a->actor_arch->policy, &p, i);
    }
}
