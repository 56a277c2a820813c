#include "spectrum/data_error.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <cblas.h>
#include <omp.h>

#include "core/memory.h"
#include "lanczos/jacobi.h"
#include "operators/minibatches.h"
#include "spectrum/measurement.h"

struct looking {
    const struct ks_measurement *m;
    const struct ks_lanczos *l;
    struct ks_minibatches set;
    size_t minibatches;
    const struct ks_tolerance *tolerance[2]; /* of lambda_max, of lambda_min; NULL: none */
    double *theta, *s; /* [steps], [steps, steps]: Ritz values, eigenvectors of the Jacobi matrix */
    double *y;         /* [2, n]: the Ritz vectors of the largest and of the smallest value       */
    double *quotient;  /* [2, minibatches]: y'A_i y / y'y                                         */
    const double **each; /* [threads]: the same vector for all */
};

static void looking_clear(struct looking *k)
{
    ks_minibatches_clear(&k->set);
    free(k->theta);
    free(k->s);
    free(k->y);
    free(k->quotient);
    free(k->each);
}

static ks_status allocate(struct looking *k)
{
    const size_t n = k->m->n, steps = k->l->steps;
    const size_t memory = k->m->spare / (size_t)omp_get_max_threads();

    KS_TRY(ks_alloc(steps, sizeof *k->theta, &k->theta));
    KS_TRY(ks_alloc(steps * steps, sizeof *k->s, &k->s));
    KS_TRY(ks_alloc(2 * n, sizeof *k->y, &k->y));
    KS_TRY(ks_alloc(2 * k->minibatches, sizeof *k->quotient, &k->quotient));
    KS_TRY(ks_minibatches_new(k->m->analyzed, n, k->minibatches, k->m->analyzed->single, memory,
                              &k->set));
    return ks_alloc(k->set.threads, sizeof *k->each, &k->each);
}

/* The quotients of `count` minibatches from `first` on, with the Ritz vector of one end. */
static ks_status multiply(struct looking *k, size_t end, size_t first, size_t count)
{
    const int n = (int)k->m->n;
    const double *y = k->y + end * k->m->n, square = cblas_ddot(n, y, 1, y, 1);

    for (size_t t = 0; t < count; t++)
        k->each[t] = y;
    KS_TRY(ks_minibatches_apply(&k->set, count, k->each));
    for (size_t t = 0; t < count; t++)
        k->quotient[end * k->minibatches + first + t] = (double)k->minibatches *
                                                        cblas_ddot(n, y, 1, k->set.list[t].out, 1) /
                                                        square;
    return KS_OK;
}

/* The standard error of the mean of the quotients. */
static double standard_error(size_t n, const double *quotient)
{
    double mean = 0, square = 0;

    for (size_t i = 0; i < n; i++)
        mean += quotient[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (quotient[i] - mean) * (quotient[i] - mean);
    return sqrt(square / (double)(n - 1) / (double)n);
}

static ks_status form_vectors(struct looking *k)
{
    const size_t steps = k->l->steps;
    const struct ks_jacobi t = {steps, k->l->alpha, k->l->beta};

    KS_TRY(ks_jacobi_vectors(&t, k->theta, k->s));
    ks_lanczos_combine(k->l, steps, k->s + (steps - 1) * steps, k->y);
    ks_lanczos_combine(k->l, steps, k->s, k->y + k->m->n);
    return KS_OK;
}

static ks_status multiply_all(struct looking *k)
{
    const size_t threads = k->set.threads, n = k->minibatches;

    for (size_t first = 0; first < n; first += threads) {
        const size_t count = n - first < threads ? n - first : threads;

        KS_TRY(ks_minibatches_make(&k->set, first, count));
        for (size_t end = 0; end < 2; end++)
            if (k->tolerance[end])
                KS_TRY(multiply(k, end, first, count));
    }
    return KS_OK;
}

static void judge(const struct looking *k, struct ks_data_error *error)
{
    const size_t steps = k->l->steps, n = k->minibatches;
    const double size = fmax(fabs(k->theta[0]), fabs(k->theta[steps - 1]));

    *error = (struct ks_data_error){.steps = steps};
    for (size_t end = 0; end < 2; end++)
        if (k->tolerance[end]) {
            double se = standard_error(n, k->quotient + end * n);

            error->products++;
            if (size > 0)
                error->excess = fmax(error->excess, se / size / k->tolerance[end]->most);
        }
}

ks_status ks_data_error(const struct ks_measurement *m, const struct ks_lanczos *lanczos,
                        struct ks_data_error *error)
{
    struct looking k = {.m = m, .l = lanczos, .minibatches = m->analyzed->problem.minibatches};
    ks_status status = KS_OK;

    assert(k.minibatches > 1);
    for (size_t i = 0; i < m->tolerances->n; i++) {
        int end = ks_tolerance_end(&m->tolerances->list[i]);

        if (end != 0)
            k.tolerance[end < 0] = &m->tolerances->list[i];
    }
    KS_GO(allocate(&k));
    KS_GO(form_vectors(&k));
    KS_GO(multiply_all(&k));
    judge(&k, error);
done:
    looking_clear(&k);
    return status;
}
