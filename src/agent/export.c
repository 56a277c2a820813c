/* A checkpoint holds all numbers in double. The parsed descriptions in it have the precision of the
 * agent, which does not matter: writing a file reads only names and shapes from them. */

#include "agent/agent.h"
#include "core/memory.h"

static void copy(size_t n, const real *from, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

/* Allocates the parameters of `ensemble` networks with this description. */
static ks_status prepare(const struct ks_arch *arch, size_t ensemble, struct ks_networks *networks)
{
    networks->ensemble = ensemble;
    KS_TRY(ks_copy_string(arch->text, &networks->text));
    KS_TRY(KS(arch_parse)(arch->text, "description", arch->in, &networks->arch));
    return ks_alloc(ensemble * arch->parameters, sizeof *networks->w, &networks->w);
}

static ks_status export_networks(const struct ks_arch *arch, size_t ensemble,
                                 const struct ks_trained *t, struct ks_networks *networks)
{
    KS_TRY(prepare(arch, ensemble, networks));
    if (arch->states > 0)
        KS_TRY(ks_alloc(ensemble * arch->states, sizeof *networks->state, &networks->state));
    for (size_t e = 0; e < ensemble; e++) {
        copy(arch->parameters, t[e].w, networks->w + e * arch->parameters);
        if (arch->states > 0)
            copy(arch->states, t[e].state, networks->state + e * arch->states);
    }
    return KS_OK;
}

/* The targets' running statistics are not stored: they are never used. */
ks_status KS(agent_export)(const struct ks_agent *a, struct ks_checkpoint *checkpoint)
{
    size_t ensemble = a->config.ensemble, n = a->critic_arch->parameters;

    KS_TRY(export_networks(a->critic_arch, ensemble, a->critic, &checkpoint->critic));
    KS_TRY(prepare(a->critic_arch, ensemble, &checkpoint->target_critic));
    KS_TRY(export_networks(a->actor_arch, 1, &a->actor, &checkpoint->actor));
    KS_TRY(
        ks_alloc(KS(agent_critic_parameters)(a), sizeof *checkpoint->adam_m, &checkpoint->adam_m));
    KS_TRY(
        ks_alloc(KS(agent_critic_parameters)(a), sizeof *checkpoint->adam_v, &checkpoint->adam_v));
    for (size_t e = 0; e < ensemble; e++) {
        copy(n, a->critic[e].target, checkpoint->target_critic.w + e * n);
        copy(n, a->critic[e].m, checkpoint->adam_m + e * n);
        copy(n, a->critic[e].v, checkpoint->adam_v + e * n);
    }
    checkpoint->adam_step = a->critic_adam.step;
    checkpoint->adam = KS_ADAM_DEFAULTS;
    checkpoint->adam.beta1 = a->config.beta1;
    return KS_OK;
}
