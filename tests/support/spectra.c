#include "spectra.h"

#include <lapacke.h>

#include "core/memory.h"
#include "scratch.h"

ks_status prepared_kind(const struct ks_operator_kind *kind, bool single,
                        const struct ks_problem *problem, struct ks_operator **a)
{
    KS_TRY(ks_kind_new(kind, problem, single, a));
    return ks_operator_prepare(*a, (size_t)1 << 24);
}

ks_status prepared(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                   const struct ks_problem *problem, struct ks_operator **a)
{
    KS_TRY(new (problem, a));
    return ks_operator_prepare(*a, (size_t)1 << 24);
}

RELEASES(free_operator, ks_operator_free)

struct ks_operator *hold_operator(struct ks_operator *a)
{
    return hold_object(a, free_operator);
}

struct ks_operator *operator_of(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                                const struct ks_problem *problem)
{
    struct ks_operator *a;

    assert_ok(prepared(new, problem, &a));
    return hold_operator(a);
}

RELEASES(free_lanczos, ks_lanczos_free)

struct ks_lanczos *lanczos_of(const struct ks_operator *a, size_t order, bool basis_f32)
{
    struct ks_lanczos *l;

    assert_ok(ks_lanczos_new(a, order, basis_f32, &l));
    return hold_object(l, free_lanczos);
}

double *product_of(ks_status (*new)(const struct ks_problem *, struct ks_operator **),
                   const struct ks_problem *problem, const double *v)
{
    struct ks_operator *a;
    double *out;

    assert_ok(prepared(new, problem, &a));
    assert_int_equal(a->n, ks_networks_parameters(&problem->checkpoint->critic));
    out = hold(calloc(a->n, sizeof *out));
    assert_ok(ks_operator_apply(a, v, out));
    ks_operator_free(a);
    return out;
}

double *dense_of(const struct ks_operator *a)
{
    double *matrix = hold(calloc(a->n * a->n, sizeof *matrix));
    double *unit = hold(calloc(a->n, sizeof *unit));

    for (size_t j = 0; j < a->n; j++) {
        unit[j] = 1;
        assert_ok(ks_operator_apply(a, unit, matrix + j * a->n));
        unit[j] = 0;
    }
    return matrix;
}

double *eigenvalues(size_t n, const double *matrix)
{
    double *value = hold(calloc(n, sizeof *value)), *copy = malloc(n * n * sizeof *copy);

    memcpy(copy, matrix, n * n * sizeof *copy);
    assert_int_equal(LAPACKE_dsyev(LAPACK_COL_MAJOR, 'N', 'U', (int)n, copy, (int)n, value), 0);
    free(copy);
    return value;
}

double largest_eigenvalue(size_t n, const double *matrix)
{
    const double *value = eigenvalues(n, matrix);

    return fmax(-value[0], value[n - 1]);
}

static ks_status diagonal_apply(void *self, const double *v, double *out)
{
    struct diagonal *d = self;

    d->products++;
    if (d->products == d->fail_at)
        return ks_fail(KS_IO, "the operator's own words");
    for (size_t i = 0; i < d->n; i++)
        out[i] = d->value[i] * v[i];
    if (d->products == d->nan_at)
        out[d->n - 1] = NAN;
    return KS_OK;
}

struct ks_operator diagonal_operator(struct diagonal *d)
{
    return (struct ks_operator){.n = d->n, .self = d, .apply = diagonal_apply};
}

static ks_status dense_apply(void *self, const double *v, double *out)
{
    const struct dense *a = self;

    for (size_t i = 0; i < a->n; i++)
        out[i] = dot(a->n, a->matrix + i * a->n, v);
    return KS_OK;
}

struct ks_operator dense_operator(struct dense *a)
{
    return (struct ks_operator){.n = a->n, .self = a, .apply = dense_apply};
}

/* The 1-D Laplacian tridiag(-1, 2, -1): eigenvalues 2 - 2 cos(k pi / (n + 1)), k = 1 .. n. */
static ks_status laplacian_apply(void *self, const double *v, double *out)
{
    size_t n = *(const size_t *)self;

    for (size_t i = 0; i < n; i++)
        out[i] = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < n ? v[i + 1] : 0);
    return KS_OK;
}

struct ks_operator laplacian_operator(size_t *n)
{
    return (struct ks_operator){.n = *n, .self = n, .apply = laplacian_apply};
}

double laplacian_eigenvalue(size_t n, size_t k)
{
    return 2 - 2 * cos(3.14159265358979323846 * (double)k / ((double)n + 1));
}

struct ks_spectrum *spectrum_new(void)
{
    struct ks_spectrum *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    return keep_spectrum(s);
}

static ks_status slq_probe(const struct ks_operator *a, const struct slq *slq, struct ks_lanczos *l,
                           uint64_t probe)
{
    if (probe < slq->probes)
        ks_lanczos_start(l, slq->seed, probe);
    else if (slq->complement && probe == slq->probes)
        ks_lanczos_start_beside(l, slq->seed);
    else
        KS_TRY(ks_lanczos_start_at(l, slq->gradient));
    while (l->steps < l->order && !l->exhausted)
        KS_TRY(ks_lanczos_step(l));
    return slq->on_finished && probe < slq->probes + slq->complement
               ? slq->on_finished(slq->context, l)
               : KS_OK;
}

ks_status slq_run(const struct ks_operator *a, const struct slq *slq, struct ks_spectrum *s)
{
    struct ks_lanczos *l = NULL;
    ks_status status = KS_OK;

    s->gradient = slq->gradient != NULL;
    s->complement = slq->complement;
    KS_GO(ks_slq_room(s, slq->probes + s->complement + s->gradient, slq->order));
    KS_GO((s->complement ? ks_lanczos_new_for_two : ks_lanczos_new)(a, slq->order, slq->basis_f32,
                                                                    &l));
    l->products_f32 = slq->products_f32;
    l->published = slq->published;
    for (size_t probe = 0; probe < s->probes; probe++) {
        KS_GO(slq_probe(a, slq, l, probe));
        KS_GO(ks_slq_store(l, probe, s));
    }
done:
    ks_lanczos_free(l);
    return status;
}

struct ks_spectrum *exact_spectrum(size_t n, const double *ritz, const double *weight)
{
    struct ks_spectrum *s = spectrum_new();

    s->probes = 1;
    s->order = n;
    s->ritz = malloc(n * sizeof(double));
    s->weight = malloc(n * sizeof(double));
    s->residual = calloc(n, sizeof(double));
    memcpy(s->ritz, ritz, n * sizeof(double));
    memcpy(s->weight, weight, n * sizeof(double));
    return s;
}

void compute_statistics(struct ks_spectrum *s, size_t n)
{
    assert_ok(ks_statistics(s, &(struct ks_statistics_inputs){.n = n, .epsilon = DBL_EPSILON}));
}

struct ks_spectrum *estimate_with(const struct ks_operator *a, size_t order, size_t probes,
                                  uint64_t seed, bool draft)
{
    struct ks_spectrum *s = spectrum_new();
    struct slq slq = {.order = order, .probes = probes, .seed = seed};
    struct ks_statistics_inputs inputs = {
        .n = a->n, .epsilon = DBL_EPSILON, .basis_epsilon = DBL_EPSILON, .draft = draft};

    assert_ok(slq_run(a, &slq, s));
    assert_ok(ks_statistics(s, &inputs));
    return s;
}

struct ks_spectrum *estimate_spectrum(const struct ks_operator *a, size_t order, size_t probes)
{
    return estimate_with(a, order, probes, 5, false);
}

struct ks_spectrum *exact_with(const struct ks_operator *a, const struct ks_null *null)
{
    struct ks_spectrum *s = spectrum_new();
    struct ks_statistics_inputs inputs = {
        .n = a->n, .epsilon = DBL_EPSILON, .basis_epsilon = DBL_EPSILON, .null = null};

    assert_ok(ks_exact(a, NULL, NULL, s));
    assert_ok(ks_statistics(s, &inputs));
    return s;
}

void check_statistic(const struct ks_spectrum *s, const char *name, double expected)
{
    double found = ks_statistic(s, name);

    if (!(fabs(found - expected) <= 1e-13 * (1 + fabs(expected))))
        fail_msg("%s = %.17g, expected %.17g", name, found, expected);
}

bool has_statistic(const struct ks_spectrum *s, const char *name)
{
    for (size_t i = 0; i < s->statistics.n; i++)
        if (strcmp(s->statistics.list[i].name, name) == 0)
            return true;
    return false;
}

/* The basis of coordinates 0 .. d-1. */
static struct ks_null_basis *first_coordinates(size_t n, size_t d)
{
    struct ks_null_basis *b = calloc(1, sizeof *b);

    *b = (struct ks_null_basis){.n = n, .dimension = d, .n_dead = d};
    assert_ok(ks_alloc(d, sizeof *b->dead, &b->dead));
    b->arena.block = (char *)b->dead; /* freed with the basis */
    for (size_t i = 0; i < d; i++)
        b->dead[i] = i;
    return b;
}

static ks_status take_certificates(void *context, const struct ks_lanczos *l)
{
    return ks_certificates_take(context, l);
}

/* The results of ks_certify for a diagonal operator. */
static void certify_diagonal(const struct diagonal *d, struct ks_certificates *c)
{
    double *image = calloc(d->n, sizeof *image);

    for (size_t k = 0; k < KS_CERTIFICATES; k++) {
        struct ks_certificate *y = &c->vector[k];
        double norm = cblas_dnrm2((int)d->n, y->y, 1);

        for (size_t i = 0; y->formed && i < d->n; i++)
            image[i] = d->value[i] * y->y[i];
        if (!y->formed)
            continue;
        y->quotient = cblas_ddot((int)d->n, y->y, 1, image, 1) / norm / norm;
        y->size = cblas_dnrm2((int)d->n, image, 1) / norm;
        y->data_se = NAN;
    }
    c->certified = true;
    free(image);
}

struct certified *estimate_certified(struct diagonal *d, const struct certified_run *how)
{
    const struct ks_null *null = how->null;
    struct certified *e = calloc(1, sizeof *e);
    struct ks_operator a = diagonal_operator(d);
    struct slq slq = {.order = how->order,
                      .probes = how->probes,
                      .seed = how->seed,
                      .on_finished = take_certificates,
                      .context = &e->certificates};

    if (null && null->dimension + null->dead > 0)
        e->basis = first_coordinates(d->n, null->dimension + null->dead);
    e->certificates = (struct ks_certificates){
        .n = d->n, .probes = how->probes, .prefix = KS_STATISTICS_PREFIX, .basis = e->basis};
    assert_ok(ks_certificates_new(how->order, &e->certificates));
    e->s = spectrum_new();
    assert_ok(slq_run(&a, &slq, e->s));
    if (how->certify)
        certify_diagonal(d, &e->certificates);
    e->inputs = (struct ks_statistics_inputs){.n = d->n,
                                              .epsilon = DBL_EPSILON,
                                              .basis_epsilon = DBL_EPSILON,
                                              .null = null,
                                              .operator_rank = how->operator_rank,
                                              .certificates = &e->certificates};
    assert_ok(ks_statistics(e->s, &e->inputs));
    return e;
}

void certified_free(struct certified *e)
{
    ks_certificates_clear(&e->certificates);
    ks_null_basis_free(e->basis);
    free(e);
}
