#include "train/train.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "agent/stream.h"
#include "config.h"
#include "core/blas.h"
#include "core/memory.h"
#include "io/file.h"
#include "io/h5.h"

/* Each minibatch: its input, and its targets from raw and from normalized rewards, with the same
 * next actions. */
static ks_status fill_batches(struct ks_learner *l, struct ks_checkpoint *c)
{
    const struct ks_train_options *o = l->plan->options;
    const struct KS(arch) *critic = l->agent->critic_arch;
    struct ks_rng replay = ks_stream(o->seed, KS_FROZEN_REPLAY, l->env_step);
    struct ks_rng noise = ks_stream(o->seed, KS_FROZEN_ACTION, l->env_step);
    size_t input, target;

    c->minibatches = o->settings.analysis_minibatches;
    c->rows = KS(agent_rows)(l->agent);
    c->loss_rows = o->settings.batch;
    input = c->rows * critic->in;
    target = c->loss_rows * critic->loss.targets;
    KS_TRY(ks_alloc(c->minibatches * input, sizeof *c->input, &c->input));
    KS_TRY(ks_alloc(c->minibatches * target, sizeof *c->target, &c->target));
    KS_TRY(ks_alloc(c->minibatches * target, sizeof *c->target_raw, &c->target_raw));
    for (size_t i = 0; i < c->minibatches; i++) {
        struct ks_batch batch;

        KS_TRY(ks_learner_batch(l, &replay, &batch));
        KS(agent_fill_checkpoint_batch)(l->agent, &batch, &noise, c->input + i * input);
        KS(agent_fill_checkpoint_target)(l->agent, &batch, c->target_raw + i * target);
        if (!o->settings.raw_rewards)
            ks_learner_scale_rewards(l, KS(agent_temperature)(l->agent));
        KS(agent_fill_checkpoint_target)(l->agent, &batch, c->target + i * target);
    }
    return KS_OK;
}

/* Keeps a reference result only if it is finite as float32: one that is not would end the run. */
static void keep_finite(size_t n, struct ks_reference *reference)
{
    for (size_t i = 0; reference->value && i < n; i++)
        if (!isfinite((float)reference->value[i])) {
            free(reference->value);
            reference->value = NULL;
        }
}

/* What the critics give for the first minibatch, by which a reader can check that it computes the
 * same. It is computed in float64 and stored in float32, so that float32 rounding in the training
 * of an ill-conditioned critic cannot make a reader refuse the file. */
static ks_status add_references(const struct ks_learner *l, struct ks_checkpoint *c)
{
    struct ks_references *p = &c->references;

    p->output = (struct ks_reference){.minibatches = 1, .rows = c->loss_rows};
    p->loss = p->gradient_norm = (struct ks_reference){.minibatches = 1, .rows = 1};
    KS_TRY(ks_references_compute(c, p));
    keep_finite(c->loss_rows * c->critic.ensemble * l->agent->critic_arch->out, &p->output);
    keep_finite(1, &p->loss);
    keep_finite(1, &p->gradient_norm);
    return KS_OK;
}

/* "kappascope 0.2.0; OpenBLAS 0.3.21, kernel Haswell, products blas; ...": the caller frees. */
static ks_status print_versions(enum ks_products products, char **text)
{
    return ks_print_string(text, "kappascope %s; %s, kernel %s, products %s; HDF5 %s; MuJoCo %s",
                           KS_BUILD, ks_blas_version(), ks_blas_kernel(),
                           ks_products_names[products], ks_h5_version(), ks_env_mujoco_version());
}

/* The file's writer fails if an attribute could not be added. learning_rate: of the critics, in
 * their next step; reward_scale: the divisor of rewards; resumed_any: how often conditions have
 * changed since the start (the list is in run.json). */
static ks_status describe(const struct ks_run *r, struct ks_checkpoint *c)
{
    const struct ks_train_options *o = r->plan.options;
    const struct ks_learner *l = &r->learner;
    const struct ks_adam *adam = &l->agent->critic_adam;
    struct ks_attributes *a = &c->attributes;
    size_t changes = json_array_size(r->conditions.changes);
    KS_OWNED char *versions = NULL;

    ks_attribute_add_string(a, "env", r->plan.task);
    ks_attribute_add_string(a, "architecture", r->plan.name);
    ks_attribute_add_integer(a, "seed", (int64_t)o->seed);
    ks_attribute_add_integer(a, "env_step", (int64_t)l->env_step);
    ks_attribute_add_integer(a, "update", l->agent->updates);
    ks_attribute_add_number(a, "return_mean", r->evaluation.return_mean);
    ks_attribute_add_list(a, "returns", o->settings.eval_episodes, r->evaluation.episode_returns);
    ks_attribute_add_number(a, "gamma", r->plan.gamma);
    ks_attribute_add_number(a, "learning_rate", KS(rate_at)(&adam->rate, adam->step));
    ks_attribute_add_number(a, "reward_scale",
                            ks_learner_reward_scale(l, KS(agent_temperature)(l->agent)));
    ks_attribute_add_number(a, "temperature", KS(agent_temperature)(l->agent));
    if (changes > 0)
        ks_attribute_add_integer(a, "resumed_any", (int64_t)changes);
    KS_TRY(print_versions(l->agent->config.products, &versions));
    ks_attribute_add_string(a, "library_versions", versions);
    return KS_OK;
}

static void describe_setting(const struct ks_settings *settings, const struct ks_key *key,
                             struct ks_checkpoint *c)
{
    char text[KS_VALUE_LENGTH];
    double number;

    if (!ks_key_number(key, settings, &number)) {
        ks_key_print(key, settings, text);
        ks_attribute_add_string(&c->settings, key->name, text);
    } else if (key->type == KS_KEY_NUMBER) {
        ks_attribute_add_number(&c->settings, key->name, number);
    } else {
        ks_attribute_add_integer(&c->settings, key->name, (int64_t)number);
    }
}

/* `threads` is left out: nothing in a checkpoint depends on it. */
static void describe_settings(const struct ks_settings *settings, struct ks_checkpoint *c)
{
    for (const struct ks_key *key = ks_keys; key->name; key++)
        if (strcmp(key->name, "threads") != 0)
            describe_setting(settings, key, c);
}

ks_status ks_save_checkpoint(struct ks_run *r)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;
    KS_OWNED char *path = NULL;

    KS_TRY(KS(agent_check)(r->learner.agent));
    KS_TRY(ks_alloc(1, sizeof *c, &c));
    KS_TRY(KS(agent_export)(r->learner.agent, c));
    KS_TRY(describe(r, c));
    describe_settings(&r->plan.options->settings, c);
    ks_metrics_attributes(r->metrics, &c->metrics);
    KS_TRY(fill_batches(&r->learner, c));
    KS_TRY(add_references(&r->learner, c));
    KS_TRY(ks_plan_checkpoint_path(&r->plan, r->learner.env_step, &path));
    return ks_checkpoint_write(path, c, true);
}

ks_status ks_checkpoint_files_exist(const struct ks_plan *p, bool *all)
{
    *all = true;
    for (size_t i = 0; i < p->checkpoints.n && *all; i++) {
        KS_OWNED char *path = NULL;

        KS_TRY(ks_plan_checkpoint_path(p, p->checkpoints.env_step[i], &path));
        *all = ks_path_exists(path);
    }
    return KS_OK;
}

/* A checkpoint that has been analyzed may have been removed. */
static ks_status check_file(const char *path, bool written)
{
    bool found = ks_path_exists(path);
    KS_OWNED char *spectrum = NULL;

    if (!written)
        return unlink(path) != 0 && errno != ENOENT ? ks_file_fail(errno, path, "removed") : KS_OK;
    if (!found) {
        KS_TRY(
            ks_print_string(&spectrum, "%.*s.spectrum.h5", (int)ks_path_stem(path, ".h5"), path));
        found = ks_path_exists(spectrum);
    }
    return found ? KS_OK
                 : ks_fail(KS_FORMAT, "%s: missing; without --resume the run starts over", path);
}

ks_status ks_checkpoint_files_check(const struct ks_plan *p, size_t env_step, bool recorded)
{
    for (size_t i = 0; i < p->checkpoints.n; i++) {
        const size_t step = p->checkpoints.env_step[i];
        KS_OWNED char *path = NULL;

        KS_TRY(ks_plan_checkpoint_path(p, step, &path));
        KS_TRY(check_file(path, step < env_step || (step == env_step && recorded)));
    }
    return KS_OK;
}
