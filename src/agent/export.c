/* A checkpoint holds all numbers, and its parsed descriptions, in double. */
#include "agent/agent.h"
#include "core/memory.h"

static void copy(size_t n, const real *from, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

static ks_status export_networks(const struct KS(arch) *arch, size_t ensemble,
                                 const struct KS(trained) *t, struct ks_networks *networks)
{
    KS_TRY(ks_networks_allocate(arch->text, arch->in, ensemble, true, networks));
    for (size_t e = 0; e < ensemble; e++) {
        copy(arch->parameters, t[e].w, networks->w + e * arch->parameters);
        if (arch->states > 0)
            copy(arch->states, t[e].state, networks->state + e * arch->states);
    }
    return KS_OK;
}

/* The targets' running statistics are not stored: they are never used. */
ks_status KS(agent_export)(const struct KS(agent) *a, struct ks_checkpoint *checkpoint)
{
    size_t ensemble = a->config.ensemble, n = a->critic_arch->parameters;

    KS_TRY(export_networks(a->critic_arch, ensemble, a->critic, &checkpoint->critic));
    KS_TRY(ks_networks_allocate(a->critic_arch->text, a->critic_arch->in, ensemble, false,
                                &checkpoint->target_critic));
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
