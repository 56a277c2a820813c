#include "program/provenance.h"

#include <stdlib.h>

#include <omp.h>

#include "core/blas.h"
#include "core/memory.h"
#include "io/attribute.h"
#include "program/budget.h"
#include "statistics/claim.h"

static ks_status copy_attributes(const struct ks_attributes *from, struct ks_attributes *to)
{
    for (size_t i = 0; i < from->n; i++) {
        struct ks_attribute copy;

        KS_TRY(ks_attribute_copy(&from->list[i], &copy));
        KS_TRY(ks_attribute_add(to, &copy));
    }
    return KS_OK;
}

static ks_status add_claim(const struct ks_options *o, const struct ks_subject *subject,
                           const struct ks_statistics_terms *statistics, struct ks_spectrum *s)
{
    const struct ks_problem *problem = &subject->problem;
    const struct ks_claim_terms terms = {.kind = o->kind,
                                         .critic = problem->critic,
                                         .layer = problem->layer,
                                         .single = o->single,
                                         .minibatches = ks_problem_minibatches(problem),
                                         .normals = subject->normals,
                                         .statistics = statistics};
    char *claim = NULL;
    ks_status status;

    KS_TRY(ks_claim(s, &terms, &claim));
    status = ks_attribute_add_string(&s->attributes, "claim", claim);
    free(claim);
    return status;
}

/* As --batchnorm has it. */
static const char *batchnorm_of(const struct ks_problem *problem)
{
    return problem->evaluation ? "eval" : problem->loss_rows_only ? "loss" : "train";
}

static ks_status add_loss(const struct ks_subject *subject, struct ks_attributes *list)
{
    const struct ks_problem *problem = &subject->problem;

    KS_TRY(ks_attribute_add_string(list, "checkpoint_sha256", subject->digest));
    KS_TRY(ks_attribute_add_string(list, "rewards", subject->raw ? "raw" : "normalized"));
    KS_TRY(ks_attribute_add_string(list, "batchnorm", batchnorm_of(problem)));
    KS_TRY(ks_attribute_add_number(list, "weight_decay", problem->weight_decay));
    KS_TRY(ks_attribute_add_number(list, "scale", problem->scale));
    KS_TRY(ks_attribute_add_integer(list, "batches", (int64_t)ks_problem_minibatches(problem)));
    return KS_OK;
}

static ks_status add_product(const struct ks_options *o, const struct ks_subject *subject,
                             struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "operator", o->kind->name));
    KS_TRY(ks_attribute_add_string(list, "precision", o->single ? "f32" : "f64"));
    KS_TRY(ks_attribute_add_integer(list, "dimension", (int64_t)subject->dimension));
    KS_TRY(ks_attribute_add_integer(list, "critic", subject->problem.critic));
    KS_TRY(ks_attribute_add_integer(list, "layer", subject->problem.layer));
    if (o->compat)
        KS_TRY(ks_attribute_add_string(list, "compat", "xqc"));
    return KS_OK;
}

static ks_status add_machine(const struct ks_subject *subject, struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "analyzer_version", KS_VERSION));
    KS_TRY(ks_attribute_add_string(list, "blas_version", ks_blas_version()));
    KS_TRY(ks_attribute_add_string(list, "blas_kernel", ks_blas_kernel()));
    KS_TRY(ks_attribute_add_integer(list, "threads", omp_get_max_threads()));
    KS_TRY(ks_attribute_add_integer(list, "processes", subject->processes));
    return KS_OK;
}

/* What the numbers of a Lanczos step depend on. */
static ks_status add_operator(const struct ks_options *o, const struct ks_subject *subject,
                              struct ks_attributes *list)
{
    KS_TRY(add_loss(subject, list));
    KS_TRY(add_product(o, subject, list));
    KS_TRY(ks_attribute_add_integer(list, "probe_seed", (int64_t)o->seed));
    if (!o->exact)
        KS_TRY(ks_attribute_add_string(list, "basis_precision",
                                       subject->budget->single_basis ? "f32" : "f64"));
    return add_machine(subject, list);
}

ks_status ks_provenance_vectors(const struct ks_options *o, const struct ks_subject *subject,
                                const double *loss, struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "checkpoint", subject->path));
    KS_TRY(add_loss(subject, list));
    if (loss)
        KS_TRY(ks_attribute_add_number(list, "loss", *loss));
    else
        KS_TRY(add_product(o, subject, list));
    return add_machine(subject, list);
}

ks_status ks_provenance_spectrum(const struct ks_options *o, const struct ks_subject *subject,
                                 const struct ks_statistics_terms *terms, struct ks_spectrum *s)
{
    struct ks_attributes *list = &s->attributes;

    KS_TRY(ks_attribute_add_string(list, "checkpoint", subject->path));
    KS_TRY(ks_attribute_add_integer(list, "order", (int64_t)s->order));
    KS_TRY(ks_attribute_add_integer(list, "probes", (int64_t)s->probes));
    KS_TRY(add_operator(o, subject, list));
    KS_TRY(copy_attributes(&subject->problem.checkpoint->attributes, list));
    return add_claim(o, subject, terms, s);
}

/* Appends "NAME VALUE\n"; numbers are hexadecimal (%a), which keeps every bit. */
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

ks_status ks_provenance_fingerprint(const struct ks_options *o, const struct ks_subject *subject,
                                    char **fingerprint)
{
    ks_status status = KS_OK;
    struct ks_attributes list = {.n = 0};

    KS_GO(ks_copy_string("", fingerprint));
    KS_GO(add_operator(o, subject, &list));
    for (size_t i = 0; i < list.n; i++)
        KS_GO(add_line(&list.list[i], fingerprint));
done:
    ks_attributes_clear(&list);
    if (status != KS_OK) {
        free(*fingerprint);
        *fingerprint = NULL;
    }
    return status;
}
