/* What an update (update.c) does with the actor: its passes, the actions that it samples for a
 * minibatch, and its loss. All work in the agent's work space (agent.h). */
#ifndef KS_AGENT_ACTOR_H
#define KS_AGENT_ACTOR_H

#include <stdint.h>

#include "agent/agent.h"
#include "agent/policy.h"
#include "agent/stream.h"
#include "core/rng.h"

/* Draws the noise [batch, actions] of a minibatch's actions from `rng`; the noise of update number
 * `update`, which depends only on this number, the purpose and the seed. */
void KS(noise_draw)(const struct KS(agent) *a, struct ks_rng *rng, real *noise);
void KS(noise_of_update)(const struct KS(agent) *a, enum ks_purpose purpose, int64_t update,
                         real *noise);

/* The forward pass on next_s in evaluation mode, into next_primal; the pass on s in training mode,
 * into actor.primal, which updates the running statistics `state` (NULL: none). */
void KS(actor_forward_next)(struct KS(agent) *a);
void KS(actor_forward)(struct KS(agent) *a, real *state);

/* Sample the actions of such a pass, with the noise in a->next or a->policy: a' into the rows of
 * (s', a') in `input`; a into policy_input, next to s. */
void KS(actor_sample_next)(struct KS(agent) *a);
void KS(actor_sample)(struct KS(agent) *a);
/* The pass of the policy behind them, from the output `head` of a pass of the actor to the action
 * columns of `input`. */
struct KS(policy_pass) KS(actor_pass)(const struct KS(agent) *a, const real *head,
                                      const struct KS(draw) *draw, real *input);

/* The critics in evaluation mode at policy_input: returns the sum of Q over the rows, and sets
 * action_bar [batch, D] = d/dx of -mean(Q). */
double KS(policy_values)(struct KS(agent) *a);

/* Returns the loss mean(T log pi - Q(s, a)) after actor_forward and actor_sample; its
 * gradient goes to actor.g, and *entropy is the mean of -log pi. */
double KS(actor_loss)(struct KS(agent) *a, double *entropy);

#endif
