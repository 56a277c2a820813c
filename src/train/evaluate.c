/* Evaluation: episodes of the actor's mean action, on an environment of its own. */
#include "train/run.h"

#include <stdio.h>

#include "agent/stream.h"
#include "core/say.h"

void ks_run_report(const struct ks_run *r, struct ks_player *p)
{
    size_t n = ks_env_divergences(p->env);

    if (n == p->divergences)
        return;
    p->divergences = n;
    ks_say("%s%s: divergence %zu, environment step %zu: %s", r->options->env,
           p == &r->evaluator ? " (evaluation)" : "", n, r->env_step, ks_env_divergence(p->env));
}

static ks_status episode(struct ks_run *r, struct ks_rng *rng, double *sum)
{
    struct ks_player *p = &r->evaluator;
    bool ended = false;

    *sum = 0;
    KS_TRY(ks_env_reset(p->env, rng, p->observation));
    ks_run_report(r, p);
    while (!ended) {
        KS_TRY(ks_run_check_signal(r));
        ks_player_observe(p);
        KS(agent_act)(r->agent, p->s, NULL, p->a);
        ks_player_decide(p);
        for (size_t k = 0; k < r->options->settings.action_repeat && !ended; k++) {
            double reward;

            KS_TRY(ks_env_step(p->env, p->action, p->observation, &reward, &ended));
            *sum += reward;
        }
        ks_run_report(r, p);
    }
    return KS_OK;
}

ks_status ks_run_evaluate(struct ks_run *r, size_t number)
{
    size_t n = r->options->settings.eval_episodes, before = r->evaluator.divergences;
    struct ks_rng rng = ks_stream(r->options->seed, KS_EVALUATION, number);
    ks_status status = KS_OK;
    double sum = 0;

    for (size_t i = 0; i < n && status == KS_OK; i++) {
        status = episode(r, &rng, &r->episode_returns[i]);
        sum += r->episode_returns[i];
    }
    if (status == KS_OK) {
        r->return_mean = sum / (double)n;
    } else { /* a resumed run makes all of it again */
        ks_env_divergences_set(r->evaluator.env, before);
        r->evaluator.divergences = before;
    }
    return status;
}
