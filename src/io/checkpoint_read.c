/* Reading a checkpoint: everything in it is checked before it is used. */
#include "io/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "io/h5.h"
#include "io/known.h"
#include "io/networks.h"

enum { MAX_SIDE = 1 << 30, WHERE = 512 }; /* rows or columns of a minibatch: BLAS sizes are int */
static const double TARGET_SUM = 1e-3;    /* allowed deviation of a distribution's sum from 1 */

/* The root attributes that the format defines; others are ignored. */
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
    {"resumed_any", KS_ATTRIBUTE_INTEGER},
};

static ks_status read_attributes(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct ks_attribute one;
        bool found;

        KS_TRY(ks_h5_has_attribute(h5, "/", known[i].name, &found));
        if (!found)
            continue;
        KS_TRY(ks_h5_read_attribute(h5, "/", known[i].name, known[i].type, &one));
        KS_TRY(ks_attribute_add(&c->attributes, &one));
    }
    return KS_OK;
}

/* Reads the inputs' shape and the critic, whose width is that of the inputs. */
static ks_status read_critic(const struct ks_h5 *h5, struct ks_checkpoint *c,
                             struct ks_h5_shape *input)
{
    KS_TRY(ks_h5_shape(h5, "/batch/input", input));
    if (input->n_dims != 3)
        return ks_fail(KS_FORMAT, "%s: /batch/input: expected 3 dimensions [N, R, D], found %zu",
                       h5->path, input->n_dims);
    for (size_t i = 0; i < input->n_dims; i++)
        if (input->dims[i] == 0)
            return ks_fail(KS_FORMAT,
                           "%s: /batch/input: expected at least one minibatch, one row "
                           "and one column, found [%zu, %zu, %zu]",
                           h5->path, input->dims[0], input->dims[1], input->dims[2]);
    if (input->dims[1] > MAX_SIDE || input->dims[2] > MAX_SIDE)
        return ks_fail(
            KS_FORMAT,
            "%s: /batch/input: expected at most %d rows and columns per minibatch, found "
            "[%zu, %zu, %zu]",
            h5->path, MAX_SIDE, input->dims[0], input->dims[1], input->dims[2]);
    KS_TRY(ks_h5_expect_reals(h5, "/batch/input", input));
    KS_TRY(ks_networks_read(
        h5, &(struct ks_networks_group){.name = "/critic", .in = input->dims[2]}, &c->critic));
    return ks_known_critic(h5, &c->critic);
}

static ks_status wrong_target(const struct ks_h5 *h5, const char *name,
                              const struct ks_checkpoint *c, const struct ks_h5_shape *found)
{
    size_t k = c->critic.arch->loss.targets;
    char text[KS_H5_SHAPE_TEXT];

    ks_h5_print_shape(found, text);
    return ks_fail(KS_FORMAT,
                   "%s: %s: expected [N, B, T]%s, or [N, B, E, T] with the targets of each critic, "
                   "where N = %zu minibatches, B = 1 to %zu rows, E = %zu critics and T = %zu "
                   "targets of a row, found %s",
                   h5->path, name, k == 1 ? " or [N, B]" : "", c->minibatches, c->rows,
                   c->critic.ensemble, k, text);
}

/* [N, B, T], [N, B, E, T], or [N, B] where T = 1; 1 <= B <= R. */
static ks_status check_target_shape(const struct ks_h5 *h5, const char *name,
                                    const struct ks_checkpoint *c, const struct ks_h5_shape *target)
{
    size_t k = c->critic.arch->loss.targets, n_dims = target->n_dims;
    struct ks_h5_shape expected = {.n_dims = n_dims, .dims = {c->minibatches, 0, k}};

    if (n_dims < 2 ||
        (n_dims == 4 && (target->dims[2] != c->critic.ensemble || target->dims[3] != k)))
        return wrong_target(h5, name, c, target);
    if (n_dims == 2 && k > 1)
        expected.n_dims = 3;
    if (n_dims == 4)
        expected = (struct ks_h5_shape){4, {c->minibatches, 0, c->critic.ensemble, k}};
    expected.dims[1] = target->dims[1];
    if (target->dims[1] == 0 || target->dims[1] > c->rows)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected 1 to %zu rows per minibatch, as many as "
                       "/batch/input has, found %zu",
                       h5->path, name, c->rows, target->dims[1]);
    return ks_h5_expect_reals(h5, name, &expected);
}

/* The targets of a row must be a distribution, up to rounding. `where` names the row. */
static ks_status check_distribution(size_t k, const double *t, const char *where)
{
    double sum = 0;

    for (size_t j = 0; j < k; j++) {
        if (t[j] < 0)
            return ks_fail(KS_FORMAT, "%s: expected probabilities, found %g", where, t[j]);
        sum += t[j];
    }
    if (!(fabs(sum - 1) <= TARGET_SUM))
        return ks_fail(KS_FORMAT, "%s: expected the sum 1 within %g, found %.9g", where, TARGET_SUM,
                       sum);
    return KS_OK;
}

/* "PATH: NAME: row 2 of minibatch 1, critic 1" */
static void name_row(const struct ks_checkpoint *c, const char *path, const char *name, size_t row,
                     char where[WHERE])
{
    size_t critics = c->targets_differ ? c->critic.ensemble : 1, pair = row / c->loss_rows;
    char critic[32] = "";

    if (c->targets_differ)
        snprintf(critic, sizeof critic, ", critic %zu", pair % critics);
    snprintf(where, WHERE, "%s: %s: row %zu of minibatch %zu%s", path, name, row % c->loss_rows,
             pair / critics, critic);
}

/* Targets of some losses, and of some heads, are distributions. */
ks_status ks_checkpoint_check_targets(const struct ks_checkpoint *c, const char *path,
                                      const char *name, const double *target)
{
    const struct ks_loss *loss = &c->critic.arch->loss;
    size_t heads = loss->n_heads > 0 ? loss->n_heads : 1;
    size_t rows = c->minibatches * ks_checkpoint_target_size(c) / loss->targets;
    char where[WHERE];

    for (size_t row = 0; row < rows && target; row++) {
        const double *t = target + row * loss->targets;

        for (size_t h = 0; h < heads; h++) {
            const struct ks_loss *head = loss->n_heads > 0 ? &loss->head[h] : loss;

            if (head->kind->distribution) {
                name_row(c, path, name, row, where);
                KS_TRY(check_distribution(head->targets, t, where));
            }
            t += head->targets;
        }
    }
    return KS_OK;
}

/* [N, B, E, T] to [N, E, B, T]. */
static ks_status sort_by_critic(const struct ks_checkpoint *c, double *target)
{
    size_t k = c->critic.arch->loss.targets, ensemble = c->critic.ensemble;
    size_t size = ks_checkpoint_target_size(c);
    double *copy = NULL;

    if (!c->targets_differ || !target)
        return KS_OK;
    KS_TRY(ks_alloc(size, sizeof *copy, &copy));
    for (size_t n = 0; n < c->minibatches; n++) {
        memcpy(copy, target + n * size, size * sizeof *copy);
        for (size_t i = 0; i < c->loss_rows; i++)
            for (size_t e = 0; e < ensemble; e++)
                memcpy(target + n * size + (e * c->loss_rows + i) * k,
                       copy + (i * ensemble + e) * k, k * sizeof *copy);
    }
    free(copy);
    return KS_OK;
}

/* One dataset of targets, with as many rows as c->loss_rows says. */
static ks_status read_target(const struct ks_h5 *h5, const char *name,
                             const struct ks_checkpoint *c, const struct ks_h5_shape *shape,
                             double **target)
{
    KS_TRY(ks_h5_read_new(h5, name, shape, target));
    KS_TRY(ks_h5_expect_finite(h5, name, c->minibatches * ks_checkpoint_target_size(c), *target));
    KS_TRY(sort_by_critic(c, *target));
    return ks_checkpoint_check_targets(c, h5->path, name, *target);
}

/* The optional targets from raw rewards, in the shape of /batch/target. */
static ks_status read_target_raw(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    static const char name[] = "/batch/target_raw";
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_has(h5, name, &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_shape(h5, name, &shape));
    KS_TRY(check_target_shape(h5, name, c, &shape));
    if (shape.dims[1] != c->loss_rows)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected %zu rows per minibatch, as many as /batch/target has, "
                       "found %zu",
                       h5->path, name, c->loss_rows, shape.dims[1]);
    if ((shape.n_dims == 4) != c->targets_differ)
        return ks_fail(KS_FORMAT, "%s: %s: expected %s critics as in /batch/target, found %s",
                       h5->path, name,
                       c->targets_differ ? "targets of each of the" : "the same targets for all",
                       c->targets_differ ? "the same for all" : "those of each");
    return read_target(h5, name, c, &shape, &c->target_raw);
}

/* Reads the shape of /batch/target; a loss that compares each output with each target has as many
 * as the file has. */
static ks_status read_target_shape(const struct ks_h5 *h5, struct ks_checkpoint *c,
                                   struct ks_h5_shape *target)
{
    struct ks_loss *loss = &c->critic.arch->loss;
    size_t last;

    KS_TRY(ks_h5_shape(h5, "/batch/target", target));
    last = target->n_dims > 2 ? target->dims[target->n_dims - 1] : loss->targets;
    if (loss->kind->any_targets && last > 0 && last <= MAX_SIDE)
        loss->targets = last;
    KS_TRY(check_target_shape(h5, "/batch/target", c, target));
    c->loss_rows = target->dims[1];
    c->targets_differ = target->n_dims == 4;
    return KS_OK;
}

ks_status ks_checkpoint_check_weights(const struct ks_checkpoint *c, const char *path,
                                      const char *name)
{
    for (size_t i = 0; c->weight && i < c->minibatches * c->loss_rows; i++)
        if (c->weight[i] < 0)
            return ks_fail(KS_FORMAT,
                           "%s: %s: row %zu of minibatch %zu: expected a weight of at least 0, "
                           "found %g",
                           path, name, i % c->loss_rows, i / c->loss_rows, c->weight[i]);
    return KS_OK;
}

/* The optional weights of the rows. A reader of version 1 would ignore them. */
static ks_status read_weight(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    static const char name[] = "/batch/weight";
    const struct ks_h5_shape shape = {2, {c->minibatches, c->loss_rows}};
    int64_t version;
    bool found;

    KS_TRY(ks_h5_has(h5, name, &found));
    if (!found)
        return KS_OK;
    KS_TRY(ks_h5_read_integer(h5, "/", "version", 1, &version));
    if (version < 2)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected the attribute version 2 of a file with weights, "
                       "found %lld",
                       h5->path, name, (long long)version);
    KS_TRY(ks_h5_expect_reals(h5, name, &shape));
    KS_TRY(ks_h5_read_new(h5, name, &shape, &c->weight));
    KS_TRY(ks_h5_expect_finite(h5, name, c->minibatches * c->loss_rows, c->weight));
    return ks_checkpoint_check_weights(c, h5->path, name);
}

static ks_status read_batch(const struct ks_h5 *h5, struct ks_checkpoint *c,
                            const struct ks_h5_shape *input)
{
    struct ks_h5_shape target;

    c->minibatches = input->dims[0];
    c->rows = input->dims[1];
    KS_TRY(read_target_shape(h5, c, &target));
    KS_TRY(ks_h5_read_new(h5, "/batch/input", input, &c->input));
    KS_TRY(ks_h5_expect_finite(h5, "/batch/input", c->minibatches * c->rows * input->dims[2],
                               c->input));
    KS_TRY(read_target(h5, "/batch/target", c, &target, &c->target));
    KS_TRY(read_weight(h5, c));
    KS_TRY(read_target_raw(h5, c));
    KS_TRY(ks_proofs_read(h5, c));
    return ks_known_batch(h5);
}

/* Adam's second moment is a mean of squares. */
ks_status ks_checkpoint_check_squares(const struct ks_checkpoint *c, const char *path,
                                      const char *name)
{
    for (size_t i = 0; c->adam_v && i < ks_networks_parameters(&c->critic); i++)
        if (c->adam_v[i] < 0)
            return ks_fail(KS_FORMAT,
                           "%s: %s: expected means of squares, found %g in "
                           "critic %zu",
                           path, name, c->adam_v[i], i / c->critic.arch->parameters);
    return KS_OK;
}

/* Reads an attribute of /optimizer in [0, high); *value is unchanged if it is missing. */
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

static ks_status read_optimizer(const struct ks_h5 *h5, bool all, struct ks_checkpoint *c)
{
    static const char *const known_attributes[] = {"step", "beta1", "beta2", "eps", NULL};
    bool group, m, v;

    c->adam = KS_ADAM_DEFAULTS;
    KS_TRY(ks_h5_has(h5, "/optimizer", &group));
    if (group)
        KS_TRY(ks_known_attributes(h5, "/optimizer", known_attributes));
    KS_TRY(ks_h5_has(h5, "/optimizer/m", &m));
    KS_TRY(ks_h5_has(h5, "/optimizer/v", &v));
    if (!m && !v)
        return KS_OK;
    KS_TRY(ks_h5_read_integer(h5, "/optimizer", "step", 0, &c->adam_step));
    KS_TRY(read_constant(h5, "beta1", 1, &c->adam.beta1));
    KS_TRY(read_constant(h5, "beta2", 1, &c->adam.beta2));
    KS_TRY(read_constant(h5, "eps", INFINITY, &c->adam.eps));
    if (m && all)
        KS_TRY(ks_parameters_read(h5, "/optimizer/m", &c->critic, &c->adam_m));
    if (!v)
        return KS_OK;
    KS_TRY(ks_parameters_read(h5, "/optimizer/v", &c->critic, &c->adam_v));
    return ks_checkpoint_check_squares(c, h5->path, "/optimizer/v");
}

/* The number of actions of an actor's description: half the outputs of the last dense layer before
 * the policy. 0 if there is none; the parser reports such an error. */
static size_t count_actions(const char *text)
{
    enum { MOST = 1 << 20 };
    struct ks_line line;
    size_t outputs = 0;

    for (const char *next = text; next; next = strchr(next, '\n')) {
        next += *next == '\n';
        if (ks_line_split(&line, "", 0, next) != KS_OK || line.n_words == 0)
            continue;
        if (strcmp(line.word[0], "policy") == 0)
            return outputs / 2;
        if (strcmp(line.word[0], "dense") == 0)
            ks_line_argument_size(&line, "width", 1, MOST, &outputs);
    }
    return 0;
}

/* The actor's input is the observation. Its width is the attribute `in`, or if that is missing the
 * critic's width minus the number of actions. */
static ks_status actor_width(const struct ks_h5 *h5, size_t critic_in, size_t *in)
{
    char *text = NULL;
    size_t actions;
    int64_t stored;
    bool found;

    KS_TRY(ks_h5_has_attribute(h5, "/actor", "in", &found));
    if (found) {
        KS_TRY(ks_h5_read_integer(h5, "/actor", "in", 1, &stored));
        *in = (size_t)stored;
        return KS_OK;
    }
    KS_TRY(ks_h5_read_string(h5, "/actor", "arch", &text));
    actions = count_actions(text);
    free(text);
    if (actions >= critic_in)
        return ks_fail(KS_FORMAT,
                       "%s: /actor: expected fewer actions than the critic has inputs "
                       "(%zu), found %zu",
                       h5->path, critic_in, actions);
    *in = critic_in - actions;
    return KS_OK;
}

static ks_status read_actor(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    struct ks_networks_group actor = {.name = "/actor", .actor = true};

    KS_TRY(actor_width(h5, c->critic.arch->in, &actor.in));
    return ks_networks_read(h5, &actor, &c->actor);
}

/* A group that holds only attributes. */
static ks_status read_list(const struct ks_h5 *h5, const char *group,
                           struct ks_attributes *attributes)
{
    bool found;

    KS_TRY(ks_h5_has(h5, group, &found));
    return found ? ks_h5_read_attributes(h5, group, attributes) : KS_OK;
}

/* The groups that the training engine adds and the loss does not depend on. */
static ks_status read_engine_groups(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    const struct ks_networks_group target_critic = {
        .name = "/target", .in = c->critic.arch->in, .like = &c->critic};
    bool target, actor;

    KS_TRY(ks_h5_has(h5, "/target", &target));
    if (target)
        KS_TRY(ks_networks_read(h5, &target_critic, &c->target_critic));
    KS_TRY(ks_h5_has(h5, "/actor", &actor));
    if (actor)
        KS_TRY(read_actor(h5, c));
    KS_TRY(read_list(h5, "/metrics", &c->metrics));
    return read_list(h5, "/settings", &c->settings);
}

static ks_status read_groups(const struct ks_h5 *h5, bool all, struct ks_checkpoint *c)
{
    struct ks_h5_shape input;

    KS_TRY(read_attributes(h5, c));
    KS_TRY(read_critic(h5, c, &input));
    KS_TRY(read_batch(h5, c, &input));
    KS_TRY(read_optimizer(h5, all, c));
    return all ? read_engine_groups(h5, c) : KS_OK;
}

/* `claimed` as in struct ks_h5; without `all`, what ks_checkpoint_read_loss reads. */
static ks_status read_file(const char *path, bool all, double *claimed, struct ks_checkpoint **out)
{
    ks_status status = KS_OK;
    struct ks_checkpoint *c = NULL;
    struct ks_h5 *h5 = NULL;

    *out = NULL;
    KS_GO(ks_h5_open(path, "kappascope-checkpoint", &h5));
    h5->claimed = claimed;
    KS_GO(ks_alloc(1, sizeof *c, &c));
    KS_GO(read_groups(h5, all, c));
    *out = c, c = NULL;
done:
    ks_checkpoint_free(c);
    ks_h5_close(h5);
    return status;
}

ks_status ks_checkpoint_read(const char *path, struct ks_checkpoint **out)
{
    return read_file(path, true, NULL, out);
}

ks_status ks_checkpoint_read_loss(const char *path, struct ks_checkpoint **out)
{
    return read_file(path, false, NULL, out);
}

ks_status ks_checkpoint_measure(const char *path, double *bytes)
{
    struct ks_checkpoint *c = NULL;
    ks_status status;

    *bytes = 0;
    status = read_file(path, false, bytes, &c);
    ks_checkpoint_free(c);
    return status;
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
    ks_proofs_clear(&c->proofs);
    ks_attributes_clear(&c->attributes);
    ks_attributes_clear(&c->metrics);
    ks_attributes_clear(&c->settings);
    free(c);
}
