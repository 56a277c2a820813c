#include "train/run.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/memory.h"

ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run)
{
    const struct ks_render *frames;
    struct ks_env *env;
    KS_OWNED_BY(ks_run_free) struct ks_run *r = NULL;

    *run = NULL;
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    r->lock = -1;
    KS_TRY(ks_player_init(options, "", &r->learner.player));
    env = r->learner.player.env;
    frames = r->learner.player.render;
    KS_TRY(ks_plan_init(options, env, &r->plan));
    KS_TRY(ks_plan_check(&r->plan));
    KS_TRY(ks_evaluation_init(&r->plan, &r->evaluation));
    KS_TRY(ks_learner_init(&r->plan, &r->learner));
    KS_TRY(ks_conditions_init(&r->learner.agent->config, ks_env_flags(env),
                              frames ? ks_render_opengl(frames) : NULL, &r->conditions));
    KS_TRY(ks_alloc(ks_env_state_size(env), sizeof *r->env_state, &r->env_state));
    *run = r, r = NULL;
    return KS_OK;
}

void ks_run_free(struct ks_run *r)
{
    if (!r)
        return;
    ks_learner_free(&r->learner);
    ks_evaluation_free(&r->evaluation);
    ks_conditions_free(&r->conditions);
    ks_metrics_free(r->metrics);
    ks_plan_free(&r->plan);
    free(r->env_state);
    if (r->lock >= 0)
        close(r->lock);
    free(r);
}
