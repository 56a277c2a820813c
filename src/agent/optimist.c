#include "agent/optimist.h"

#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "agent/actor.h"
#include "core/memory.h"

/* The constants of the published code. */
static const double STD_FACTOR = 0.75, KL_TARGET = 0.05, DUAL_RATE = 3e-5, DUAL_BETA1 = 0.5,
                    OPTIMISM_START = 1, PRICE_START = 0.25, LOG_MIN = -10, LOG_MAX = 7.5;

/* --- dual variables --- */

double KS(dual_value)(const struct ks_dual *dual)
{
    return exp(LOG_MIN + (LOG_MAX - LOG_MIN) * (1 + tanh(dual->x)) / 2);
}

static struct ks_dual start_dual(double value)
{
    return (struct ks_dual){.x = atanh((log(value) - LOG_MIN) / ((LOG_MAX - LOG_MIN) / 2) - 1)};
}

/* One step of Adam on direction * value * excess. */
static void step_dual(const struct ks_adam *adam, double direction, double excess,
                      struct ks_dual *dual)
{
    const double t = tanh(dual->x), slope = (LOG_MAX - LOG_MIN) / 2 * (1 - t * t);
    const double g = direction * KS(dual_value)(dual) * slope * excess;

    dual->x = KS(adam_scalar)(adam, g, &dual->m, &dual->v, dual->x);
}

/* --- new, free --- */

static ks_status check(const struct KS(agent) *a, const struct KS(arch) *arch)
{
    KS_TRY(KS(network_check)(arch, "optimist", false));
    if (!arch->policy.shift || arch->policy.actions != a->config.actions)
        return ks_fail(KS_FORMAT, "optimist: expected 'policy shift' of %zu actions, found %s%zu",
                       a->config.actions, arch->policy.shift ? "" : "another policy or ",
                       arch->policy.actions);
    if (arch->joint || a->config.ensemble != 2 || a->critic_arch->loss.kind->distribution)
        return ks_fail(KS_FORMAT, "optimist: expected a network without batchnorm and two critics "
                                  "without atoms (loss mse or quantile)");
    return KS_OK;
}

ks_status KS(optimist_new)(struct KS(agent) *a, const char *description,
                           struct KS(optimist) **optimist)
{
    struct KS(optimist) *o;

    KS_TRY(ks_alloc(1, sizeof *o, optimist));
    o = *optimist;
    KS_TRY(KS(arch_parse)(description, "optimist", KS(agent_width)(a), &o->arch));
    o->arch->products = a->config.products;
    KS_TRY(check(a, o->arch));
    KS_TRY(KS(net_new)(o->arch, a->config.batch, a->config.batch, false, &o->train));
    return KS(net_new)(o->arch, 1, 1, true, &o->one);
}

void KS(optimist_lay_out)(struct ks_arena *arena, const struct KS(agent) *a)
{
    struct KS(optimist) *o = a->optimist;

    KS(trained_lay_out)(arena, o->train, o->train, o->one, &o->shift);
    o->noise = KS_TAKE(arena, a->config.batch * a->config.actions, real);
    o->input = KS_TAKE(arena, a->config.batch * KS(agent_width)(a), real);
}

void KS(optimist_free)(struct KS(optimist) *o)
{
    if (!o)
        return;
    KS(net_free)(o->train);
    KS(net_free)(o->one);
    KS(arch_free)(o->arch);
    free(o);
}

ks_status KS(optimist_init)(struct KS(agent) *a)
{
    struct KS(optimist) *o = a->optimist;

    o->adam = a->actor_adam;
    o->dual_adam = (struct ks_adam){.rate = {DUAL_RATE, DUAL_RATE, 1}, .beta1 = DUAL_BETA1};
    o->optimism = start_dual(OPTIMISM_START);
    o->price = start_dual(PRICE_START);
    return KS(trained_init)(o->arch, &a->config.starts,
                            ks_stream(a->config.seed, KS_INIT_OPTIMIST, 0), &o->shift);
}

/* --- actions --- */

/* The network's input for one row: s and the means, the first outputs of the actor's head. */
static void join(const struct KS(agent) *a, const real *s, const real *head, real *input)
{
    memcpy(input, s, a->config.observations * sizeof *input);
    memcpy(input + a->config.observations, head, a->config.actions * sizeof *input);
}

static void sample(const struct KS(agent) *a, const real *head, const real *shift,
                   const real *noise, real *action)
{
    const size_t n = a->config.actions;

    for (size_t j = 0; j < n; j++) {
        const real sigma = exp(KS(policy_log_std)(&a->actor_arch->policy, head[n + j]));

        action[j] = tanh(head[j] + shift[j] + (real)STD_FACTOR * sigma * noise[j]);
    }
}

void KS(optimist_act)(struct KS(agent) *a, const real *s, const real *head, const real *noise,
                      real *action)
{
    struct KS(optimist) *o = a->optimist;

    join(a, s, head, o->input);
    KS(net_forward)(o->one, o->shift.w, o->shift.state, o->input, o->shift.primal);
    sample(a, head, KS(net_output)(o->one, o->shift.primal), noise, action);
}

/* --- the loss --- */

/* The actor in evaluation mode at s, the shifts, and the actions: into policy_input, next to s.
 * Returns the actor's outputs. */
static const real *forward(struct KS(agent) *a)
{
    struct KS(optimist) *o = a->optimist;
    const size_t n = a->config.actions, obs = a->config.observations, d = KS(agent_width)(a);
    const real *head = KS(net_output)(a->actor_eval, a->next_primal), *shift;

    KS(net_forward)(a->actor_eval, a->actor.w, a->actor.state, a->s, a->next_primal);
    for (size_t i = 0; i < a->config.batch; i++)
        join(a, a->s + i * obs, head + i * 2 * n, o->input + i * d);
    KS(net_forward)(o->train, o->shift.w, o->shift.state, o->input, o->shift.primal);
    shift = KS(net_output)(o->train, o->shift.primal);
    for (size_t i = 0; i < a->config.batch; i++) {
        memcpy(a->policy_input + i * d, a->s + i * obs, obs * sizeof *a->s);
        sample(a, head + i * 2 * n, shift + i * n, o->noise + i * n, a->policy_input + i * d + obs);
    }
    return head;
}

/* The mean upper bound over the rows. Sets the critics' f_bar to the derivative of its negative. */
static double upper_bound(struct KS(agent) *a)
{
    const size_t n = a->config.batch * a->critic_arch->out;
    const double optimism = KS(dual_value)(&a->optimist->optimism);
    const real *f[2];
    real *bar[2];
    double sum = 0;

    for (size_t e = 0; e < 2; e++) {
        f[e] = KS(net_output)(a->critic_eval, a->critic[e].primal);
        bar[e] = KS(net_output_bar)(a->critic_eval, a->critic[e].adjoint);
    }
    for (size_t i = 0; i < n; i++) {
        const double gap = (double)(f[0][i] - f[1][i]);
        const double side = gap > 0 ? optimism : gap < 0 ? -optimism : 0;

        sum += ((double)(f[0][i] + f[1][i]) + optimism * fabs(gap)) / 2;
        bar[0][i] = (real)(-(1 + side) / 2 / (double)n);
        bar[1][i] = (real)(-(1 - side) / 2 / (double)n);
    }
    return sum / (double)n;
}

/* The critics' passes on policy_input. Sets x_bar = d/dx of the negative mean upper bound, which it
 * returns. */
static double bound_values(struct KS(agent) *a)
{
    const size_t size = a->config.batch * KS(agent_width)(a);
    double bound;

#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < 2; e++)
        KS(net_forward)
    (a->critic_eval, a->critic[e].w, a->critic[e].state, a->policy_input, a->critic[e].primal);
    bound = upper_bound(a);
#pragma omp parallel for num_threads(a->config.threads) schedule(static)
    for (size_t e = 0; e < 2; e++)
        KS(trained_backward)
    (a->critic_eval, &a->critic[e], a->policy_input, a->x_bar + e * size, false);
    return bound;
}

/* The mean of KL. Sets shift_bar [batch, actions] = dL/d shift. */
static double distance(struct KS(agent) *a, const real *head, real *shift_bar)
{
    const struct KS(optimist) *o = a->optimist;
    const size_t n = a->config.actions, d = KS(agent_width)(a), rows = a->config.batch;
    const real *shift = KS(net_output)(o->train, o->shift.primal);
    const double price = KS(dual_value)(&o->price);
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++) {
            const size_t column = i * d + a->config.observations + j, at = i * n + j;
            const double s = (double)KS(policy_log_std)(&a->actor_arch->policy,
                                                        head[i * 2 * n + n + j]);
            const double pull = (double)shift[at] * exp(-2 * s); /* dKL/d shift */
            const real action = a->policy_input[column];
            const real a_bar = a->x_bar[column] + a->x_bar[rows * d + column];

            sum += (double)shift[at] * pull / 2;
            shift_bar[at] = (1 - action * action) * a_bar + (real)(price * pull / (double)rows);
        }
    return sum / (double)rows;
}

double KS(optimist_gradient)(struct KS(agent) *a, double *kl)
{
    struct KS(optimist) *o = a->optimist;
    const real *head = forward(a);
    const double bound = bound_values(a);

    *kl = distance(a, head, KS(net_output_bar)(o->train, o->shift.adjoint));
    KS(trained_backward)(o->train, &o->shift, o->input, NULL, true);
    return KS(dual_value)(&o->price) * *kl - bound;
}

ks_status KS(optimist_step)(struct KS(agent) *a)
{
    struct KS(optimist) *o = a->optimist;
    double kl, excess;

    KS(noise_of_update)(a, KS_OPTIMIST_ACTION, a->updates, o->noise);
    KS(optimist_gradient)(a, &kl);
    excess = kl / (double)a->config.actions - KL_TARGET;
    o->adam.step = o->dual_adam.step = a->actor_adam.step - 1; /* the actor has stepped */
    step_dual(&o->dual_adam, 1, excess, &o->optimism);
    step_dual(&o->dual_adam, -1, excess, &o->price);
    return KS(adam_step)(o->arch, &o->adam, &o->shift)
               ? KS_OK
               : ks_fail(KS_NUMBER, "a parameter of the optimistic actor is no longer finite");
}
