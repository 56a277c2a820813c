/* Reading a checkpoint, where everything is checked before it is used, and writing one. The group
 * /batch is read by checkpoint_batch.c, and networks by networks.c. */
#include "io/checkpoint.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/checkpoint_groups.h"
#include "io/h5.h"

/* The root attributes that the format defines. Others are ignored. */
static const struct {
    const char *name;
    enum ks_attribute_type type;
} known[] = {
    {"env", KS_ATTRIBUTE_STRING},           {"architecture", KS_ATTRIBUTE_STRING},
    {"seed", KS_ATTRIBUTE_INTEGER},         {"env_step", KS_ATTRIBUTE_INTEGER},
    {"update", KS_ATTRIBUTE_INTEGER},       {"return_mean", KS_ATTRIBUTE_NUMBER},
    {"returns", KS_ATTRIBUTE_LIST},         {"gamma", KS_ATTRIBUTE_NUMBER},
    {"learning_rate", KS_ATTRIBUTE_NUMBER}, {"reward_scale", KS_ATTRIBUTE_NUMBER},
    {"temperature", KS_ATTRIBUTE_NUMBER},   {"library_versions", KS_ATTRIBUTE_STRING},
    {"resumed_any", KS_ATTRIBUTE_INTEGER},  {"minibatches", KS_ATTRIBUTE_STRING},
};

/* Whether all checkpoints of a run hold the same minibatches. */
static ks_status check_minibatches(const char *path, const struct ks_attributes *list)
{
    const char *word = ks_attribute_text(list, "minibatches");

    return !word || strcmp(word, "fixed") == 0 || strcmp(word, "fresh") == 0
               ? KS_OK
               : ks_fail(KS_FORMAT, "%s: minibatches: expected fixed or fresh, found '%s'", path,
                         word);
}

static ks_status read_attributes(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct ks_attribute one;
        bool found;

        KS_TRY(ks_h5_has_attribute(h5, "/", known[i].name, &found));
        if (!found)
            continue;
        KS_TRY(ks_h5_read_attribute(h5, "/", known[i].name, known[i].type, &one));
        ks_attribute_add(&c->attributes, &one);
    }
    KS_TRY(c->attributes.status);
    return check_minibatches(h5->path, &c->attributes);
}

/* Adam's second moment is a mean of squares. */
ks_status ks_checkpoint_check_squares(const struct ks_checkpoint *c, const char *path,
                                      const char *name)
{
    for (size_t i = 0; c->adam_v && i < ks_networks_parameters(&c->critic); i++)
        if (c->adam_v[i] < 0)
            return ks_fail(KS_FORMAT,
                           "%s: %s: expected means of squares, which are at least 0, found %g in "
                           "critic %zu",
                           path, name, c->adam_v[i], i / c->critic.arch->parameters);
    return KS_OK;
}

/* Reads an attribute of /optimizer, which must be in [0, high). If it is missing, *value stays as
 * it is. */
static ks_status read_constant(const struct ks_h5 *h5, const char *name, double high, double *value)
{
    struct ks_attribute a;
    bool found;

    KS_TRY(ks_h5_has_attribute(h5, "/optimizer", name, &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_read_attribute(h5, "/optimizer", name, KS_ATTRIBUTE_NUMBER, &a));
    if (!(a.number >= 0 && a.number < high))
        return ks_fail(KS_FORMAT,
                       "%s: /optimizer: attribute %s: expected at least 0 and below %g, found %g",
                       h5->path, name, high, a.number);
    *value = a.number;
    return KS_OK;
}

static ks_status read_optimizer(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    static const char *const known_attributes[] = {"step", "beta1", "beta2", "eps", NULL};
    bool group, m, v;

    c->adam = KS_ADAM_DEFAULTS;
    KS_TRY(ks_h5_has(h5, "/optimizer", &group));
    if (group)
        KS_TRY(ks_h5_expect_known(h5, "/optimizer", true, known_attributes, ""));
    KS_TRY(ks_h5_has(h5, "/optimizer/m", &m));
    KS_TRY(ks_h5_has(h5, "/optimizer/v", &v));
    if (!m && !v)
        return KS_OK;
    KS_TRY(ks_h5_read_integer(h5, "/optimizer", "step", 0, &c->adam_step));
    KS_TRY(read_constant(h5, "beta1", 1, &c->adam.beta1));
    KS_TRY(read_constant(h5, "beta2", 1, &c->adam.beta2));
    KS_TRY(read_constant(h5, "eps", INFINITY, &c->adam.eps));
    if (m)
        KS_TRY(ks_parameters_read(h5, "/optimizer/m", &c->critic, &c->adam_m));
    if (v)
        KS_TRY(ks_parameters_read(h5, "/optimizer/v", &c->critic, &c->adam_v));
    return ks_checkpoint_check_squares(c, h5->path, "/optimizer/v");
}

static ks_status read_groups(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    struct ks_h5_shape input;

    KS_TRY(read_attributes(h5, c));
    KS_TRY(ks_checkpoint_input_shape(h5, &input));
    KS_TRY(ks_networks_read(h5, "/critic", input.dims[2], &c->critic));
    KS_TRY(ks_networks_expect_known(h5, &c->critic));
    KS_TRY(ks_checkpoint_read_batch(h5, &input, c));
    return read_optimizer(h5, c);
}

ks_status ks_checkpoint_read_loss(const struct ks_h5 *h5, struct ks_checkpoint **out)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *c, &c));
    KS_TRY(read_groups(h5, c));
    *out = c, c = NULL;
    return KS_OK;
}

ks_status ks_checkpoint_shapes(struct ks_h5 *h5, double *bytes, struct ks_checkpoint **out)
{
    ks_status status;

    *bytes = 0;
    h5->declared = bytes;
    status = ks_checkpoint_read_loss(h5, out);
    h5->declared = NULL;
    return status;
}

ks_status ks_checkpoint_bytes(struct ks_h5 *h5, double *bytes)
{
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;

    return ks_checkpoint_shapes(h5, bytes, &c);
}

/* --- writing: the file appears complete or not at all --- */

static void write_optimizer(struct ks_h5 *h5, const struct ks_checkpoint *c, bool f32)
{
    if (!c->adam_m && !c->adam_v)
        return;
    ks_h5_group(h5, "/optimizer");
    ks_h5_write_integer(h5, "/optimizer", "step", c->adam_step);
    ks_h5_write_number(h5, "/optimizer", "beta1", c->adam.beta1);
    ks_h5_write_number(h5, "/optimizer", "beta2", c->adam.beta2);
    ks_h5_write_number(h5, "/optimizer", "eps", c->adam.eps);
    if (c->adam_m)
        ks_parameters_write(h5, "/optimizer/m", &c->critic, c->adam_m, f32);
    if (c->adam_v)
        ks_parameters_write(h5, "/optimizer/v", &c->critic, c->adam_v, f32);
}

static void write_all(struct ks_h5 *h5, const struct ks_checkpoint *c, bool f32)
{
    ks_h5_write_attributes(h5, "/", &c->attributes);
    ks_networks_write(h5, "/critic", &c->critic, f32);
    ks_checkpoint_write_batch(h5, c, f32);
    if (c->target_critic.text)
        ks_networks_write(h5, "/target", &c->target_critic, f32);
    if (c->actor.text) {
        ks_networks_write(h5, "/actor", &c->actor, f32);
        ks_h5_write_integer(h5, "/actor", "in", (int64_t)c->actor.arch->in);
    }
    write_optimizer(h5, c, f32);
    ks_h5_write_attributes(h5, "/metrics", &c->metrics);
    ks_h5_write_attributes(h5, "/settings", &c->settings);
}

ks_status ks_checkpoint_write(const char *path, const struct ks_checkpoint *c, bool f32)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    assert(c->critic.text && c->critic.w && c->input && c->target);
    assert(c->loss_rows >= 1 && c->loss_rows <= c->rows);
    KS_TRY(ks_h5_create(path, "kappascope-checkpoint", c->weight ? 2 : 1, &h5));
    write_all(h5, c, f32);
    return ks_h5_commit(h5);
}

void ks_checkpoint_free(struct ks_checkpoint *c)
{
    if (!c)
        return;
    ks_networks_clear(&c->critic);
    ks_networks_clear(&c->target_critic);
    ks_networks_clear(&c->actor);
    free(c->input);
    free(c->target);
    free(c->weight);
    free(c->target_raw);
    free(c->adam_m);
    free(c->adam_v);
    ks_references_clear(&c->references);
    ks_attributes_clear(&c->attributes);
    ks_attributes_clear(&c->metrics);
    ks_attributes_clear(&c->settings);
    free(c);
}
