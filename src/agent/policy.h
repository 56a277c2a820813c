/* The policy: a tanh-squashed Gaussian, a = tanh(u), u = mean + std * noise. */
#ifndef KS_AGENT_POLICY_H
#define KS_AGENT_POLICY_H

#include <stddef.h>

#include "core/real.h"
#include "net/arch.h"

/* A: number of actions. `head`: outputs of the actor's last layer. The rows of action and a_bar are
 * `stride` apart, so that they can be columns of a critic's input. */
struct KS(policy_pass) {
    size_t rows, stride;
    const real *head;  /* [rows, 2A]: means, then log-stds before their bounds   */
    const real *noise; /* [rows, A]: standard normal                             */
    real *action;      /* [rows, A, stride]: set by sample, read by backward     */
    real *log_pi;      /* [rows]: set by sample: log pi(action)                  */
    const real *a_bar; /* [rows, A, stride]: backward, in: dL/d action           */
    real log_pi_bar;   /*                              in: dL/d log_pi, any row  */
    real *head_bar;    /* [rows, 2A]:                  out                       */
};

/* The logarithm of the standard deviation, with its bounds applied, from an output of the head. */
real KS(policy_log_std)(const struct ks_policy *policy, real x);
/* Samples row i: sets action and log_pi. */
void KS(policy_sample)(const struct ks_policy *policy, const struct KS(policy_pass) *p, size_t i);
/* head_bar = dL/d head through the sampled actions and their log pi, at constant `noise`. */
void KS(policy_backward)(const struct ks_policy *policy, const struct KS(policy_pass) *p);
/* action [A] = tanh(mean) of one row of a head. */
void KS(policy_mean)(const struct ks_policy *policy, const real *head, real *action);

#endif
