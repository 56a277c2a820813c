#include "agent/actor.h"

#include <math.h>
#include <string.h>

#include "agent/target.h"

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

/* The pass of the policy from the output `head` of a pass of the actor to the action columns of
 * `input`. */
static struct KS(policy_pass) policy_pass(const struct KS(agent) *a, const real *head,
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
    struct KS(policy_pass) p = policy_pass(a, KS(net_output)(a->actor_eval, a->next_primal),
                                           &a->next,
                                           a->input + a->config.batch * KS(agent_width)(a));

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t i = 0; i < p.rows; i++)
        KS(policy_sample)(&a->actor_arch->policy, &p, i);
}

void KS(actor_sample)(struct KS(agent) *a)
{
    struct KS(policy_pass) p = policy_pass(a, KS(net_output)(a->actor_train, a->actor.primal),
                                           &a->policy, a->policy_input);
    size_t obs = a->config.observations;

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t i = 0; i < p.rows; i++) {
        memcpy(a->policy_input + i * p.stride, a->s + i * obs, obs * sizeof *a->s);
        KS(policy_sample)(&a->actor_arch->policy, &p, i);
    }
}

/* The actor's loss mean(T log pi - Q(s, a)) and its gradient: step 6 of an update (update.c),
 * without the optimizer. Q is min_e Q_e or mean_e Q_e; its derivative in Q_e is the critic's share.
 */

/* q = Q_e(s, a ~ pi); the distributions go to a->values. */
static void policy_values(struct KS(agent) *a, size_t e)
{
    struct KS(trained) *c = &a->critic[e];
    size_t rows = a->config.batch, n = a->critic_arch->out;
    const real *f = KS(net_output)(a->critic_eval, c->primal);

    KS(net_forward)(a->critic_eval, c->w, c->state, a->policy_input, c->primal);
    for (size_t i = 0; i < rows; i++)
        a->q[e * rows + i] = KS(critic_value)(&a->critic_arch->loss, f + i * n,
                                              a->values + (e * rows + i) * n);
}

/* The critic with the smallest value at row i, the first on a tie. */
static size_t smallest(const struct KS(agent) *a, size_t i)
{
    size_t at = 0, rows = a->config.batch;

    for (size_t e = 1; e < a->config.ensemble; e++)
        if (a->q[e * rows + i] < a->q[at * rows + i])
            at = e;
    return at;
}

/* dQ/dQ_e at row i; Q = sum_e share Q_e. */
static double share(const struct KS(agent) *a, size_t e, size_t i)
{
    return a->config.policy_value == KS_MEAN ? 1 / (double)a->config.ensemble : smallest(a, i) == e;
}

/* x_bar = d/dx of -mean_i Q: nonzero only in rows where the critic has a share. */
static void policy_value_gradient(struct KS(agent) *a, size_t e)
{
    struct KS(trained) *c = &a->critic[e];
    size_t rows = a->config.batch, n = a->critic_arch->out;
    real *f_bar = KS(net_output_bar)(a->critic_eval, c->adjoint);

    memset(f_bar, 0, rows * n * sizeof *f_bar);
    for (size_t i = 0; i < rows; i++) {
        const real *p = a->values + (e * rows + i) * n;
        double q = a->q[e * rows + i], fraction = share(a, e, i);

        if (fraction > 0)
            KS(critic_value_gradient)
        (&a->critic_arch->loss, q, p, (real)(-fraction / (double)rows), f_bar + i * n);
    }
    KS(trained_backward)
    (a->critic_eval, c, a->policy_input, a->x_bar + e * rows * KS(agent_width)(a), false);
}

/* action_bar = sum of x_bar over the critics. */
static void sum_action_bars(struct KS(agent) *a)
{
    size_t n = a->config.batch * KS(agent_width)(a);

    memcpy(a->action_bar, a->x_bar, n * sizeof *a->action_bar);
    for (size_t e = 1; e < a->config.ensemble; e++)
        for (size_t i = 0; i < n; i++)
            a->action_bar[i] += a->x_bar[e * n + i];
}

double KS(policy_values)(struct KS(agent) *a)
{
    double sum = 0;

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < a->config.ensemble; e++)
        policy_values(a, e);
#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < a->config.ensemble; e++)
        policy_value_gradient(a, e);
    sum_action_bars(a);
    for (size_t i = 0; i < a->config.batch; i++)
        for (size_t e = 0; e < a->config.ensemble; e++)
            sum += share(a, e, i) * a->q[e * a->config.batch + i];
    return sum;
}

void KS(act_deterministic)(struct KS(agent) *a, const struct KS(net) *one,
                           const struct KS(trained) *seen, const struct ks_noise *level,
                           bool explores)
{
    struct KS(acting) *t = &a->acting;

    KS(net_forward)(one, seen->w, NULL, t->s, seen->primal);
    KS(net_forward)
    (a->actor_one, a->actor.w, a->actor.state, KS(net_output)(one, seen->primal), t->primal);
    KS(policy_perturb)
    (&a->actor_arch->policy, KS(net_output)(a->actor_one, t->primal), level,
     explores ? t->noise : NULL, t->action);
}

ks_status KS(step_deterministic)(struct KS(agent) *a, double loss, struct ks_update *u)
{
    u->actor_loss = loss;
    u->entropy = u->temperature_loss = NAN;
    u->actor_stepped = true;
    if (!KS(adam_step)(a->actor_arch, &a->actor_adam, &a->actor))
        return ks_fail(KS_NUMBER, "an actor parameter is no longer finite");
    a->actor_adam.step++;
    return KS_OK;
}

double KS(actor_loss)(struct KS(agent) *a, double *entropy)
{
    struct KS(policy_pass) p = policy_pass(a, KS(net_output)(a->actor_train, a->actor.primal),
                                           &a->policy, a->policy_input);
    const double values = KS(policy_values)(a), n = (double)a->config.batch;
    double log_pi = 0;

    p.a_bar = a->action_bar + a->config.observations;
    p.log_pi_bar = (real)(KS(agent_temperature)(a) / n);
    p.head_bar = KS(net_output_bar)(a->actor_train, a->actor.adjoint);
    KS(policy_backward)(&a->actor_arch->policy, &p);
    KS(trained_backward)(a->actor_train, &a->actor, a->s, NULL, true);
    for (size_t i = 0; i < a->config.batch; i++)
        log_pi += (double)a->policy.log_pi[i];
    *entropy = -log_pi / n;
    return (KS(agent_temperature)(a) * log_pi - values) / n;
}
