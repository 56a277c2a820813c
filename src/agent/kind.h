/* What soft actor-critic (update.c) and MR.Q (mrq.c) do differently in an update: the functions of
 * agent.h call these. All work in the agent's work space. */
#ifndef KS_AGENT_KIND_H
#define KS_AGENT_KIND_H

#include "agent/agent.h"

struct KS(agent_kind) {
    /* acting.action from acting.s, with the noise in acting.noise if it explores. */
    void (*act)(struct KS(agent) *a, bool explores);
    /* From a minibatch to the networks' inputs: s, next_s, and `input` except for the rows (s',
     * a').
     * */
    void (*gather)(struct KS(agent) *a, const struct ks_batch *batch);
    /* a' with the noise in a->next; the rows (s', a') of `input`; the target critics there. */
    void (*look_ahead)(struct KS(agent) *a);
    /* After gather, what of an update reads no rewards; the actor's step after the critics' step.
     * KS_NUMBER. */
    ks_status (*begin)(struct KS(agent) *a, struct ks_update *u);
    ks_status (*step_actor)(struct KS(agent) *a, struct ks_update *u);
    /* For agent_recompute_last, if the actor did not step and so is still the one whose gradient
     * was skipped: that gradient, in actor.g, after a forward pass on s; returns the loss. */
    double (*last_gradient)(struct KS(agent) *a);
};

extern const struct KS(agent_kind) KS(soft_actor_critic), KS(mrq);

/* The target critics on the rows (s', a') of `input`. */
void KS(next_values)(struct KS(agent) *a);
/* Whether the actor steps at update number `update`. */
bool KS(actor_steps)(const struct KS(agent) *a, int64_t update);

/* MR.Q: a function that tests also call. */

/* The actor's loss -mean(Q) + 1e-5 mean(f^2), f being the actor's outputs before the tanh, on the
 * embeddings in a->s; its gradient goes to actor.g. */
double KS(mrq_actor_gradient)(struct KS(agent) *a);

#endif
