/* The analysis of a checkpoint in memory, without running the program: the stages of
 * pipeline/pipeline.c, for tests that need hundreds of analyses. test_golden_claims.c checks
 * that the program gives the same numbers. */
#ifndef KS_TEST_ANALYSES_H
#define KS_TEST_ANALYSES_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/spectrum.h"
#include "lanczos/gradient_start.h"
#include "lanczos/slq.h"
#include "operators.h"
#include "operators/null_basis.h"
#include "operators/null_space.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"

enum { KEPT = 1 << 24 }; /* bytes for the activations that an operator keeps */

struct analysis {
    const struct ks_operator_kind *kind;
    struct ks_problem problem;
    bool single, single_basis; /* products, Lanczos vectors in float32 */
    bool exact, gradient;      /* --exact; --start gradient */
    size_t order, probes;
    uint64_t seed;
    /* The results; analysis_clear frees them. */
    struct ks_selection *selection;
    struct ks_null_space *space;
    struct ks_null null;
    struct ks_null_basis *basis;
    struct ks_certificates certificates;
    struct ks_spectrum *spectrum;
    double exact_error;
    double *start; /* the gradient; NULL if not wanted or zero */
};

static inline ks_status analysis_operator(struct analysis *o, bool single, struct ks_operator **a)
{
    o->problem.kind = o->kind;
    o->problem.selection = o->selection;
    return ks_problem_operator(&o->problem, single, NULL, KEPT, a);
}

static inline ks_status analysis_finished(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(&((struct analysis *)context)->certificates, lanczos);
}

static inline ks_status analysis_check_exact(struct analysis *o, const struct ks_operator *a)
{
    struct ks_operator *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!o->single)
        return KS_OK;
    KS_GO(analysis_operator(o, false, &wide));
    KS_GO(ks_exact_error(a, wide, &o->exact_error));
    KS_GO(ks_null_measure(o->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&o->null, &null);
    KS_GO(ks_null_basis_update(o->space, &o->null, &o->basis));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

static inline ks_status analysis_spectrum(struct analysis *o, const struct ks_operator *a)
{
    struct slq slq = {.order = o->order,
                      .probes = o->probes,
                      .seed = o->seed,
                      .basis_f32 = o->single_basis,
                      .products_f32 = o->single,
                      .on_finished = analysis_finished,
                      .context = o};
    const struct ks_problem *problem = &o->problem;

    if (o->exact) {
        KS_TRY(ks_exact(a, NULL, NULL, o->spectrum));
        return analysis_check_exact(o, a);
    }
    KS_TRY(ks_certificates_new(&(struct ks_certificates_sizes){a->n, a->n, o->probes, o->order,
                                                               KS_STATISTICS_PART, o->basis},
                               &o->certificates));
    if (o->gradient)
        KS_TRY(ks_gradient_start(problem, NULL, &o->start));
    slq.gradient = o->start;
    KS_TRY(slq_run(a, &slq, o->spectrum));
    o->certificates.gradient = o->start;
    return ks_certify(&o->certificates, problem, NULL, KEPT);
}

/* The caller calls analysis_clear, also after a failure. */
static inline ks_status analysis_run(struct analysis *o)
{
    struct ks_operator *a = NULL;
    ks_status status = KS_OK;
    struct ks_statistics_terms terms;

    KS_GO(ks_alloc(1, sizeof *o->spectrum, &o->spectrum));
    KS_GO(ks_selection_new(&o->problem, o->kind->moving, &o->selection));
    KS_GO(ks_null_space_new(&o->problem, o->kind, o->selection, &o->space));
    KS_GO(analysis_operator(o, o->single, &a));
    KS_GO(ks_null_measure(o->space, a, NULL, NULL, &o->null));
    KS_GO(ks_null_basis_update(o->space, &o->null, &o->basis));
    KS_GO(analysis_spectrum(o, a));
    terms = (struct ks_statistics_terms){
        .n = o->selection->n,
        .epsilon = o->single ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = o->single_basis ? FLT_EPSILON : DBL_EPSILON,
        .shift = o->space->shift,
        .null = &o->null,
        .operator_rank = o->kind->operator_rank ? o->kind->operator_rank(&o->problem) : 0,
        .exact_error = o->exact_error,
        .certificates = o->exact ? NULL : &o->certificates};
    KS_GO(ks_statistics(o->spectrum, &terms));
done:
    ks_operator_free(a);
    return status;
}

static inline void analysis_clear(struct analysis *o)
{
    ks_spectrum_free(o->spectrum);
    ks_certificates_clear(&o->certificates);
    ks_null_basis_free(o->basis);
    ks_null_clear(&o->null);
    ks_null_space_free(o->space);
    ks_selection_free(o->selection);
    free(o->start);
    o->spectrum = NULL;
    o->certificates = (struct ks_certificates){.n = 0};
    o->null = (struct ks_null){.dimension = 0};
    o->basis = NULL;
    o->space = NULL;
    o->selection = NULL;
    o->start = NULL;
}

/* The dimension of the known null space; 0 if the float64 products refuted one of its directions.
 */
static inline size_t analysis_null(const struct analysis *o)
{
    return o->basis && !o->certificates.refuted ? o->basis->dimension : 0;
}

/* The matrix [n, n] of the operator in float64 or float32, symmetrized; the caller frees it.
 * *asymmetry: the largest |A_ij - A_ji| before that, which is due to rounding. */
static inline ks_status analysis_matrix(struct analysis *o, bool single, double **matrix,
                                        double *asymmetry)
{
    struct ks_operator *a = NULL;
    double *unit = NULL;
    ks_status status = KS_OK;

    *matrix = NULL;
    *asymmetry = 0;
    KS_GO(analysis_operator(o, single, &a));
    KS_GO(ks_alloc(a->n, sizeof *unit, &unit));
    KS_GO(ks_alloc(a->n * a->n, sizeof **matrix, matrix));
    for (size_t j = 0; j < a->n; j++) {
        unit[j] = 1;
        KS_GO(ks_operator_apply(a, unit, *matrix + j * a->n));
        unit[j] = 0;
    }
    for (size_t j = 0; j < a->n; j++)
        for (size_t i = 0; i < j; i++) {
            double *upper = &(*matrix)[i * a->n + j], *lower = &(*matrix)[j * a->n + i];

            *asymmetry = fmax(*asymmetry, fabs(*upper - *lower));
            *upper = *lower = *upper / 2 + *lower / 2;
        }
done:
    free(unit);
    ks_operator_free(a);
    return status;
}

#endif
