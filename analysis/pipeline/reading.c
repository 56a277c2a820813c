/* Reads a checkpoint's file: refuses weights of other programs, compares the reference results of
 * the program that wrote it, and chooses the targets.
 */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "io/reference.h"

/* --- weights of other programs --- */

#define IMPORT "by 'kappascope import' (see kappascope import --help)"
#define WEIGHTS                                                                                    \
    "expected a checkpoint, found weights of another program: make a checkpoint of them " IMPORT
#define PICKLE                                                                                     \
    "expected a checkpoint, found a Python pickle: save its arrays as .safetensors or .npz, and "  \
    "make a checkpoint of them " IMPORT

ks_status ks_foreign_check(const char *path)
{
    static const struct {
        const char *ending, *message;
    } foreign[] = {{".safetensors", WEIGHTS}, {".npz", WEIGHTS}, {".msgpack", WEIGHTS},
                   {".pt", WEIGHTS},          {".pth", WEIGHTS}, {".pkl", PICKLE},
                   {".ckpt", PICKLE}};
    bool is_h5;

    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (ks_path_ends(path, foreign[i].ending)) {
            KS_TRY(ks_h5_recognize(path, &is_h5));
            return is_h5 ? KS_OK : ks_fail(KS_FORMAT, "%s: %s", path, foreign[i].message);
        }
    return KS_OK;
}

/* --- reference results --- */

/* An allocation that fails does not know for which file it is. */
static ks_status name_memory(const struct ks_pipeline *p, ks_status status)
{
    return status == KS_MEMORY ? ks_pipeline_name(p, status) : status;
}

/* Compares what the file holds for the minibatches to be analyzed, and frees it. */
static ks_status check_reference(struct ks_pipeline *p)
{
    struct ks_references *references = &p->checkpoint->references;
    const size_t before = ks_alloc_total();

    if (!ks_references_exist(references)) {
        if (!p->quiet && !p->says_references)
            ks_say("%s: nothing was compared: the file has no /batch/output, /batch/loss or "
                   "/batch/gradient_norm of the program that made it",
                   p->path);
        return KS_OK;
    }
    KS_TRY(name_memory(p, ks_references_compare(p->checkpoint, p->path, p->minibatches)));
    ks_alloc_freed_since(before);
    ks_references_clear(references);
    return KS_OK;
}

/* --- the file --- */

/* Moves the targets that the options ask for to `target`, and frees the others. */
static ks_status choose_targets(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    struct ks_checkpoint *c = p->checkpoint;

    if (o->rewards == KS_REWARDS_RAW && !c->target_raw)
        return ks_fail(KS_FORMAT,
                       "%s: --rewards raw: expected the dataset /batch/target_raw, found none",
                       p->path);
    p->raw = o->rewards != KS_REWARDS_NORMALIZED && c->target_raw;
    if (p->raw) {
        free(c->target);
        c->target = c->target_raw;
    } else {
        free(c->target_raw);
    }
    c->target_raw = NULL;
    if (o->published && !p->raw && !p->quiet)
        ks_say("%s: --compat xqc: the checkpoint has no targets from raw rewards "
               "(/batch/target_raw): those from normalized rewards (/batch/target) are used",
               p->path);
    return KS_OK;
}

/* Exchanges a minibatch with the first one. */
static void bring_to_front(struct ks_checkpoint *c, size_t minibatch)
{
    struct ks_checkpoint_array list[KS_CHECKPOINT_ARRAYS];

    ks_checkpoint_arrays(c, list);
    for (const struct ks_checkpoint_array *a = list; a < list + KS_CHECKPOINT_ARRAYS; a++)
        for (size_t i = 0; *a->at && a->of_minibatches && i < a->size; i++) {
            double *one = *a->at + minibatch * a->size + i, first = (*a->at)[i];

            (*a->at)[i] = *one;
            *one = first;
        }
}

/* Refuses what does not fit into --memory, by its shapes. */
static ks_status check_memory(struct ks_pipeline *p, struct ks_h5 *h5)
{
    const struct ks_spectrum_options *o = p->options;
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *shapes = NULL;
    struct ks_problem *q = &p->problem;
    double bytes;

    KS_TRY(name_memory(p, ks_checkpoint_shapes(h5, &bytes, &shapes)));
    q->minibatches = o->batch > 0                                         ? 1
                     : o->batches > 0 && o->batches < shapes->minibatches ? o->batches
                                                                          : shapes->minibatches;
    if (p->factors_file) /* if it fails, a checkpoint that is too large is refused first */
        (void)ks_vectors_read_open(p->factors_file, ks_networks_parameters(&shapes->critic),
                                   &p->budget.vectors, NULL);
    p->budget.image = h5->image_size;
    KS_TRY(ks_budget_check(p, shapes, bytes));
    return KS_OK;
}

static ks_status read_arrays(struct ks_pipeline *p, struct ks_h5 *h5)
{
    /* a file that the caller opened stays in memory */
    p->allocated_before = ks_alloc_total() - (p->file ? h5->image_size : 0);
    KS_TRY(check_memory(p, h5));
    KS_TRY(name_memory(p, ks_checkpoint_read_loss(h5, &p->checkpoint)));
    return ks_h5_sha256(h5, p->digest);
}

static ks_status read_files(struct ks_pipeline *p)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *own = NULL;
    struct ks_h5 *h5 = p->file;

    KS_TRY(ks_foreign_check(p->path));
    if (!h5) {
        KS_TRY(ks_h5_open(p->path, "kappascope-checkpoint", &own));
        h5 = own;
    }
    if (p->factors)
        KS_TRY(ks_h5_open(p->factors, "kappascope-vector", &p->factors_file));
    KS_TRY(read_arrays(p, h5));
    return KS_OK;
}

ks_status ks_pipeline_open(struct ks_pipeline *p)
{
    const size_t batches = p->options->batches, batch = p->options->batch;

    KS_TRY(read_files(p));
    p->minibatches = batches > 0 ? batches : p->checkpoint->minibatches;
    if (p->minibatches > p->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", p->path,
                       p->checkpoint->minibatches, batches);
    if (batch > p->checkpoint->minibatches)
        return ks_fail(KS_USAGE, "%s: --batch: expected 0 to %zu, found %zu", p->path,
                       p->checkpoint->minibatches - 1, batch - 1);
    KS_TRY(check_reference(p));
    KS_TRY(choose_targets(p));
    if (batch > 0) {
        bring_to_front(p->checkpoint, batch - 1);
        p->minibatches = 1;
    }
    p->problem.minibatches = p->minibatches;
    return KS_OK;
}
