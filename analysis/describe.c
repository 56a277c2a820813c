/* The words that go with a spectrum or vectors: what was computed, of what, by what. */
#include <stdlib.h>

#include <omp.h>

#include "ks/analysis.h"
#include "ks/attribute.h"
#include "ks/blas.h"
#include "ks/claim.h"
#include "ks/memory.h"

enum { OWN = 24 }; /* at most, attributes that are added here */

static ks_status copy_attributes(const struct ks_checkpoint *c, struct ks_attribute *list,
                                 size_t *n)
{
    for (size_t i = 0; i < c->n_attributes; i++)
        KS_TRY(ks_attribute_copy(&c->attribute[i], &list[(*n)++]));
    return KS_OK;
}

/* From what has been described so far, and the figures. */
static ks_status add_claim(struct ks_spectrum *s)
{
    char *claim = NULL;
    ks_status status;

    KS_TRY(ks_claim(s, &claim));
    status = ks_attribute_add_string(s->attribute, &s->n_attributes, "claim", claim);
    free(claim);
    return status;
}

static ks_status add_loss(const struct ks_analysis *a, const struct ks_subject *subject,
                          struct ks_attribute *list, size_t *n)
{
    const struct ks_problem *problem = &subject->problem;

    KS_TRY(ks_attribute_add_string(list, n, "checkpoint_sha256", subject->digest));
    KS_TRY(ks_attribute_add_string(list, n, "batchnorm", problem->evaluation ? "eval" : "train"));
    ks_attribute_add_number(list, n, "weight_decay", problem->weight_decay);
    ks_attribute_add_number(list, n, "scale", problem->scale);
    ks_attribute_add_integer(list, n, "batches",
                             (int64_t)(problem->minibatches + problem->elsewhere));
    if (a->compat)
        KS_TRY(ks_attribute_add_string(list, n, "compat", "xqc"));
    return KS_OK;
}

static ks_status add_product(const struct ks_analysis *a, const struct ks_subject *subject,
                             struct ks_attribute *list, size_t *n)
{
    KS_TRY(ks_attribute_add_string(list, n, "operator", a->kind->name));
    KS_TRY(ks_attribute_add_string(list, n, "precision", a->single ? "f32" : "f64"));
    ks_attribute_add_integer(list, n, "dimension", (int64_t)subject->dimension);
    ks_attribute_add_integer(list, n, "critic", subject->problem.critic);
    ks_attribute_add_integer(list, n, "layer", subject->problem.layer);
    return KS_OK;
}

static ks_status add_machine(const struct ks_subject *subject, struct ks_attribute *list, size_t *n)
{
    KS_TRY(ks_attribute_add_string(list, n, "analyzer_version", KS_VERSION));
    KS_TRY(ks_attribute_add_string(list, n, "blas_version", ks_blas_version()));
    KS_TRY(ks_attribute_add_string(list, n, "blas_kernel", ks_blas_kernel()));
    ks_attribute_add_integer(list, n, "threads", omp_get_max_threads());
    ks_attribute_add_integer(list, n, "processes", subject->processes);
    return KS_OK;
}

/* What the numbers of a step depend on. */
static ks_status add_operator(const struct ks_analysis *a, const struct ks_subject *subject,
                              struct ks_attribute *list, size_t *n)
{
    KS_TRY(add_loss(a, subject, list, n));
    KS_TRY(add_product(a, subject, list, n));
    ks_attribute_add_integer(list, n, "probe_seed", (int64_t)a->seed);
    if (!a->exact)
        KS_TRY(ks_attribute_add_string(list, n, "basis_precision",
                                       subject->budget->single_basis ? "f32" : "f64"));
    return add_machine(subject, list, n);
}

ks_status ks_describe_vectors(const struct ks_analysis *a, const struct ks_subject *subject,
                              const double *loss, struct ks_attribute **list, size_t *n)
{
    KS_TRY(ks_alloc(OWN, sizeof **list, list));
    KS_TRY(ks_attribute_add_string(*list, n, "checkpoint", subject->path));
    KS_TRY(add_loss(a, subject, *list, n));
    if (loss)
        ks_attribute_add_number(*list, n, "loss", *loss);
    else
        KS_TRY(add_product(a, subject, *list, n));
    return add_machine(subject, *list, n);
}

ks_status ks_describe(const struct ks_analysis *a, const struct ks_subject *subject,
                      struct ks_spectrum *s)
{
    const struct ks_checkpoint *c = subject->problem.checkpoint;
    size_t *n = &s->n_attributes;

    KS_TRY(ks_alloc(OWN + c->n_attributes, sizeof *s->attribute, &s->attribute));
    KS_TRY(ks_attribute_add_string(s->attribute, n, "checkpoint", subject->path));
    ks_attribute_add_integer(s->attribute, n, "order", (int64_t)s->order);
    ks_attribute_add_integer(s->attribute, n, "probes", (int64_t)s->probes);
    KS_TRY(add_operator(a, subject, s->attribute, n));
    KS_TRY(copy_attributes(c, s->attribute, n));
    return add_claim(s);
}

/* A number to the last bit, as C writes hexadecimal ones. */
static ks_status add_line(const struct ks_attribute *a, char **text)
{
    char *before = *text;
    ks_status status;

    if (a->type == KS_ATTRIBUTE_STRING)
        status = ks_print_string(text, "%s%s %s\n", before, a->name, a->string);
    else if (a->type == KS_ATTRIBUTE_INTEGER)
        status = ks_print_string(text, "%s%s %lld\n", before, a->name, (long long)a->integer);
    else
        status = ks_print_string(text, "%s%s %a\n", before, a->name, a->number);
    free(before);
    return status;
}

ks_status ks_describe_key(const struct ks_analysis *a, const struct ks_subject *subject, char **key)
{
    ks_status status = KS_OK;
    struct ks_attribute *list = NULL;
    size_t n = 0;

    KS_GO(ks_copy_string("", key));
    KS_GO(ks_alloc(OWN, sizeof *list, &list));
    KS_GO(add_operator(a, subject, list, &n));
    for (size_t i = 0; i < n; i++)
        KS_GO(add_line(&list[i], key));
done:
    ks_attributes_free(list, n);
    if (status != KS_OK) {
        free(*key);
        *key = NULL;
    }
    return status;
}
