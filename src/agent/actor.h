/* What an update (update.c) does with the actor: its passes, the actions that it samples for a
 * minibatch, and its loss. All work in the agent's work space (agent.h). */
#ifndef KS_AGENT_ACTOR_H
#define KS_AGENT_ACTOR_H

#include <stdint.h>

#include "agent/agent.h"
#include "agent/stream.h"
#include "core/rng.h"

/* The policy (policy.c): a tanh-squashed Gaussian, a = tanh(u), u = mean + std * noise.
 *
 * A: number of actions. `head`: outputs of the actor's last layer. The rows of action and a_bar are
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

/* Noise on the actions of a deterministic actor: a factor of standard normal noise, and where it
 * and then the action are clipped. */
struct ks_noise {
    double scale, bound, limit;
};
/* action [A] = clip(tanh(head) + clip(scale noise, bound), limit); noise NULL: tanh(head). */
void KS(policy_perturb)(const struct ks_policy *policy, const real *head,
                        const struct ks_noise *level, const real *noise, real *action);

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

/* The critics in evaluation mode at policy_input: returns the sum of Q over the rows, and sets
 * action_bar [batch, D] = d/dx of -mean(Q). */
double KS(policy_values)(struct KS(agent) *a);

/* Returns the loss mean(T log pi - Q(s, a)) after actor_forward and actor_sample; its
 * gradient goes to actor.g, and *entropy is the mean of -log pi. */
double KS(actor_loss)(struct KS(agent) *a, double *entropy);

/* `act` of a deterministic actor that sees the output of a network, whose pass on one row is `one`.
 */
void KS(act_deterministic)(struct KS(agent) *a, const struct KS(net) *one,
                           const struct KS(trained) *seen, const struct ks_noise *level,
                           bool explores);
/* The step of a deterministic actor after its gradient, with its loss. KS_NUMBER. */
ks_status KS(step_deterministic)(struct KS(agent) *a, double loss, struct ks_update *u);
/* Whether the actor steps at update number `update`. */
bool KS(actor_steps)(const struct KS(agent) *a, int64_t update);

/* What soft actor-critic (update.c), MR.Q (mrq.c) and DrQ-v2 (pixels.c) do differently in an
 * update: the functions of agent.h call these. */
struct KS(agent_kind) {
    /* acting.action from acting.s, with the noise in acting.noise if it explores. */
    void (*act)(struct KS(agent) *a, bool explores);
    /* From a minibatch to the networks' inputs: s, next_s, and `input` without rows (s', a'). */
    void (*gather)(struct KS(agent) *a, const struct ks_batch *batch);
    /* a' with the noise in a->next; the rows (s', a') of `input`; the target critics there. */
    void (*look_ahead)(struct KS(agent) *a);
    /* After gather, what of an update reads no rewards; the step of what the critics share, after
     * their gradients, which then include x_bar (NULL: nothing); the actor's step after the
     * critics' step. KS_NUMBER. */
    ks_status (*begin)(struct KS(agent) *a, struct ks_update *u);
    ks_status (*step_shared)(struct KS(agent) *a);
    ks_status (*step_actor)(struct KS(agent) *a, struct ks_update *u);
    /* For agent_recompute_last, if the actor did not step and so is still the one whose gradient
     * was skipped: that gradient, in actor.g, after a forward pass on s; returns the loss. */
    double (*last_gradient)(struct KS(agent) *a);
};

extern const struct KS(agent_kind) KS(soft_actor_critic), KS(mrq), KS(drq);

/* The target critics on `target_input`. */
void KS(next_values)(struct KS(agent) *a);

/* MR.Q: a function that tests also call. */

/* The actor's loss -mean(Q) + 1e-5 mean(f^2), f being the actor's outputs before the tanh, on the
 * embeddings in a->s; its gradient goes to actor.g. */
double KS(mrq_actor_gradient)(struct KS(agent) *a);

#endif
