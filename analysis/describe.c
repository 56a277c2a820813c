/* The words that go with a spectrum: what was computed, of what, by what. */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "ks/analysis.h"
#include "ks/attribute.h"
#include "ks/blas.h"
#include "ks/memory.h"
#include "ks/sha256.h"

enum { OWN = 24 }; /* at most, attributes that are added here */

static struct ks_attribute *next(struct ks_spectrum *s, const char *name)
{
    struct ks_attribute *attribute = &s->attribute[s->n_attributes++];

    strncpy(attribute->name, name, sizeof attribute->name - 1);
    return attribute;
}

static ks_status add_string(struct ks_spectrum *s, const char *name, const char *value)
{
    struct ks_attribute *attribute = next(s, name);

    attribute->type = KS_ATTRIBUTE_STRING;
    return ks_copy_string(value, &attribute->string);
}

static void add_integer(struct ks_spectrum *s, const char *name, int64_t value)
{
    struct ks_attribute *attribute = next(s, name);

    attribute->type = KS_ATTRIBUTE_INTEGER;
    attribute->integer = value;
}

static void add_number(struct ks_spectrum *s, const char *name, double value)
{
    struct ks_attribute *attribute = next(s, name);

    attribute->type = KS_ATTRIBUTE_NUMBER;
    attribute->number = value;
}

/* What the training engine says of a checkpoint its spectrum repeats. */
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

    KS_TRY(ks_alloc(OWN + problem->checkpoint->n_attributes, sizeof *s->attribute, &s->attribute));
    KS_TRY(add_string(s, "checkpoint", path));
    KS_TRY(ks_sha256_file(path, digest));
    KS_TRY(add_string(s, "checkpoint_sha256", digest));
    KS_TRY(add_string(s, "operator", a->kind->name));
    KS_TRY(add_string(s, "batchnorm", problem->evaluation ? "eval" : "train"));
    KS_TRY(add_string(s, "precision", a->single ? "f32" : "f64"));
    add_integer(s, "order", (int64_t)s->order);
    add_integer(s, "probes", (int64_t)s->probes);
    add_integer(s, "probe_seed", (int64_t)a->seed);
    add_integer(s, "dimension", (int64_t)dimension);
    add_number(s, "weight_decay", problem->weight_decay);
    add_number(s, "scale", problem->scale);
    add_integer(s, "batches", (int64_t)problem->minibatches);
    add_integer(s, "critic", -1); /* all of them */
    add_integer(s, "layer", -1);
    if (a->compat)
        KS_TRY(add_string(s, "compat", "xqc"));
    KS_TRY(copy_attributes(problem->checkpoint, s));
    KS_TRY(add_string(s, "analyzer_version", KS_VERSION));
    KS_TRY(add_string(s, "blas_version", ks_blas_version()));
    KS_TRY(add_string(s, "blas_kernel", ks_blas_kernel()));
    add_integer(s, "threads", omp_get_max_threads());
    return KS_OK;
}
