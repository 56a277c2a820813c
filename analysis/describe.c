/* The words that go with a spectrum: what was computed, of what, by what. */
#include <stdlib.h>

#include <omp.h>

#include "ks/analysis.h"
#include "ks/attribute.h"
#include "ks/blas.h"
#include "ks/memory.h"
#include "ks/sha256.h"

enum { OWN = 24 }; /* at most, attributes that are added here */

static ks_status copy_attributes(const struct ks_checkpoint *c, struct ks_spectrum *s)
{
    for (size_t i = 0; i < c->n_attributes; i++)
        KS_TRY(ks_attribute_copy(&c->attribute[i], &s->attribute[s->n_attributes++]));
    return KS_OK;
}

ks_status ks_describe(const struct ks_analysis *a, const struct ks_problem *problem,
                      const char *path, size_t dimension, struct ks_spectrum *s)
{
    char digest[KS_SHA256_TEXT];
    size_t *n = &s->n_attributes;
    struct ks_attribute *list;

    KS_TRY(ks_alloc(OWN + problem->checkpoint->n_attributes, sizeof *list, &list));
    s->attribute = list;
    KS_TRY(ks_attribute_add_string(list, n, "checkpoint", path));
    KS_TRY(ks_sha256_file(path, digest));
    KS_TRY(ks_attribute_add_string(list, n, "checkpoint_sha256", digest));
    KS_TRY(ks_attribute_add_string(list, n, "operator", a->kind->name));
    KS_TRY(ks_attribute_add_string(list, n, "batchnorm", problem->evaluation ? "eval" : "train"));
    KS_TRY(ks_attribute_add_string(list, n, "precision", a->single ? "f32" : "f64"));
    ks_attribute_add_integer(list, n, "order", (int64_t)s->order);
    ks_attribute_add_integer(list, n, "probes", (int64_t)s->probes);
    ks_attribute_add_integer(list, n, "probe_seed", (int64_t)a->seed);
    ks_attribute_add_integer(list, n, "dimension", (int64_t)dimension);
    ks_attribute_add_number(list, n, "weight_decay", problem->weight_decay);
    ks_attribute_add_number(list, n, "scale", problem->scale);
    ks_attribute_add_integer(list, n, "batches", (int64_t)problem->minibatches);
    ks_attribute_add_integer(list, n, "critic", -1); /* all of them */
    ks_attribute_add_integer(list, n, "layer", -1);
    if (a->compat)
        KS_TRY(ks_attribute_add_string(list, n, "compat", "xqc"));
    KS_TRY(copy_attributes(problem->checkpoint, s));
    KS_TRY(ks_attribute_add_string(list, n, "analyzer_version", KS_VERSION));
    KS_TRY(ks_attribute_add_string(list, n, "blas_version", ks_blas_version()));
    KS_TRY(ks_attribute_add_string(list, n, "blas_kernel", ks_blas_kernel()));
    ks_attribute_add_integer(list, n, "threads", omp_get_max_threads());
    return KS_OK;
}
