#include "train/evaluation.h"

#include <math.h>
#include <stdlib.h>

#include "agent/stream.h"
#include "core/memory.h"
#include "core/process.h"

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
