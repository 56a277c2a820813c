/* The group /batch of a checkpoint: minibatches, targets, weights of rows, reference results. */
#include "io/checkpoint_groups.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

/* All that the group may contain. */
static const char *const objects[] = {"input",  "target", "target_raw",    "weight",
                                      "output", "loss",   "gradient_norm", NULL};
enum { WHERE = 512 };                  /* bytes of the words that name a row */
static const double TARGET_SUM = 1e-3; /* how far the sum of a distribution may be from 1 */

ks_status ks_checkpoint_input_shape(const struct ks_h5 *h5, struct ks_h5_shape *input)
{
    static const char name[] = "/batch/input";
    char text[KS_H5_SHAPE_TEXT];
    bool empty = false;

    KS_TRY(ks_h5_shape(h5, name, input));
    ks_h5_print_shape(input, text);
    if (input->n_dims != 3)
        return ks_fail(KS_FORMAT, "%s: %s: expected 3 dimensions [N, R, D], found %s", h5->path,
                       name, text);
    for (size_t i = 0; i < input->n_dims; i++)
        empty = empty || input->dims[i] == 0;
    if (empty)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected at least one minibatch, one row and one column, found %s",
                       h5->path, name, text);
    if (input->dims[1] > KS_CHECKPOINT_SIDE || input->dims[2] > KS_CHECKPOINT_SIDE)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected at most %d rows and columns per minibatch, found %s",
                       h5->path, name, KS_CHECKPOINT_SIDE, text);
    return ks_h5_expect_reals(h5, name, input);
}

/* --- targets --- */

static ks_status wrong_target(const struct ks_h5 *h5, const char *name,
                              const struct ks_checkpoint *c, const struct ks_h5_shape *found)
{
    const size_t targets = c->critic.arch->loss.targets;
    char text[KS_H5_SHAPE_TEXT];

    ks_h5_print_shape(found, text);
    return ks_fail(KS_FORMAT,
                   "%s: %s: expected [N, B, T]%s, or [N, B, E, T] with the targets of each critic, "
                   "where N = %zu minibatches, B = 1 to %zu rows, E = %zu critics and T = %zu "
                   "targets of a row, found %s",
                   h5->path, name, targets == 1 ? " or [N, B]" : "", c->minibatches, c->rows,
                   c->critic.ensemble, targets, text);
}

/* The shape must be [N, B, T] or [N, B, E, T], or [N, B] where T = 1, with 1 <= B <= R. */
static ks_status check_target_shape(const struct ks_h5 *h5, const char *name,
                                    const struct ks_checkpoint *c, const struct ks_h5_shape *target)
{
    const size_t targets = c->critic.arch->loss.targets, critics = c->critic.ensemble;
    const bool each = target->n_dims == 4;
    struct ks_h5_shape expected = {.n_dims = 3, .dims = {c->minibatches, target->dims[1], targets}};

    if (target->n_dims < 2 || (each && (target->dims[2] != critics || target->dims[3] != targets)))
        return wrong_target(h5, name, c, target);
    if (target->dims[1] == 0 || target->dims[1] > c->rows)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected 1 to %zu rows per minibatch, because /batch/input has "
                       "%zu, found %zu",
                       h5->path, name, c->rows, c->rows, target->dims[1]);
    if (each)
        expected = (struct ks_h5_shape){
            .n_dims = 4, .dims = {c->minibatches, target->dims[1], critics, targets}};
    else if (target->n_dims == 2 && targets == 1)
        expected.n_dims = 2;
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

/* Prints "PATH: NAME: row 2 of minibatch 1, critic 1". `row` counts through the whole array. */
static void name_row(const struct ks_checkpoint *c, const char *path, const char *name, size_t row,
                     char where[WHERE])
{
    const size_t critics = c->targets_differ ? c->critic.ensemble : 1, pair = row / c->loss_rows;
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
    const struct KS(loss) *loss = &c->critic.arch->loss;
    const size_t heads = loss->n_heads > 0 ? loss->n_heads : 1;
    const size_t rows = c->minibatches * ks_checkpoint_target_size(c) / loss->targets;
    char where[WHERE];

    for (size_t row = 0; row < rows && target; row++) {
        const double *t = target + row * loss->targets;

        for (size_t h = 0; h < heads; h++) {
            const struct KS(loss) *head = loss->n_heads > 0 ? &loss->head[h] : loss;

            if (head->kind->distribution) {
                name_row(c, path, name, row, where);
                KS_TRY(check_distribution(head->targets, t, where));
            }
            t += head->targets;
        }
    }
    return KS_OK;
}

/* Copies targets that differ between critics: [N, E, B, T] of the memory to [N, B, E, T] of a file,
 * or back. The caller frees *to. */
static ks_status reorder(const struct ks_checkpoint *c, bool to_file, const double *from,
                         double **to)
{
    const size_t targets = c->critic.arch->loss.targets, critics = c->critic.ensemble;
    const size_t rows = c->loss_rows;

    KS_TRY(ks_alloc(c->minibatches * ks_checkpoint_target_size(c), sizeof **to, to));
    for (size_t n = 0; n < c->minibatches; n++)
        for (size_t i = 0; i < rows; i++)
            for (size_t e = 0; e < critics; e++) {
                const size_t memory = ((n * critics + e) * rows + i) * targets;
                const size_t file = ((n * rows + i) * critics + e) * targets;

                memcpy(*to + (to_file ? file : memory), from + (to_file ? memory : file),
                       targets * sizeof **to);
            }
    return KS_OK;
}

/* Reads one dataset of targets, whose shape has been checked. */
static ks_status read_target(const struct ks_h5 *h5, const char *name,
                             const struct ks_checkpoint *c, const struct ks_h5_shape *shape,
                             double **target)
{
    KS_OWNED double *stored = NULL;

    KS_TRY(ks_h5_read_finite(h5, name, shape, &stored));
    if (c->targets_differ && h5->declared) /* at most both orders are in memory */
        *h5->declared += (double)c->minibatches * (double)ks_checkpoint_target_size(c) *
                         sizeof *stored;
    if (c->targets_differ && stored)
        KS_TRY(reorder(c, false, stored, target));
    else
        *target = stored, stored = NULL;
    return ks_checkpoint_check_targets(c, h5->path, name, *target);
}

/* Reads the shape of /batch/target, which says how many rows have a loss. A loss that compares each
 * output with each target takes as many targets of a row as the file has. */
static ks_status read_target_shape(const struct ks_h5 *h5, struct ks_checkpoint *c,
                                   struct ks_h5_shape *target)
{
    static const char name[] = "/batch/target";
    struct KS(loss) *loss = &c->critic.arch->loss;
    size_t last;

    KS_TRY(ks_h5_shape(h5, name, target));
    last = target->n_dims > 2 ? target->dims[target->n_dims - 1] : loss->targets;
    if (loss->kind->any_targets && last > 0 && last <= KS_CHECKPOINT_SIDE)
        loss->targets = last;
    KS_TRY(check_target_shape(h5, name, c, target));
    c->loss_rows = target->dims[1];
    c->targets_differ = target->n_dims == 4;
    return KS_OK;
}

/* Reads the optional targets from raw rewards. They have the rows of /batch/target, and differ
 * between critics if those do. */
static ks_status read_target_raw(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    static const char name[] = "/batch/target_raw", ALL[] = "one set of targets for all critics",
                      EACH[] = "targets of each critic";
    struct ks_h5_shape shape;
    bool found;

    KS_TRY(ks_h5_find_shape(h5, name, &found, &shape));
    if (!found)
        return KS_OK;
    KS_TRY(check_target_shape(h5, name, c, &shape));
    if (shape.dims[1] != c->loss_rows)
        return ks_fail(KS_FORMAT,
                       "%s: %s: expected %zu rows per minibatch, as many as /batch/target has, "
                       "found %zu",
                       h5->path, name, c->loss_rows, shape.dims[1]);
    if ((shape.n_dims == 4) != c->targets_differ)
        return ks_fail(KS_FORMAT, "%s: %s: expected %s, as in /batch/target, found %s", h5->path,
                       name, c->targets_differ ? EACH : ALL, c->targets_differ ? ALL : EACH);
    return read_target(h5, name, c, &shape, &c->target_raw);
}

/* --- weights of rows --- */

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

/* Reads the optional weights of the rows. The file must have version 2, because a reader that knows
 * only version 1 would ignore the weights. */
static ks_status read_weight(const struct ks_h5 *h5, struct ks_checkpoint *c)
{
    static const char name[] = "/batch/weight";
    const struct ks_h5_shape shape = {.n_dims = 2, .dims = {c->minibatches, c->loss_rows}};
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
    KS_TRY(ks_h5_read_finite(h5, name, &shape, &c->weight));
    return ks_checkpoint_check_weights(c, h5->path, name);
}

ks_status ks_checkpoint_read_batch(const struct ks_h5 *h5, const struct ks_h5_shape *input,
                                   struct ks_checkpoint *c)
{
    struct ks_h5_shape target;

    c->minibatches = input->dims[0];
    c->rows = input->dims[1];
    KS_TRY(read_target_shape(h5, c, &target));
    KS_TRY(ks_h5_read_finite(h5, "/batch/input", input, &c->input));
    KS_TRY(read_target(h5, "/batch/target", c, &target, &c->target));
    KS_TRY(read_weight(h5, c));
    KS_TRY(read_target_raw(h5, c));
    KS_TRY(ks_references_read(h5, c));
    KS_TRY(ks_h5_expect_known(h5, "/batch", true, (const char *const[]){NULL}, ""));
    return ks_h5_expect_known(h5, "/batch", false, objects, "");
}

static void write_target(struct ks_h5 *h5, const struct ks_checkpoint *c, const char *object,
                         enum ks_h5_type type, const double *target)
{
    const size_t k = c->critic.arch->loss.targets;
    const struct ks_h5_shape same = {.n_dims = 3, .dims = {c->minibatches, c->loss_rows, k}};
    const struct ks_h5_shape each = {.n_dims = 4,
                                     .dims = {c->minibatches, c->loss_rows, c->critic.ensemble, k}};
    KS_OWNED double *sorted = NULL;

    if (!c->targets_differ) {
        ks_h5_write_finite(h5, object, type, &same, target);
        return;
    }
    if (h5->status == KS_OK)
        h5->status = reorder(c, true, target, &sorted);
    if (h5->status == KS_OK)
        ks_h5_write_finite(h5, object, type, &each, sorted);
}

void ks_checkpoint_write_batch(struct ks_h5 *h5, const struct ks_checkpoint *c, bool f32)
{
    const enum ks_h5_type type = f32 ? KS_H5_F32 : KS_H5_F64;
    const struct ks_h5_shape input = {.n_dims = 3,
                                      .dims = {c->minibatches, c->rows, c->critic.arch->in}};
    const struct ks_h5_shape weight = {.n_dims = 2, .dims = {c->minibatches, c->loss_rows}};

    ks_h5_group(h5, "/batch");
    ks_h5_write_finite(h5, "/batch/input", type, &input, c->input);
    write_target(h5, c, "/batch/target", type, c->target);
    if (c->weight)
        ks_h5_write_finite(h5, "/batch/weight", type, &weight, c->weight);
    if (c->target_raw)
        write_target(h5, c, "/batch/target_raw", type, c->target_raw);
    ks_references_write(h5, c);
}

/* --- what belongs to one minibatch --- */

static size_t critic_size(const struct ks_checkpoint *c) /* numbers in the targets of one critic */
{
    return c->loss_rows * c->critic.arch->loss.targets;
}

size_t ks_checkpoint_target_size(const struct ks_checkpoint *c)
{
    return (c->targets_differ ? c->critic.ensemble : 1) * critic_size(c);
}

const double *ks_checkpoint_target(const struct ks_checkpoint *c, size_t critic, size_t n)
{
    return c->target + n * ks_checkpoint_target_size(c) +
           (c->targets_differ ? critic * critic_size(c) : 0);
}

const double *ks_checkpoint_weight(const struct ks_checkpoint *c, size_t n)
{
    return c->weight ? c->weight + n * c->loss_rows : NULL;
}

void ks_checkpoint_arrays(struct ks_checkpoint *c,
                          struct ks_checkpoint_array list[KS_CHECKPOINT_ARRAYS])
{
    struct ks_networks *critic = &c->critic;
    const struct ks_checkpoint_array arrays[KS_CHECKPOINT_ARRAYS] = {
        {&critic->w, ks_networks_parameters(critic), false},
        {&critic->frozen, critic->ensemble * critic->arch->frozen, false},
        {&critic->state, critic->ensemble * critic->arch->states, false},
        {&c->adam_v, ks_networks_parameters(critic), false},
        {&c->input, c->rows * critic->arch->in, true},
        {&c->target, ks_checkpoint_target_size(c), true},
        {&c->weight, c->loss_rows, true}};

    memcpy(list, arrays, sizeof arrays);
}

struct ks_checkpoint ks_checkpoint_minibatch(const struct ks_checkpoint *c, size_t n)
{
    struct ks_checkpoint one = *c;

    one.minibatches = 1;
    if (one.input) { /* else the shapes alone are known */
        one.input += n * c->rows * c->critic.arch->in;
        one.target += n * ks_checkpoint_target_size(c);
    }
    if (one.target_raw)
        one.target_raw += n * ks_checkpoint_target_size(c);
    if (one.weight)
        one.weight += n * c->loss_rows;
    one.references = (struct ks_references){.output = {.value = NULL}};
    return one;
}
