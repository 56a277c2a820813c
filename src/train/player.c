#include "train/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    KS_TRY(ks_alloc(ks_env_seen(p->env), sizeof *p->s, &p->s));
    KS_TRY(ks_alloc(ks_env_seen(p->env), sizeof *p->previous_s, &p->previous_s));
    KS_TRY(ks_alloc(ks_env_actions(p->env), sizeof *p->a, &p->a));
    if (!ks_env_is_pixels(o->env))
        return KS_OK;
    KS_TRY(ks_alloc(KS_FRAMES, KS_FRAME, &p->frames));
    KS_TRY(ks_alloc(1, KS_FRAME, &p->picture));
    return ks_render_new(p->env, KS_FRAME_SIDE, KS_FRAME_SIDE, &p->render);
}

void ks_player_free(struct ks_player *p)
{
    ks_render_free(p->render);
    ks_env_free(p->env);
    free(p->frames);
    free(p->picture);
    free(p->observation);
    free(p->action);
    free(p->s);
    free(p->previous_s);
    free(p->a);
}

/* The newest frame follows the others; at the start of an episode it is all of them. A simulation
 * that has just diverged is no longer in the state that counts (ks_env_step): the frame before
 * stays the newest one. */
static ks_status look(struct ks_player *p, bool starts)
{
    const size_t places = KS_FRAME / 3;
    const bool draws = starts || ks_env_divergences(p->env) == p->divergences;
    uint8_t *newest = p->frames + (KS_FRAMES - 1) * KS_FRAME;

    if (draws)
        KS_TRY(ks_render_frame(p->render, p->picture));
    memmove(p->frames, p->frames + KS_FRAME, (KS_FRAMES - 1) * KS_FRAME);
    for (size_t i = 0; i < KS_FRAME && draws; i++)
        newest[i % 3 * places + i / 3] = p->picture[i];
    for (size_t k = 0; k + 1 < KS_FRAMES && starts; k++)
        memcpy(p->frames + k * KS_FRAME, newest, KS_FRAME);
    return KS_OK;
}

void ks_player_see(struct ks_player *p)
{
    for (size_t i = 0; i < ks_env_seen(p->env); i++)
        p->s[i] = p->frames ? ks_pixel(p->frames[i]) : (float)p->observation[i];
}

static ks_status observe(struct ks_player *p, bool starts)
{
    float *s = p->previous_s;

    if (p->frames)
        KS_TRY(look(p, starts));
    p->previous_s = p->s;
    p->s = s;
    ks_player_see(p);
    return KS_OK;
}

ks_status ks_player_start(struct ks_player *p, struct ks_rng *rng)
{
    KS_TRY(ks_env_reset(p->env, rng, p->observation));
    return observe(p, true);
}

ks_status ks_player_observe(struct ks_player *p)
{
    return observe(p, false);
}

const uint8_t *ks_player_frame(const struct ks_player *p, bool before)
{
    return p->frames + (KS_FRAMES - 1 - before) * KS_FRAME;
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
