/* MR.Q: the parts of its update that tests also call; kind.h has the others. */
#ifndef KS_AGENT_MRQ_H
#define KS_AGENT_MRQ_H

#include "agent/agent.h"

/* The actor's loss -mean(Q) + 1e-5 mean(f^2), f being the actor's outputs before the tanh, on the
 * embeddings in a->s; its gradient goes to actor.g. */
double KS(mrq_actor_gradient)(struct KS(agent) *a);

#endif
