#include "train/player.h"

#include <math.h>
#include <stdlib.h>

#include "agent/stream.h"
#include "core/memory.h"
#include "core/process.h"
#include "train/learner.h"

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

/* --- evaluation --- */

ks_status ks_evaluation_init(const struct ks_plan *plan, struct ks_evaluation *v)
{
    v->plan = plan;
    v->return_mean = NAN;
    KS_TRY(ks_alloc(plan->options->settings.eval_episodes, sizeof *v->episode_returns,
                    &v->episode_returns));
    return ks_player_init(plan->options, " (evaluation)", &v->player);
}

void ks_evaluation_free(struct ks_evaluation *v)
{
    ks_player_free(&v->player);
    free(v->episode_returns);
}

/* An episode is a success if an agent step, not only one of its environment steps, ends
 * in a state that solves the task: so do XQC's authors count (xqc/envs/envs.py, evaluate). */
static ks_status episode(struct ks_evaluation *v, const struct ks_learner *l, struct ks_rng *rng,
                         double *sum, bool *solved)
{
    const size_t repeat = v->plan->options->settings.action_repeat;
    struct ks_player *p = &v->player;
    enum ks_env_end end = KS_ENV_GOES_ON;

    *sum = 0;
    *solved = false;
    KS_TRY(ks_env_reset(p->env, rng, p->observation));
    ks_player_report(p, l->env_step);
    while (end == KS_ENV_GOES_ON) {
        KS_TRY(ks_stop_check(l->env_step));
        ks_player_observe(p);
        KS(agent_act)(l->agent, ks_normalizer_see(l->normalizer, p->s), NULL, p->a);
        ks_player_set_action(p);
        for (size_t k = 0; k < repeat && end == KS_ENV_GOES_ON; k++) {
            double reward;

            KS_TRY(ks_env_step(p->env, p->action, p->observation, &reward, &end));
            *sum += reward;
        }
        *solved = *solved || ks_env_solved(p->env);
        ks_player_report(p, l->env_step);
    }
    return KS_OK;
}

ks_status ks_evaluate(struct ks_evaluation *v, const struct ks_learner *l, size_t number)
{
    size_t n = v->plan->options->settings.eval_episodes, before = v->player.divergences;
    struct ks_rng rng = ks_stream(v->plan->options->seed, KS_EVALUATION, number);
    ks_status status = KS_OK;
    size_t successes = 0;
    double sum = 0;

    for (size_t i = 0; i < n && status == KS_OK; i++) {
        bool solved;

        status = episode(v, l, &rng, &v->episode_returns[i], &solved);
        sum += v->episode_returns[i];
        successes += status == KS_OK && solved;
    }
    if (status == KS_OK) {
        v->return_mean = sum / (double)n;
        v->success = (double)successes / (double)n;
    } else { /* a resumed run repeats the entire evaluation and counts its divergences again */
        ks_env_divergences_set(v->player.env, before);
        v->player.divergences = before;
    }
    return status;
}
