/* The float64 products of the certificates. Each minibatch has its own operator: so its share of
 * every product is known, which the standard error over minibatches needs, and its activations are
 * computed once for all vectors. Sums are added in the order of the minibatches, so the number of
 * threads changes no bit. */
#include "statistics/certificate.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "operators/minibatches.h"
#include <cblas.h>

static const uint64_t SEED = 0x6365727469; /* of the random vector that tests Z */
enum { TRIAL = KS_CERTIFICATES, GRADIENT, VECTORS };
/* The vectors that are also multiplied by the held-out minibatches: the first ones. */
enum { HELD_OUT_VECTORS = KS_Y_SMALLEST + 1 };
enum { MOST_SCALE = 500 }; /* largest exponent of the random vector's power of two */

/* A column z of Z is refuted if |z'A v| exceeds this fraction of |A v|. */
static const double REFUTED = 1e-9;
/* If a product has entries as small as this, its zeros may be due to underflow. */
static const double UNDERFLOW = 1e-200;

struct pass {
    struct ks_certificates *c;
    const struct ks_problem *problem; /* NULL: an operator that is not a mean over minibatches */
    size_t minibatches;
    bool gradient; /* the gradient is among the vectors */
    struct ks_minibatches set;
    const double *v[VECTORS];  /* NULL: no such vector           */
    double *trial;             /* [n]                            */
    double *image[VECTORS];    /* [n]: A v in float64            */
    double *quotient[VECTORS]; /* [minibatches + held_out]: v'A_n v N / v'v */
    struct ks_arena arena;     /* the arrays. Owned */
};

static void lay_out(struct ks_arena *arena, void *object)
{
    struct pass *p = object;

    p->trial = KS_TAKE(arena, p->c->n, double);
    for (size_t k = 0; k < VECTORS; k++) {
        p->image[k] = KS_TAKE(arena, k != GRADIENT || p->gradient ? p->c->n : 0, double);
        p->quotient[k] = KS_TAKE(arena, p->minibatches + p->c->held_out, double);
    }
}

/* The random vector is scaled by a power of two such that its product is of order 1, judging by the
 * products of the run: then no entry of the product underflows to zero. If all products of the run
 * are zero, the largest scale shows whether the operator is zero. */
static void draw_trial(struct pass *p)
{
    struct ks_rng rng = ks_rng_start(SEED, 0);
    double size = 0;
    int scale;

    for (size_t k = 0; k < KS_CERTIFICATES; k++)
        if (p->v[k])
            size = fmax(size, cblas_dnrm2((int)p->c->n, p->c->vector[k].image, 1) /
                                  cblas_dnrm2((int)p->c->n, p->v[k], 1));
    scale = size > 0 && -ilogb(size) < MOST_SCALE ? -ilogb(size) : MOST_SCALE;
    for (size_t i = 0; i < p->c->n; i++)
        p->trial[i] = ldexp(ks_rng_normal(&rng), scale);
}

static ks_status allocate(struct pass *p)
{
    KS_TRY(ks_arena_make(&p->arena, lay_out, p));
    for (size_t k = 0; k < KS_CERTIFICATES; k++)
        p->v[k] = p->c->vector[k].formed ? p->c->vector[k].y : NULL;
    p->v[TRIAL] = p->c->basis ? p->trial : NULL;
    p->v[GRADIENT] = p->c->gradient;
    if (!ks_counting())
        draw_trial(p);
    return KS_OK;
}

/* Adds the term of the weight decay to the products: the difference between the products of one
 * minibatch with and without it, as not every operator adds a multiple of v. */
static ks_status add_decay(struct pass *p)
{
    const struct ks_problem *problem = p->problem;
    const struct ks_minibatch *s = &p->set.list[0];

    if (problem->weight_decay == 0 || problem->omits_decay)
        return KS_OK;
    for (int with = 0; with < 2; with++) {
        KS_TRY(ks_minibatches_make_one(&p->set, 0, with == 1, 0));
        for (size_t k = 0; k < VECTORS; k++)
            if (p->v[k]) {
                KS_TRY(ks_operator_apply(s->a, p->v[k], s->out));
                cblas_daxpy((int)p->c->n, with ? 1 : -1, s->out, 1, p->image[k], 1);
            }
    }
    return KS_OK;
}

/* |a - c b| / norm, scaled so that no square overflows or underflows. */
static double distance(size_t n, const double *a, double c, const double *b, double norm)
{
    double square = 0, unit = 0;

    for (size_t i = 0; i < n; i++)
        unit = fmax(unit, fabs(a[i] - c * b[i]));
    for (size_t i = 0; i < n && unit > 0; i++) {
        double d = (a[i] - c * b[i]) / unit;

        square += d * d;
    }
    return unit * (sqrt(square) / norm);
}

static void judge_minibatches(const struct pass *p, size_t k, struct ks_certificate *y)
{
    const size_t held_out = p->c->held_out;
    const double *quotient = p->quotient[k];
    double mean;

    y->held_out_quotient = y->held_out_se = y->data_se = NAN;
    if (!p->problem)
        return;
    mean = ks_minibatches_mean(p->minibatches, quotient, &y->data_se);
    if (held_out < KS_LEAST_HELD_OUT || k >= HELD_OUT_VECTORS)
        return;
    /* A weight decay does not belong to any minibatch's quotient. */
    y->held_out_quotient = y->quotient - mean +
                           ks_minibatches_mean(held_out, quotient + p->minibatches,
                                               &y->held_out_se);
}

static void judge_vector(const struct pass *p, size_t k, struct ks_certificate *y)
{
    size_t n = p->c->n;
    double norm = cblas_dnrm2((int)n, y->y, 1);
    const double *image = p->image[k];

    y->quotient = cblas_ddot((int)n, y->y, 1, image, 1) / norm / norm;
    y->size = cblas_dnrm2((int)n, image, 1) / norm;
    y->residual = distance(n, image, y->quotient, y->y, norm);
    y->run_quotient = cblas_ddot((int)n, y->y, 1, y->image, 1) / norm / norm;
    y->run_size = cblas_dnrm2((int)n, y->image, 1) / norm;
    y->run_residual = distance(n, y->image, y->run_quotient, y->y, norm);
    y->error = distance(n, image, 1, y->image, norm);
    judge_minibatches(p, k, y);
    if (y->error > p->c->error) {
        size_t worst = 0;

        for (size_t i = 0; i < n; i++)
            worst = fabs(image[i] - y->image[i]) > fabs(image[worst] - y->image[worst]) ? i : worst;
        p->c->error = y->error;
        p->c->worst = worst;
    }
}

/* Whether the product with the random vector shows that Z holds a vector that is not null. */
static ks_status test_basis(const struct pass *p, bool *refuted)
{
    const struct ks_null_basis *b = p->c->basis;
    const double *image = p->image[TRIAL];
    double norm = cblas_dnrm2((int)b->n, image, 1), *product = NULL;
    bool tiny = false;

    *refuted = false;
    KS_TRY(ks_alloc(b->n_directions, sizeof *product, &product));
    ks_null_basis_multiply(b, image, product);
    for (size_t k = 0; k < b->n_directions; k++)
        *refuted |= !(fabs(product[k]) <= REFUTED * norm);
    free(product);
    for (size_t k = 0; k < b->n_dead; k++)
        *refuted |= image[b->dead[k]] != 0;
    for (size_t i = 0; i < b->n; i++)
        tiny |= image[i] != 0 && fabs(image[i]) < UNDERFLOW;
    *refuted |= b->n_dead > 0 && tiny;
    return KS_OK;
}

static ks_status judge(struct pass *p)
{
    const double *g = p->v[GRADIENT];
    const int n = (int)p->c->n;

    for (size_t k = 0; k < KS_CERTIFICATES; k++)
        if (p->v[k])
            judge_vector(p, k, &p->c->vector[k]);
    if (g)
        p->c->gradient_curvature = cblas_ddot(n, g, 1, p->image[GRADIENT], 1) /
                                   cblas_dnrm2(n, g, 1) / cblas_dnrm2(n, g, 1);
    if (p->v[TRIAL])
        KS_TRY(test_basis(p, &p->c->refuted));
    p->c->certified = true;
    return KS_OK;
}

static void pass_clear(struct pass *p)
{
    ks_minibatches_clear(&p->set);
    ks_arena_free(&p->arena);
}

ks_status ks_certify(struct ks_certificates *c, const struct ks_problem *problem, size_t memory)
{
    const size_t n = problem->minibatches;
    KS_CLEARED_BY(pass_clear)
    struct pass p = {.c = c,
                     .problem = problem,
                     .minibatches = n,
                     .gradient = c->gradient,
                     .set = {.problem = problem, .n = c->n, .memory = memory}};
    struct ks_minibatch_products products = {VECTORS, p.v, p.quotient, p.image};

    KS_TRY(ks_minibatches_new(&p.set, n));
    KS_TRY(allocate(&p));
    KS_TRY(ks_minibatches_multiply(&p.set, 0, n, &products));
    if (ks_counting())
        return KS_OK;
    products.vectors = HELD_OUT_VECTORS;
    products.image = NULL;
    KS_TRY(ks_minibatches_multiply(&p.set, n, n + c->held_out, &products));
    KS_TRY(add_decay(&p));
    return judge(&p);
}

ks_status ks_certify_operator(struct ks_certificates *c, const struct ks_operator *a)
{
    KS_CLEARED_BY(pass_clear) struct pass p = {.c = c, .gradient = c->gradient};

    KS_TRY(allocate(&p));
    if (ks_counting())
        return KS_OK;
    for (size_t k = 0; k < VECTORS; k++)
        if (p.v[k])
            KS_TRY(ks_operator_apply(a, p.v[k], p.image[k]));
    return judge(&p);
}
