#include "train/plan.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "io/file.h"

static ks_status plan_milestones(struct ks_plan *p)
{
    const struct ks_train_options *o = p->options;
    const struct ks_settings *s = &o->settings;
    size_t repeat = s->action_repeat;

    KS_TRY(ks_alloc(s->evaluations + 1, sizeof *p->evaluations.env_step, &p->evaluations.env_step));
    KS_TRY(ks_alloc(s->checkpoints + 1, sizeof *p->checkpoints.env_step, &p->checkpoints.env_step));
    p->evaluations.n = ks_milestones(o->steps, s->evaluations, 0, repeat, p->evaluations.env_step);
    p->checkpoints.n = ks_milestones(o->steps, s->checkpoints, s->random_steps * repeat, repeat,
                                     p->checkpoints.env_step);
    return KS_OK;
}

ks_status ks_plan_init(const struct ks_train_options *o, const struct ks_env *env,
                       struct ks_plan *p)
{
    const size_t repeat = o->settings.action_repeat;
    size_t all, stop_at;

    p->options = o;
    p->folder = o->out;
    p->name = ks_path_base(o->architecture);
    p->task = ks_env_name(env);
    p->task_identity = ks_env_identity(env);
    KS_TRY(ks_architecture(o->architecture, &o->settings, ks_env_actions(env), p->text));
    p->gamma = ks_settings_gamma(&o->settings, ks_env_steps(env));
    p->agent_steps = (o->steps + repeat - 1) / repeat;
    all = p->agent_steps * repeat;
    stop_at = (o->stop_at + repeat - 1) / repeat * repeat;
    p->end = stop_at == 0 || stop_at > all ? all : stop_at;
    p->stops_early = p->end < all;
    return plan_milestones(p);
}

ks_status ks_plan_check(const struct ks_plan *p)
{
    const struct ks_settings *s = &p->options->settings;

    return p->agent_steps > s->random_steps
               ? KS_OK
               : ks_fail(KS_USAGE,
                         "--steps: expected more than %zu environment steps, as there is no update "
                         "in the first %zu agent steps (random_steps), found %zu",
                         s->random_steps * s->action_repeat, s->random_steps, p->options->steps);
}

void ks_plan_free(struct ks_plan *p)
{
    ks_texts_free(p->text);
    free(p->evaluations.env_step);
    free(p->checkpoints.env_step);
}

ks_status ks_plan_path(const struct ks_plan *p, const char *name, char **path)
{
    return ks_print_string(path, "%s/%s", p->folder, name);
}

ks_status ks_plan_checkpoint_path(const struct ks_plan *p, size_t env_step, char **path)
{
    char name[32];

    ks_checkpoint_name(env_step, name);
    return ks_plan_path(p, name, path);
}
