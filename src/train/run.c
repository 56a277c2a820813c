/* A run's parts: built, sized, freed. */
#include "train/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "agent/stream.h"
#include "core/memory.h"
#include "core/milestones.h"
#include "core/path.h"
#include "train/architecture.h"
#include "train/resume_point.h"

static int flag(double setting) /* 0, 1; -1: the library's default */
{
    return isnan(setting) ? -1 : (int)setting;
}

static ks_status new_player(const struct ks_train_options *o, struct ks_player *p)
{
    struct ks_env_options options = {flag(o->settings.nativeccd), flag(o->settings.multiccd)};

    KS_TRY(ks_env_new(o->env, &options, &p->env));
    KS_TRY(ks_alloc(ks_env_observations(p->env), sizeof *p->observation, &p->observation));
    KS_TRY(ks_alloc(ks_env_actions(p->env), sizeof *p->action, &p->action));
    KS_TRY(ks_alloc(ks_env_observations(p->env), sizeof *p->s, &p->s));
    return ks_alloc(ks_env_actions(p->env), sizeof *p->a, &p->a);
}

static void free_player(struct ks_player *p)
{
    ks_env_free(p->env);
    free(p->observation);
    free(p->action);
    free(p->s);
    free(p->a);
}

void ks_player_observe(struct ks_player *p)
{
    for (size_t i = 0; i < ks_env_observations(p->env); i++)
        p->s[i] = (float)p->observation[i];
}

void ks_player_decide(struct ks_player *p)
{
    for (size_t i = 0; i < ks_env_actions(p->env); i++)
        p->action[i] = (double)p->a[i];
}

static size_t all_agent_steps(const struct ks_train_options *o)
{
    size_t repeat = o->settings.action_repeat;

    return o->steps / repeat + (o->steps % repeat > 0);
}

/* K of the schedules: all updates of the run as if none of its steps were random. Each optimizer
 * counts its own steps, so with a delay the actor's rate falls less far. */
static ks_status new_agent(struct ks_run *r)
{
    const struct ks_settings *s = &r->options->settings;
    double updates = (double)s->utd * (double)all_agent_steps(r->options);
    double actions = (double)ks_env_actions(r->player.env);
    struct ks_agent_config config = {
        .critic = r->critic_text,
        .actor = r->actor_text,
        .name = r->options->architecture,
        .observations = ks_env_observations(r->player.env),
        .actions = ks_env_actions(r->player.env),
        .ensemble = s->critics,
        .batch = s->batch,
        .gamma = r->gamma,
        .tau = s->tau,
        .critic_rate = {s->critic_lr, s->lr_end, updates},
        .actor_rate = {s->actor_lr, s->lr_end, updates},
        .policy_delay = s->policy_delay,
        .temperature = s->temperature,
        .target_entropy = isnan(s->target_entropy) ? -actions / 2 : s->target_entropy,
        .weight_decay = s->weight_decay,
        .decay = (enum ks_decay)s->decay,
        .seed = r->options->seed,
        .threads = (int)(s->threads < s->critics ? s->threads : s->critics),
    };

    return KS(agent_new)(&config, &r->agent);
}

/* No more transitions are kept than the run has. */
static ks_status new_replay(struct ks_run *r)
{
    size_t observations = ks_env_observations(r->player.env);
    size_t actions = ks_env_actions(r->player.env), batch = r->options->settings.batch;
    size_t capacity = r->options->settings.replay;

    r->steps = all_agent_steps(r->options);
    KS_TRY(ks_replay_new(r->steps < capacity ? r->steps : capacity, observations, actions,
                         &r->replay));
    r->rows.n = batch;
    KS_TRY(ks_alloc(batch * observations, sizeof *r->rows.s, &r->rows.s));
    KS_TRY(ks_alloc(batch * actions, sizeof *r->rows.a, &r->rows.a));
    KS_TRY(ks_alloc(batch * observations, sizeof *r->rows.next_s, &r->rows.next_s));
    KS_TRY(ks_alloc(batch, sizeof *r->rows.mask, &r->rows.mask));
    KS_TRY(ks_alloc(batch, sizeof *r->rows.reward, &r->rows.reward));
    KS_TRY(ks_alloc(observations, sizeof *r->last_s, &r->last_s));
    KS_TRY(ks_alloc(ks_env_state_size(r->player.env), sizeof *r->env_state, &r->env_state));
    return ks_alloc(actions, sizeof *r->noise, &r->noise);
}

static ks_status new_schedules(struct ks_run *r)
{
    const struct ks_train_options *o = r->options;
    const struct ks_settings *s = &o->settings;
    size_t repeat = s->action_repeat, all = all_agent_steps(o) * repeat;

    KS_TRY(ks_alloc(s->evaluations + 1, sizeof *r->evaluations.step, &r->evaluations.step));
    KS_TRY(ks_alloc(s->checkpoints + 1, sizeof *r->checkpoints.step, &r->checkpoints.step));
    r->evaluations.n = ks_milestones_evaluations(o->steps, s->evaluations, repeat,
                                                 r->evaluations.step);
    r->checkpoints.n = ks_milestones_checkpoints(o->steps, s->checkpoints, s->random_steps, repeat,
                                                 r->checkpoints.step);
    r->end = (o->stop_at + repeat - 1) / repeat * repeat;
    if (o->stop_at == 0 || r->end > all)
        r->end = all;
    r->whole = r->end == all;
    r->return_mean = NAN;
    return ks_alloc(s->eval_episodes, sizeof *r->episode_returns, &r->episode_returns);
}

static ks_status build(struct ks_run *r)
{
    const struct ks_train_options *o = r->options;

    KS_TRY(ks_copy_string(o->out, &r->folder));
    KS_TRY(ks_copy_string(ks_path_base(o->architecture), &r->name));
    KS_TRY(new_player(o, &r->player));
    KS_TRY(ks_architecture(o->architecture, &o->settings, ks_env_actions(r->player.env),
                           &r->critic_text, &r->actor_text));
    KS_TRY(new_player(o, &r->evaluator));
    r->gamma = ks_settings_gamma(&o->settings, ks_env_steps(r->player.env));
    KS_TRY(new_agent(r));
    KS_TRY(new_replay(r));
    KS_TRY(new_schedules(r));
    return ks_resume_new(r);
}

ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run)
{
    struct ks_run *r;
    ks_status status;

    *run = NULL;
    KS_TRY(ks_alloc(1, sizeof *r, &r));
    r->options = options;
    r->lock = -1;
    r->resets = ks_stream(options->seed, KS_RESETS, 0);
    status = build(r);
    if (status != KS_OK) {
        ks_run_free(r);
        return status;
    }
    *run = r;
    return KS_OK;
}

void ks_run_free(struct ks_run *r)
{
    if (!r)
        return;
    free_player(&r->player);
    free_player(&r->evaluator);
    KS(agent_free)(r->agent);
    ks_replay_free(r->replay);
    ks_metrics_free(r->metrics);
    ks_resume_free(r->points);
    free(r->evaluations.step);
    free(r->checkpoints.step);
    free(r->episode_returns);
    free(r->rows.s);
    free(r->rows.a);
    free(r->rows.next_s);
    free(r->rows.mask);
    free(r->rows.reward);
    free(r->noise);
    free(r->env_state);
    free(r->last_s);
    free(r->critic_text);
    free(r->actor_text);
    free(r->folder);
    free(r->name);
    json_decref(r->changes);
    if (r->lock >= 0)
        close(r->lock);
    free(r);
}

ks_status ks_run_path(const struct ks_run *r, const char *name, char **path)
{
    return ks_print_string(path, "%s/%s", r->folder, name);
}
