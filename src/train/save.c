/* A run's checkpoint: networks, moments, metrics, and frozen minibatches for the analyzer. */
#include "train/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/stream.h"
#include "core/memory.h"
#include "core/milestones.h"
#include "io/file.h"
#include "io/text.h"

/* Minibatch number i: its input, and its targets with raw and with normalized rewards. All else,
 * the next actions too, is the same in both. */
static void freeze(struct ks_run *r, struct ks_rng *replay, struct ks_rng *noise, size_t i,
                   struct ks_checkpoint *c)
{
    const struct ks_settings *s = &r->options->settings;
    size_t input = c->rows * r->agent->critic_arch->in;
    size_t target = c->loss_rows * r->agent->critic_arch->loss.targets;
    struct ks_batch batch = ks_run_batch(r, replay);

    KS(agent_freeze)(r->agent, &batch, noise, c->input + i * input);
    KS(agent_freeze_target)(r->agent, &batch, c->target_raw + i * target);
    if (s->reward_normalization && !s->raw_rewards)
        ks_run_scale_rewards(r);
    KS(agent_freeze_target)(r->agent, &batch, c->target + i * target);
}

static ks_status freeze_batches(struct ks_run *r, struct ks_checkpoint *c)
{
    const struct ks_settings *s = &r->options->settings;
    struct ks_rng replay = ks_stream(r->options->seed, KS_FROZEN_REPLAY, r->env_step);
    struct ks_rng noise = ks_stream(r->options->seed, KS_FROZEN_ACTION, r->env_step);
    size_t input, target;

    c->minibatches = s->analysis_minibatches;
    c->rows = KS(agent_rows)(r->agent);
    c->loss_rows = s->batch;
    input = c->rows * r->agent->critic_arch->in;
    target = c->loss_rows * r->agent->critic_arch->loss.targets;
    KS_TRY(ks_alloc(c->minibatches * input, sizeof *c->input, &c->input));
    KS_TRY(ks_alloc(c->minibatches * target, sizeof *c->target, &c->target));
    KS_TRY(ks_alloc(c->minibatches * target, sizeof *c->target_raw, &c->target_raw));
    for (size_t i = 0; i < c->minibatches; i++)
        freeze(r, &replay, &noise, i, c);
    return KS_OK;
}

/* learning_rate: the critics', of the step to come; reward_scale: what rewards are divided by;
 * resumed_any: changes of conditions since the start, which run.json lists. */
static ks_status describe(const struct ks_run *r, struct ks_checkpoint *c)
{
    const struct ks_train_options *o = r->options;
    const struct ks_adam *adam = &r->agent->critic_adam;
    struct ks_attributes *a = &c->attributes;
    ks_status status;
    char *versions;

    KS_TRY(ks_attribute_add_string(a, "env", o->env));
    KS_TRY(ks_attribute_add_string(a, "architecture", r->name));
    KS_TRY(ks_attribute_add_integer(a, "seed", (int64_t)o->seed));
    KS_TRY(ks_attribute_add_integer(a, "env_step", (int64_t)r->env_step));
    KS_TRY(ks_attribute_add_integer(a, "update", r->agent->updates));
    KS_TRY(ks_attribute_add_number(a, "return_mean", r->return_mean));
    KS_TRY(ks_attribute_add_list(a, "returns", o->settings.eval_episodes, r->episode_returns));
    KS_TRY(ks_attribute_add_number(a, "gamma", r->gamma));
    KS_TRY(ks_attribute_add_number(a, "learning_rate",
                                   KS(schedule_rate)(&adam->schedule, adam->step)));
    KS_TRY(ks_attribute_add_number(
        a, "reward_scale", o->settings.reward_normalization ? ks_returns_scale(&r->returns) : 1));
    KS_TRY(ks_attribute_add_number(a, "temperature", KS(agent_temperature)(r->agent)));
    if (ks_run_count_changes(r) > 0)
        KS_TRY(ks_attribute_add_integer(a, "resumed_any", (int64_t)ks_run_count_changes(r)));
    KS_TRY(ks_run_versions(&versions));
    status = ks_attribute_add_string(a, "library_versions", versions);
    free(versions);
    return status;
}

static ks_status describe_setting(const struct ks_settings *settings, const struct ks_key *key,
                                  struct ks_checkpoint *c)
{
    char text[KS_VALUE_LENGTH];
    double number;

    if (!ks_settings_number(settings, key, &number)) {
        ks_settings_print(settings, key, text);
        return ks_attribute_add_string(&c->settings, key->name, text);
    }
    if (key->type == KS_KEY_NUMBER)
        return ks_attribute_add_number(&c->settings, key->name, number);
    return ks_attribute_add_integer(&c->settings, key->name, (int64_t)number);
}

/* All of them but `threads`, on which nothing here depends. */
static ks_status describe_settings(const struct ks_settings *settings, struct ks_checkpoint *c)
{
    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (strcmp(key->name, "threads") != 0)
            KS_TRY(describe_setting(settings, key, c));
    return KS_OK;
}

static ks_status checkpoint_path(const struct ks_run *r, size_t env_step, char **path)
{
    char name[32];

    ks_checkpoint_name(env_step, name);
    return ks_run_path(r, name, path);
}

ks_status ks_run_find_checkpoints(const struct ks_run *r, bool *all)
{
    char *path;

    *all = true;
    for (size_t i = 0; i < r->checkpoints.n && *all; i++) {
        KS_TRY(checkpoint_path(r, r->checkpoints.step[i], &path));
        *all = ks_path_exists(path);
        free(path);
    }
    return KS_OK;
}

static ks_status check_checkpoint(const struct ks_run *r, size_t env_step, const char *path)
{
    bool written = env_step < r->env_step || (env_step == r->env_step && r->recorded);

    if (written && !ks_path_exists(path))
        return ks_fail(KS_FORMAT, "%s: missing; without --resume the run starts over", path);
    if (!written && unlink(path) != 0 && errno != ENOENT)
        return ks_file_fail(errno, path, "removed");
    return KS_OK;
}

ks_status ks_run_check_checkpoints(const struct ks_run *r)
{
    ks_status status = KS_OK;
    char *path;

    for (size_t i = 0; i < r->checkpoints.n && status == KS_OK; i++) {
        KS_TRY(checkpoint_path(r, r->checkpoints.step[i], &path));
        status = check_checkpoint(r, r->checkpoints.step[i], path);
        free(path);
    }
    return status;
}

ks_status ks_run_save(struct ks_run *r)
{
    ks_status status = KS_OK;
    struct ks_checkpoint *c = NULL;
    char *path = NULL;

    KS_GO(KS(agent_check)(r->agent));
    KS_GO(ks_alloc(1, sizeof *c, &c));
    KS_GO(KS(agent_export)(r->agent, c));
    KS_GO(describe(r, c));
    KS_GO(describe_settings(&r->options->settings, c));
    KS_GO(ks_metrics_attributes(r->metrics, &c->metrics));
    KS_GO(freeze_batches(r, c));
    KS_GO(checkpoint_path(r, r->env_step, &path));
    KS_GO(ks_checkpoint_write(path, c, true));
done:
    free(path);
    ks_checkpoint_free(c);
    return status;
}
