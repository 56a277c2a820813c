#include "spectrum/provenance.h"

#include <stdlib.h>

#include <omp.h>

#include "config.h"
#include "core/blas.h"
#include "core/memory.h"
#include "io/attribute.h"
#include "net/loss.h"
#include "spectrum/measurement.h"
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

static ks_status add_claim(const struct ks_analyzed *analyzed,
                           const struct ks_statistics_terms *statistics, struct ks_spectrum *s)
{
    const struct ks_problem *problem = &analyzed->problem;
    const struct ks_claim_terms terms = {.kind = analyzed->kind,
                                         .critic = problem->critic,
                                         .layer = problem->layer,
                                         .single = analyzed->single,
                                         .minibatches = ks_problem_minibatches(problem),
                                         .normals = analyzed->space->normals,
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

static ks_status add_loss(const struct ks_analyzed *analyzed, struct ks_attributes *list)
{
    const struct ks_problem *problem = &analyzed->problem;

    KS_TRY(ks_attribute_add_string(list, "checkpoint_sha256", analyzed->digest));
    KS_TRY(ks_attribute_add_string(list, "rewards", analyzed->raw ? "raw" : "normalized"));
    KS_TRY(ks_attribute_add_string(list, "batchnorm", batchnorm_of(problem)));
    KS_TRY(ks_attribute_add_number(list, "weight_decay", problem->weight_decay));
    KS_TRY(ks_attribute_add_number(list, "scale", problem->scale));
    KS_TRY(ks_attribute_add_integer(list, "batches", (int64_t)ks_problem_minibatches(problem)));
    return KS_OK;
}

static ks_status add_product(const struct ks_analyzed *analyzed, struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "operator", analyzed->kind->name));
    KS_TRY(ks_attribute_add_string(list, "precision", analyzed->single ? "f32" : "f64"));
    KS_TRY(ks_attribute_add_integer(list, "dimension", (int64_t)analyzed->selection->n));
    KS_TRY(ks_attribute_add_integer(list, "critic", analyzed->problem.critic));
    KS_TRY(ks_attribute_add_integer(list, "layer", analyzed->problem.layer));
    if (analyzed->published)
        KS_TRY(ks_attribute_add_string(list, "compat", "xqc"));
    return KS_OK;
}

static ks_status add_machine(struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "analyzer_version", KS_VERSION));
    KS_TRY(ks_attribute_add_string(list, "blas_version", ks_blas_version()));
    KS_TRY(ks_attribute_add_string(list, "blas_kernel", ks_blas_kernel()));
    return ks_attribute_add_integer(list, "threads", omp_get_max_threads());
}

static ks_status add_machines(const struct ks_analyzed *analyzed, struct ks_attributes *list)
{
    KS_TRY(add_machine(list));
    return ks_attribute_add_integer(list, "processes", analyzed->ranks);
}

static ks_status add_run(const struct ks_measurement *m, struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_integer(list, "probe_seed", (int64_t)m->seed));
    if (m->exact)
        return KS_OK;
    return ks_attribute_add_string(list, "basis_precision", m->single_basis ? "f32" : "f64");
}

ks_status ks_provenance_vectors(const struct ks_analyzed *analyzed, const double *loss,
                                struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "checkpoint", analyzed->path));
    KS_TRY(add_loss(analyzed, list));
    if (loss)
        KS_TRY(ks_attribute_add_number(list, "loss", *loss));
    else
        KS_TRY(add_product(analyzed, list));
    return add_machines(analyzed, list);
}

/* The attributes of a matrix that the caller of the library has. */
static ks_status add_caller(const struct ks_measurement *m, struct ks_attributes *list)
{
    KS_TRY(ks_attribute_add_string(list, "operator", "caller's"));
    KS_TRY(ks_attribute_add_string(list, "precision", "f64"));
    KS_TRY(ks_attribute_add_integer(list, "dimension", (int64_t)m->n));
    KS_TRY(add_run(m, list));
    return add_machine(list);
}

ks_status ks_provenance_spectrum(const struct ks_measurement *m,
                                 const struct ks_statistics_terms *terms)
{
    const struct ks_analyzed *analyzed = m->analyzed;
    struct ks_attributes *list = &m->spectrum->attributes;
    char loss[64];

    if (analyzed->kind)
        KS_TRY(ks_attribute_add_string(list, "checkpoint", analyzed->path));
    KS_TRY(ks_attribute_add_integer(list, "order", (int64_t)m->spectrum->order));
    KS_TRY(ks_attribute_add_integer(list, "probes", (int64_t)m->spectrum->probes));
    if (!analyzed->kind)
        return add_caller(m, list);
    KS_TRY(add_loss(analyzed, list));
    KS_TRY(add_product(analyzed, list));
    KS_TRY(add_run(m, list));
    KS_TRY(add_machines(analyzed, list));
    KS(loss_name)(&analyzed->problem.checkpoint->critic.arch->loss, sizeof loss, loss);
    KS_TRY(ks_attribute_add_string(list, "loss_kind", loss));
    KS_TRY(copy_attributes(&analyzed->problem.checkpoint->attributes, list));
    return add_claim(analyzed, terms, m->spectrum);
}
