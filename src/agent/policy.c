/* The tanh-Gaussian of soft actor-critic (Haarnoja et al., ICML 2018, appendix C), one dimension:
 *
 *   s = bounded log-std,   u = mean + e^s n,   a = tanh(u),   n ~ N(0, 1)
 *   log pi = -n^2/2 - s - log(2 pi)/2 - log(1 - a^2)
 *   log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u))        without cancellation at large |u|
 *
 *   backward, n constant:  d(-log(1 - a^2))/du = 2a
 *     u_bar = (1 - a^2) a_bar + 2a log_pi_bar
 *     mean_bar = u_bar,   s_bar = e^s n u_bar - log_pi_bar
 *
 * Bounds on s: clip to [min, max] (derivative 0 outside), or
 * squash: min + (max - min) (1 + tanh x)/2.
 */
#include "agent/actor.h"

#include <tgmath.h>

static const double LOG_2 = 0.693147180559945309417, HALF_LOG_2PI = 0.918938533204672741780;

real KS(policy_log_std)(const struct ks_policy *policy, real x)
{
    real low = (real)policy->log_std_min, high = (real)policy->log_std_max;

    if (policy->squash)
        return low + (high - low) * (1 + tanh(x)) / 2;
    return x < low ? low : x > high ? high : x;
}

/* d log_std / dx */
static real log_std_slope(const struct ks_policy *policy, real x)
{
    real low = (real)policy->log_std_min, high = (real)policy->log_std_max;
    real t;

    if (!policy->squash)
        return x >= low && x <= high;
    t = tanh(x);
    return (high - low) * (1 - t * t) / 2;
}

static real log_one_minus_tanh2(real u)
{
    real x = -2 * u, softplus = (x > 0 ? x : 0) + log1p(exp(-fabs(x)));

    return 2 * ((real)LOG_2 - u - softplus);
}

void KS(policy_sample)(const struct ks_policy *policy, const struct KS(policy_pass) *p, size_t i)
{
    size_t n = policy->actions;
    const real *head = p->head + i * 2 * n, *noise = p->noise + i * n;
    real *action = p->action + i * p->stride, sum = 0;

    for (size_t j = 0; j < n; j++) {
        real s = KS(policy_log_std)(policy, head[n + j]), u = head[j] + exp(s) * noise[j];

        action[j] = tanh(u);
        sum -= noise[j] * noise[j] / 2 + s + (real)HALF_LOG_2PI + log_one_minus_tanh2(u);
    }
    p->log_pi[i] = sum;
}

void KS(policy_backward)(const struct ks_policy *policy, const struct KS(policy_pass) *p)
{
    size_t n = policy->actions;

    for (size_t i = 0; i < p->rows; i++) {
        const real *head = p->head + i * 2 * n, *noise = p->noise + i * n;
        const real *action = p->action + i * p->stride, *a_bar = p->a_bar + i * p->stride;
        real *bar = p->head_bar + i * 2 * n;

        for (size_t j = 0; j < n; j++) {
            real a = action[j], s = KS(policy_log_std)(policy, head[n + j]);
            real u_bar = (1 - a * a) * a_bar[j] + 2 * a * p->log_pi_bar;

            bar[j] = u_bar;
            bar[n + j] = (exp(s) * noise[j] * u_bar - p->log_pi_bar) *
                         log_std_slope(policy, head[n + j]);
        }
    }
}

static double clip(double x, double bound)
{
    return fmin(fmax(x, -bound), bound);
}

void KS(policy_perturb)(const struct ks_policy *policy, const real *head,
                        const struct ks_noise *level, const real *noise, real *action)
{
    KS(policy_mean)(policy, head, action);
    for (size_t j = 0; j < policy->actions && noise; j++)
        action[j] = (real)clip(
            (double)action[j] + clip(level->scale * (double)noise[j], level->bound), level->limit);
}

void KS(policy_mean)(const struct ks_policy *policy, const real *head, real *action)
{
    for (size_t j = 0; j < policy->actions; j++)
        action[j] = tanh(head[j]);
}
