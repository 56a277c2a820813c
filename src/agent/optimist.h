/* The optimistic actor of BRO (Nauman et al., "Bigger, Regularized, Optimistic", NeurIPS 2024; code
 * naumix/BiggerRegularizedOptimistic, 5870a13, jaxrl/bro), which chooses the actions of training
 * episodes. A network shifts the means of the actor; the standard deviations sigma are 3/4 of its:
 *
 *   u = mu + shift(s, mu) + 0.75 sigma n,   a = tanh(u),   n ~ N(0, 1)
 *
 * Its loss is an upper bound of the value, with two critics of K outputs each, plus the distance
 * from the actor:
 *
 *   L = -mean[ mean_k ( (f_1k + f_2k)/2 + o |f_1k - f_2k|/2 ) ] + c mean(KL)
 *   KL = sum_j shift_j^2 / (2 sigma_j^2)
 *
 * KL is the Kullback-Leibler divergence of the two Gaussians, both with the deviations of the
 * actor. The optimism o and the price c are dual variables, each exp of a number between -10
 * and 7.5: Adam decreases o (KL/A - 0.05) and -c (KL/A - 0.05). */
#ifndef KS_AGENT_OPTIMIST_H
#define KS_AGENT_OPTIMIST_H

#include "agent/optim.h"
#include "core/error.h"
#include "core/real.h"
#include "net/net.h"

struct KS(agent);

/* A positive number exp(-10 + 17.5 (1 + tanh x)/2) with Adam's moments of x. */
struct ks_dual {
    double x, m, v;
};

struct KS(optimist) {
    struct KS(arch) *arch;
    struct KS(net) *train, *one; /* passes in training mode; in evaluation mode of one row */
    struct KS(trained) shift;
    struct ks_adam adam, dual_adam; /* both with the number of the actor's steps */
    struct ks_dual optimism, price;
    real *noise, *input; /* [batch, actions], [batch, observations + actions] */
};

double KS(dual_value)(const struct ks_dual *dual);

/* Creates the optimistic actor of an agent whose networks are built, without its arrays, from a
 * description that ends in `policy shift`. KS_FORMAT if it does not fit the agent, KS_MEMORY. */
ks_status KS(optimist_new)(struct KS(agent) *agent, const char *description,
                           struct KS(optimist) **optimist);
void KS(optimist_free)(struct KS(optimist) *optimist);
/* Takes the arrays of the agent's optimistic actor from the agent's arena. */
void KS(optimist_lay_out)(struct ks_arena *arena, const struct KS(agent) *agent);
/* Sets parameters, moments and dual variables to their start. */
ks_status KS(optimist_init)(struct KS(agent) *agent);

/* The step after the actor's: on the observations in agent->s, with the critics in evaluation mode
 * and the noise of this update. KS_NUMBER if a parameter is not finite afterwards. */
ks_status KS(optimist_step)(struct KS(agent) *agent);
/* The loss above and, in optimist->shift.g, its gradient; *kl is the mean of KL. For tests also. */
double KS(optimist_gradient)(struct KS(agent) *agent, double *kl);
/* The action [actions] at the observation s [observations], with that noise; head: the actor's
 * output there. */
void KS(optimist_act)(struct KS(agent) *agent, const real *s, const real *head, const real *noise,
                      real *action);

#endif
