/* The float64 products of the certificates. Each minibatch has its own operator: so its part of
 * every product is known, which the standard error over minibatches needs, and its activations are
 * computed once for all vectors. Sums are added in the order of the minibatches, so the number of
 * threads changes no bit. */
#include "statistics/certificate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <omp.h>

#include "core/memory.h"
#include "core/rng.h"

static const uint64_t SEED = 0x6365727469; /* of the random vector that tests Z */
enum { TRIAL = KS_CERTIFICATES, GRADIENT, VECTORS };
enum { MOST_SCALE = 500 }; /* largest exponent of the random vector's power of two */

/* A column z of Z is refuted if |z'A v| exceeds this part of |A v|. */
static const double REFUTED = 1e-9;
/* If a product has entries as small as this, its zeros may be due to underflow. */
static const double UNDERFLOW = 1e-200;

/* The work of one thread on one minibatch. */
struct share {
    struct ks_checkpoint checkpoint; /* a view of this minibatch in the analyzed checkpoint */
    struct ks_problem problem;
    struct ks_operator *a; /* owned */
    double *out;           /* [n]   */
    ks_status status;
    char message[512];
};

struct pass {
    struct ks_certificates *c;
    const struct ks_analyzed *analyzed; /* NULL: an operator that is not a mean over minibatches */
    const struct ks_team *team;
    size_t memory, minibatches, n_shares;
    double all; /* N: minibatches of all ranks; 0: A is not a mean over minibatches */
    struct share *share;
    const double *v[VECTORS]; /* NULL: no such vector           */
    double *image[VECTORS];   /* [n]: A v in float64            */
    double *part[VECTORS];    /* [minibatches + fresh]: v'A_n v N / v'v */
    double *trial, *scratch;  /* [n]; [ks_team_scratch]            */
};

static void pass_clear(struct pass *p)
{
    for (size_t t = 0; p->share && t < p->n_shares; t++) {
        ks_operator_free(p->share[t].a);
        free(p->share[t].out);
    }
    free(p->share);
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
    size_t n = p->c->n, threads = (size_t)omp_get_max_threads();

    p->n_shares = threads < p->minibatches ? threads : p->minibatches;
    KS_TRY(ks_alloc(p->n_shares, sizeof *p->share, &p->share));
    for (size_t t = 0; t < p->n_shares; t++)
        KS_TRY(ks_alloc(n, sizeof(double), &p->share[t].out));
    KS_TRY(ks_alloc(n, sizeof(double), &p->trial));
    KS_TRY(ks_alloc(ks_team_scratch(p->team, n), sizeof(double), &p->scratch));
    for (size_t k = 0; k < KS_CERTIFICATES; k++)
        p->v[k] = p->c->vector[k].formed ? p->c->vector[k].y : NULL;
    p->v[TRIAL] = p->c->basis ? p->trial : NULL;
    p->v[GRADIENT] = p->c->gradient;
    draw_trial(p);
    for (size_t k = 0; k < VECTORS; k++) {
        KS_TRY(ks_alloc(p->v[k] ? n : 0, sizeof(double), &p->image[k]));
        KS_TRY(ks_alloc(p->minibatches + p->c->fresh, sizeof(double), &p->part[k]));
    }
    return KS_OK;
}

/* Sets s->problem to minibatch `n` alone, as one part of the sum over all minibatches, with or
 * without the weight decay. */
static void cut(const struct pass *p, size_t n, bool decays, struct share *s)
{
    const struct ks_problem *problem = &p->analyzed->problem;
    const struct ks_checkpoint *all = problem->checkpoint;

    s->checkpoint = ks_checkpoint_minibatch(all, n);
    s->problem = *problem;
    s->problem.checkpoint = &s->checkpoint;
    s->problem.minibatches = 1;
    s->problem.other_minibatches += problem->minibatches - 1;
    s->problem.omits_decay = !decays;
}

static ks_status make_operator(const struct pass *p, struct share *s)
{
    struct ks_operator *full = NULL;

    ks_operator_free(s->a);
    s->a = NULL;
    KS_TRY(p->analyzed->kind->new_f64(&s->problem, &full));
    KS_TRY(ks_block_new(full, p->analyzed->selection, &s->a));
    return ks_operator_prepare(s->a, p->memory);
}

/* Saves the status and message of this thread; messages are thread-local. */
static void keep_status(struct share *s, ks_status status)
{
    s->status = status;
    if (status != KS_OK)
        snprintf(s->message, sizeof s->message, "%s", ks_error_text());
}

static ks_status first_failure(const struct pass *p, size_t shares)
{
    for (size_t t = 0; t < shares; t++)
        if (p->share[t].status != KS_OK)
            return ks_fail(p->share[t].status, "%s", p->share[t].message);
    return KS_OK;
}

/* Adds the products of minibatches [first, first + shares), one per thread, in their order. Those
 * of fresh minibatches are no part of A v. */
static ks_status add_vector(struct pass *p, size_t first, size_t shares, size_t k)
{
    const double *v = p->v[k];
    int n = (int)p->c->n;
    double square = cblas_ddot(n, v, 1, v, 1);

#pragma omp parallel for num_threads((int)shares) schedule(static, 1)
    for (size_t t = 0; t < shares; t++)
        keep_status(&p->share[t], ks_operator_apply(p->share[t].a, v, p->share[t].out));
    KS_TRY(first_failure(p, shares));
    for (size_t t = 0; t < shares; t++) {
        p->part[k][first + t] = p->all * cblas_ddot(n, v, 1, p->share[t].out, 1) / square;
        if (first < p->minibatches)
            cblas_daxpy(n, 1, p->share[t].out, 1, p->image[k], 1);
    }
    return KS_OK;
}

/* The products of the first `vectors` vectors with minibatches [begin, end). */
static ks_status add_minibatches(struct pass *p, size_t begin, size_t end, size_t vectors)
{
    for (size_t first = begin; first < end; first += p->n_shares) {
        size_t left = end - first, shares = left < p->n_shares ? left : p->n_shares;

#pragma omp parallel for num_threads((int)shares) schedule(static, 1)
        for (size_t t = 0; t < shares; t++) {
            cut(p, first + t, false, &p->share[t]);
            keep_status(&p->share[t], make_operator(p, &p->share[t]));
        }
        KS_TRY(first_failure(p, shares));
        for (size_t k = 0; k < vectors; k++)
            if (p->v[k])
                KS_TRY(add_vector(p, first, shares, k));
    }
    return KS_OK;
}

/* Adds the part of the weight decay to the products: the difference between the products of one
 * minibatch with and without it, as not every operator adds a multiple of v. */
static ks_status add_decay(struct pass *p)
{
    const struct ks_problem *problem = &p->analyzed->problem;
    struct share *s = &p->share[0];

    if (problem->weight_decay == 0 || problem->omits_decay)
        return KS_OK;
    for (int with = 0; with < 2; with++) {
        cut(p, 0, with == 1, s);
        KS_TRY(make_operator(p, s));
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

static void judge_minibatches(const struct pass *p, const double *part, struct ks_certificate *y)
{
    const size_t fresh = p->c->fresh;
    double mean = find_mean(p, part, p->minibatches, p->all, &y->data_se);

    y->fresh_quotient = y->fresh_se = NAN;
    if (fresh < KS_LEAST_FRESH)
        return;
    /* A weight decay is no part of any minibatch's quotient. */
    y->fresh_quotient = y->quotient - mean +
                        find_mean(p, part + p->minibatches, fresh, (double)fresh, &y->fresh_se);
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
    judge_minibatches(p, p->part[k], y);
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

ks_status ks_certify(struct ks_certificates *c, const struct ks_analyzed *analyzed,
                     const struct ks_team *team, size_t memory)
{
    struct pass p = {.c = c,
                     .analyzed = analyzed,
                     .team = team,
                     .memory = memory,
                     .minibatches = analyzed->problem.minibatches,
                     .all = (double)ks_problem_minibatches(&analyzed->problem)};
    ks_status status = KS_OK;

    KS_GO(ks_team_agree(team, allocate(&p)));
    KS_GO(ks_team_agree(team, add_minibatches(&p, 0, p.minibatches, VECTORS)));
    KS_GO(ks_team_agree(
        team, add_minibatches(&p, p.minibatches, p.minibatches + c->fresh, KS_Y_SMALLEST + 1)));
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
