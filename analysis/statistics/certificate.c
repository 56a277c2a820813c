/* The float64 products of the certificates. Each minibatch has its own operator: so its part of
 * every product is known, which the standard error over minibatches needs, and its activations are
 * computed once for all vectors. Sums are added in the order of the minibatches, so the number of
 * threads changes no bit. */
#include "statistics/certificate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/rng.h"
#include "operators/minibatches.h"
#include <cblas.h>

static const uint64_t SEED = 0x6365727469; /* of the random vector that tests Z */
enum { TRIAL = KS_CERTIFICATES, GRADIENT, VECTORS };
/* The vectors that are also multiplied by the held-out minibatches: the first ones. */
enum { HELD_OUT_VECTORS = KS_Y_SMALLEST + 1 };
enum { MOST_SCALE = 500 }; /* largest exponent of the random vector's power of two */

/* A column z of Z is refuted if |z'A v| exceeds this part of |A v|. */
static const double REFUTED = 1e-9;
/* If a product has entries as small as this, its zeros may be due to underflow. */
static const double UNDERFLOW = 1e-200;

struct pass {
    struct ks_certificates *c;
    const struct ks_problem *problem; /* NULL: an operator that is not a mean over minibatches */
    const struct ks_team *team;
    size_t minibatches;
    double all; /* N: minibatches of all ranks; 0: A is not a mean over minibatches */
    struct ks_minibatches set;
    const double *v[VECTORS]; /* NULL: no such vector           */
    double *image[VECTORS];   /* [n]: A v in float64            */
    double *part[VECTORS];    /* [minibatches + held_out]: v'A_n v N / v'v */
    double *trial, *scratch;  /* [n]; [ks_team_scratch]            */
};

static void pass_clear(struct pass *p)
{
    ks_minibatches_clear(&p->set);
    for (size_t k = 0; k < VECTORS; k++) {
        free(p->image[k]);
        free(p->part[k]);
    }
    free(p->trial);
    free(p->scratch);
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
    const size_t n = p->c->n;

    KS_TRY(ks_alloc(n, sizeof(double), &p->trial));
    KS_TRY(ks_alloc(ks_team_scratch(p->team, n), sizeof(double), &p->scratch));
    for (size_t k = 0; k < KS_CERTIFICATES; k++)
        p->v[k] = p->c->vector[k].formed ? p->c->vector[k].y : NULL;
    p->v[TRIAL] = p->c->basis ? p->trial : NULL;
    p->v[GRADIENT] = p->c->gradient;
    draw_trial(p);
    for (size_t k = 0; k < VECTORS; k++) {
        KS_TRY(ks_alloc(p->v[k] ? n : 0, sizeof(double), &p->image[k]));
        KS_TRY(ks_alloc(p->minibatches + p->c->held_out, sizeof(double), &p->part[k]));
    }
    return KS_OK;
}

/* Adds the products of minibatches [first, first + count), one per thread, in their order. Those of
 * held-out minibatches are no part of A v. */
static ks_status add_vector(struct pass *p, size_t first, size_t count, const double *const *v,
                            size_t k)
{
    const int n = (int)p->c->n;
    const double square = cblas_ddot(n, v[0], 1, v[0], 1);

    KS_TRY(ks_minibatches_apply(&p->set, count, v));
    for (size_t t = 0; t < count; t++) {
        const double *out = p->set.list[t].out;

        p->part[k][first + t] = p->all * cblas_ddot(n, v[t], 1, out, 1) / square;
        if (first < p->minibatches)
            cblas_daxpy(n, 1, out, 1, p->image[k], 1);
    }
    return KS_OK;
}

/* The products of the first `vectors` vectors with minibatches [begin, end). */
static ks_status add_minibatches(struct pass *p, size_t begin, size_t end, size_t vectors)
{
    const size_t threads = p->set.threads;
    ks_status status = KS_OK;
    const double **v = NULL; /* [threads]: the same vector for all */

    KS_GO(ks_alloc(threads, sizeof *v, &v));
    for (size_t first = begin; first < end; first += threads) {
        size_t count = end - first < threads ? end - first : threads;

        KS_GO(ks_minibatches_make(&p->set, first, count));
        for (size_t k = 0; k < vectors; k++) {
            for (size_t t = 0; t < threads; t++)
                v[t] = p->v[k];
            if (p->v[k])
                KS_GO(add_vector(p, first, count, v, k));
        }
    }
done:
    free(v);
    return status;
}

/* Adds the part of the weight decay to the products: the difference between the products of one
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

/* The mean of the quotients of `count` minibatches, of `all` over all ranks, and its standard
 * error. */
static double find_mean(const struct pass *p, const double *part, size_t count, double all,
                        double *se)
{
    double mean = 0, square = 0;

    for (size_t i = 0; i < count; i++)
        mean += part[i] / all;
    ks_team_sum(p->team, 1, &mean);
    for (size_t i = 0; i < count; i++)
        square += (part[i] - mean) * (part[i] - mean);
    ks_team_sum(p->team, 1, &square);
    *se = all > 1 ? sqrt(square / (all - 1) / all) : NAN;
    return mean;
}

static void judge_minibatches(const struct pass *p, size_t k, struct ks_certificate *y)
{
    const size_t held_out = p->c->held_out;
    const double *part = p->part[k];
    double mean = find_mean(p, part, p->minibatches, p->all, &y->data_se);

    y->held_out_quotient = y->held_out_se = NAN;
    if (held_out < KS_LEAST_HELD_OUT || k >= HELD_OUT_VECTORS)
        return;
    /* A weight decay is no part of any minibatch's quotient. */
    y->held_out_quotient = y->quotient - mean +
                           find_mean(p, part + p->minibatches, held_out, (double)held_out,
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

static void judge_gradient(const struct pass *p)
{
    const double *g = p->c->gradient;
    double norm = cblas_dnrm2((int)p->c->n, g, 1);

    p->c->gradient_curvature = cblas_ddot((int)p->c->n, g, 1, p->image[GRADIENT], 1) / norm / norm;
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
    ks_null_basis_multiply(b, 0, b->n, image, product);
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
    for (size_t k = 0; k < VECTORS; k++)
        if (p->v[k])
            ks_team_sum_vector(p->team, p->c->n, p->scratch, p->image[k]);
    for (size_t k = 0; k < KS_CERTIFICATES; k++)
        if (p->v[k])
            judge_vector(p, k, &p->c->vector[k]);
    if (p->v[GRADIENT])
        judge_gradient(p);
    return p->v[TRIAL] ? test_basis(p, &p->c->refuted) : KS_OK;
}

ks_status ks_certify(struct ks_certificates *c, const struct ks_problem *problem,
                     const struct ks_team *team, size_t memory)
{
    struct pass p = {.c = c,
                     .problem = problem,
                     .team = team,
                     .minibatches = problem->minibatches,
                     .all = (double)ks_problem_minibatches(problem),
                     .set = {.problem = problem, .n = c->n, .memory = memory}};
    ks_status status = KS_OK;

    KS_GO(ks_team_agree(team, ks_minibatches_new(&p.set, p.minibatches)));
    KS_GO(ks_team_agree(team, allocate(&p)));
    KS_GO(ks_team_agree(team, add_minibatches(&p, 0, p.minibatches, VECTORS)));
    KS_GO(ks_team_agree(
        team, add_minibatches(&p, p.minibatches, p.minibatches + c->held_out, HELD_OUT_VECTORS)));
    KS_GO(ks_team_agree(team, add_decay(&p)));
    KS_GO(ks_team_agree(team, judge(&p)));
    c->certified = true;
done:
    pass_clear(&p);
    return status;
}

ks_status ks_certify_operator(struct ks_certificates *c, const struct ks_operator *a)
{
    struct pass p = {.c = c};
    ks_status status = KS_OK;

    KS_GO(allocate(&p));
    for (size_t k = 0; k < VECTORS; k++)
        if (p.v[k])
            KS_GO(ks_operator_apply(a, p.v[k], p.image[k]));
    KS_GO(judge(&p));
    c->certified = true;
done:
    pass_clear(&p);
    return status;
}
