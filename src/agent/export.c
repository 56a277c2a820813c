/* The agent as a checkpoint: everything in double. The descriptions are parsed in this precision;
 * writing a file asks them for names and shapes only. */
#include <stdlib.h>

#include "ks/agent.h"
#include "ks/memory.h"

static void copy(size_t n, const real *from, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

/* Room for `ensemble` networks of a description; states only where wanted. */
static ks_status prepare(const struct ks_arch *arch, size_t ensemble, bool states,
                         struct ks_networks *networks)
{
    networks->ensemble = ensemble;
    KS_TRY(ks_copy_string(arch->text, &networks->text));
    KS_TRY(KS(arch_parse)(arch->text, "description", arch->in, &networks->arch));
    KS_TRY(ks_alloc(ensemble * arch->parameters, sizeof *networks->w, &networks->w));
    if (states && arch->states > 0)
        KS_TRY(ks_alloc(ensemble * arch->states, sizeof *networks->state, &networks->state));
    return KS_OK;
}

/* The target's running statistics are never used and not kept. */
ks_status KS(agent_export)(const struct ks_agent *a, struct ks_checkpoint *checkpoint)
{
    size_t ensemble = a->config.ensemble, n = a->critic_arch->parameters;
    size_t states = a->critic_arch->states;

    KS_TRY(prepare(a->critic_arch, ensemble, true, &checkpoint->critic));
    KS_TRY(prepare(a->critic_arch, ensemble, false, &checkpoint->target_critic));
    KS_TRY(prepare(a->actor_arch, 1, true, &checkpoint->actor));
    KS_TRY(ks_alloc(ensemble * n, sizeof *checkpoint->adam_m, &checkpoint->adam_m));
    KS_TRY(ks_alloc(ensemble * n, sizeof *checkpoint->adam_v, &checkpoint->adam_v));
    for (size_t e = 0; e < ensemble; e++) {
        const struct ks_critic *c = &a->critic[e];

        copy(n, c->w, checkpoint->critic.w + e * n);
        copy(n, c->target, checkpoint->target_critic.w + e * n);
        copy(n, c->m, checkpoint->adam_m + e * n);
        copy(n, c->v, checkpoint->adam_v + e * n);
        if (states > 0)
            copy(states, c->state, checkpoint->critic.state + e * states);
    }
    checkpoint->adam_step = a->critic_adam.step;
    copy(a->actor_arch->parameters, a->actor_w, checkpoint->actor.w);
    if (a->actor_arch->states > 0)
        copy(a->actor_arch->states, a->actor_state, checkpoint->actor.state);
    return KS_OK;
}
