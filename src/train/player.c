#include "train/player.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"

static int flag(double setting) /* 0, 1; -1: the library's default */
{
    return isnan(setting) ? -1 : (int)setting;
}

ks_status ks_player_init(const struct ks_train_options *o, const char *role, struct ks_player *p)
{
    struct ks_env_options options = {flag(o->settings.nativeccd), flag(o->settings.multiccd)};

    p->task = o->env;
    p->role = role;
    KS_TRY(ks_env_new(o->env, &options, &p->env));
    KS_TRY(ks_alloc(ks_env_observations(p->env), sizeof *p->observation, &p->observation));
    KS_TRY(ks_alloc(ks_env_actions(p->env), sizeof *p->action, &p->action));
    KS_TRY(ks_alloc(ks_env_observations(p->env), sizeof *p->s, &p->s));
    KS_TRY(ks_alloc(ks_env_observations(p->env), sizeof *p->previous_s, &p->previous_s));
    return ks_alloc(ks_env_actions(p->env), sizeof *p->a, &p->a);
}

void ks_player_free(struct ks_player *p)
{
    ks_env_free(p->env);
    free(p->observation);
    free(p->action);
    free(p->s);
    free(p->previous_s);
    free(p->a);
}

void ks_player_observe(struct ks_player *p)
{
    float *s = p->previous_s;

    for (size_t i = 0; i < ks_env_observations(p->env); i++)
        s[i] = (float)p->observation[i];
    p->previous_s = p->s;
    p->s = s;
}

void ks_player_set_action(struct ks_player *p)
{
    for (size_t i = 0; i < ks_env_actions(p->env); i++)
        p->action[i] = (double)p->a[i];
}

void ks_player_report(struct ks_player *p, size_t env_step)
{
    size_t n = ks_env_divergences(p->env);

    if (n == p->divergences)
        return;
    p->divergences = n;
    ks_say("%s%s: divergence %zu, environment step %zu: %s", p->task, p->role, n, env_step,
           ks_env_divergence(p->env));
}
