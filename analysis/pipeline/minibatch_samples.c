/* Products with single minibatches, for analyses with tolerances: the error from few minibatches,
 * and the trace of A = sum_i A_i from random vectors, a vector of its own for each minibatch i.
 *
 * Let P = Q Q' be the projector on the Lanczos vectors Q that are there already. Then
 *
 *   tr A = sum_j alpha_j + sum_i E (w_i' A_i w_i),   w_i = (I - P) z_i,   z_i = +1 or -1 at random
 *
 * (Chen and Hallman, SIAM J. Matrix Anal. Appl. 44, 2023). The first sum has the largest
 * eigenvalues, so the products scatter little; and since the vectors of the minibatches are
 * independent, their errors average out, which they would not with one vector for all. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <cblas.h>
#include <omp.h>

#include "core/memory.h"
#include "core/rng.h"
#include "lanczos/jacobi.h"
#include "operators/minibatches.h"
#include "statistics/beta_distribution.h"

static const uint64_t SEED = 0x7472616365; /* added to that of the start vectors */
static const double MISSED = 0.01; /* the probability that any of the intervals misses the trace */
/* Student's distribution is that of normal scatter. But w'A_i w may be the square of one component
 * of w, if a large eigenvalue has a twin that the Lanczos vectors missed: then a small estimate
 * comes with a small standard error. With d degrees of freedom 1 + SKEW / sqrt(d) allows for it.
 * SKEW and LEAST are chosen so that at most 1% miss on critics made to deceive (test_stopping). */
static const double SKEW = 3.2;
enum { FIRST = 2, LEAST = 32 }; /* vectors before the first estimate: of each minibatch, in all */

/* The operators of single minibatches, beside the operator itself. */
static struct ks_minibatches new_set(const struct ks_pipeline *p)
{
    return (struct ks_minibatches){.problem = &p->problem,
                                   .n = p->budget.dimension,
                                   .memory = p->budget.spare / (size_t)omp_get_max_threads(),
                                   .products_f32 = p->options->products_f32};
}

/* --- the error from few minibatches --- */

struct early {
    size_t n, steps, minibatches;
    double *theta, *s; /* [steps], [steps, steps]: of the Jacobi matrix             */
    double *y;         /* [2, n]: the Ritz vectors of lambda_max and of lambda_min */
    double *quotient;  /* [2, minibatches]                                         */
};

static void lay_out_early(struct ks_arena *arena, void *object)
{
    struct early *e = object;

    e->theta = KS_TAKE(arena, e->steps, double);
    e->s = KS_TAKE(arena, e->steps * e->steps, double);
    e->y = KS_TAKE(arena, 2 * e->n, double);
    e->quotient = KS_TAKE(arena, 2 * e->minibatches, double);
}

/* The tolerances of lambda_max and of lambda_min; 0: none. */
static void find_tolerances(const struct ks_tolerances *t, double most[2])
{
    most[0] = most[1] = 0;
    for (size_t i = 0; i < t->n; i++)
        if (ks_tolerance_end(&t->list[i]) != 0)
            most[ks_tolerance_end(&t->list[i]) < 0] = t->list[i].most;
}

/* From the quotients of both ends. */
static struct ks_early_error find_error(const struct early *e, const double most[2])
{
    const double size = fmax(fabs(e->theta[0]), fabs(e->theta[e->steps - 1]));
    struct ks_early_error error = {.steps = e->steps};

    for (size_t end = 0; end < 2; end++)
        if (most[end] > 0) {
            double se;

            ks_minibatches_mean(e->minibatches, e->quotient + end * e->minibatches, &se);
            error.products++;
            if (size > 0)
                error.excess = fmax(error.excess, se / size / most[end]);
        }
    return error;
}

ks_status ks_early_error(struct ks_pipeline *p, const struct ks_lanczos *l)
{
    KS_CLEARED_BY(ks_arena_free) struct ks_arena arena = {.bytes = 0};
    const struct ks_jacobi t = {l->steps, l->alpha, l->beta};
    struct early e = {
        .n = p->budget.dimension, .steps = l->steps, .minibatches = p->problem.minibatches};
    KS_CLEARED_BY(ks_minibatches_clear) struct ks_minibatches set = new_set(p);
    double most[2];

    assert(e.minibatches > 1);
    find_tolerances(&p->options->tolerances, most);
    KS_TRY(ks_arena_make(&arena, lay_out_early, &e));
    KS_TRY(ks_minibatches_new(&set, e.minibatches));
    if (ks_counting())
        return ks_minibatches_make(&set, 0, e.minibatches);
    KS_TRY(ks_jacobi_vectors(&t, e.theta, e.s));
    ks_lanczos_combine(l, e.steps, e.s + (e.steps - 1) * e.steps, e.y);
    ks_lanczos_combine(l, e.steps, e.s, e.y + e.n);
    KS_TRY(ks_minibatches_multiply(
        &set, 0, e.minibatches,
        &(struct ks_minibatch_products){
            .vectors = 2,
            .v = (const double *[]){most[0] > 0 ? e.y : NULL, most[1] > 0 ? e.y + e.n : NULL},
            .quotient = (double *[]){e.quotient, e.quotient + e.minibatches}}));
    p->early_error = find_error(&e, most);
    return KS_OK;
}

/* --- the trace --- */

struct sampling {
    struct ks_pipeline *p;
    const struct ks_lanczos *l;
    struct ks_minibatches set;
    size_t n, threads;           /* the dimension; vectors at a time                            */
    size_t minibatches, vectors; /* vectors: that have been multiplied                          */
    double *w;             /* [threads, n]                                                      */
    double *mean, *square; /* [minibatches]: the mean of w'A_i w, and the sum of squared distances
                            * from it                                                          */
    struct ks_arena arena; /* the arrays. Owned */
};

static void lay_out(struct ks_arena *arena, void *object)
{
    struct sampling *s = object;

    s->w = KS_TAKE(arena, s->threads * s->n, double);
    s->mean = KS_TAKE(arena, s->minibatches, double);
    s->square = KS_TAKE(arena, s->minibatches, double);
}

static ks_status sampling_new(struct sampling *s)
{
    s->n = s->p->budget.dimension;
    s->set = new_set(s->p);
    KS_TRY(ks_minibatches_new(&s->set, s->minibatches));
    s->threads = s->set.threads;
    KS_TRY(ks_arena_make(&s->arena, lay_out, s));
    for (size_t t = 0; t < s->threads && !ks_counting(); t++)
        s->set.v[t] = s->w + t * s->n;
    return KS_OK;
}

/* w = (I - P) z, with the vector z of this round and minibatch. */
static void draw(const struct sampling *s, size_t round, size_t minibatch, double *w)
{
    struct ks_rng rng = ks_rng_start(s->p->options->seed + SEED,
                                     round * s->minibatches + minibatch);

    for (size_t i = 0; i < s->n; i++)
        w[i] = ks_rng_uniform(&rng, -1, 1) < 0 ? -1 : 1;
    ks_lanczos_remove(s->l, w);
}

/* One vector for each of the minibatches in the set, from `first` on. */
static ks_status sample(struct sampling *s, size_t round, size_t first)
{
    const size_t count = s->set.made;

    for (size_t t = 0; t < count; t++)
        draw(s, round, first + t, s->w + t * s->n);
    KS_TRY(ks_minibatches_apply(&s->set, s->set.v));
    for (size_t t = 0; t < count; t++) {
        double x = cblas_ddot((int)s->n, s->set.v[t], 1, s->set.list[t].out, 1);
        double *mean = &s->mean[first + t], before = x - *mean;

        if (!isfinite(x))
            return ks_fail(KS_NUMBER, "the trace: a product holds a NaN or an infinity");
        *mean += before / (double)(round + 1);
        s->square[first + t] += before * (x - *mean);
    }
    s->vectors += count;
    return ks_monitor_sample(s->p, s->vectors);
}

/* The rounds [begin, end) of all minibatches. The weight decay is added to the first. */
static ks_status sample_rounds(struct sampling *s, size_t begin, size_t end)
{
    const bool decays = !s->p->problem.omits_decay;

    for (size_t first = 0; first < s->minibatches; first += s->set.threads) {
        KS_TRY(ks_minibatches_make(&s->set, first, s->minibatches));
        if (first == 0 && decays)
            KS_TRY(ks_minibatches_make_one(&s->set, 0, true, 0));
        for (size_t round = begin; round < end; round++)
            KS_TRY(sample(s, round, first));
    }
    return KS_OK;
}

/* The minibatches are strata: the variance of the sum is the sum of their variances, and its
 * degrees of freedom are those of Satterthwaite (Biometrics Bulletin 2, 1946). Sampling stops when
 * an interval happens to be narrow, so all looks together may miss with MISSED: look 1, 2, ... with
 * MISSED / 2, MISSED / 4, ... */
static void estimate(const struct sampling *s, size_t look, struct ks_trace_samples *t)
{
    const double rounds = (double)t->rounds, missed = ldexp(MISSED, -(int)look);
    double variance = 0, spread = 0, freedom;

    t->value = 0;
    for (size_t j = 0; j < s->l->steps; j++)
        t->value += s->l->alpha[j];
    for (size_t i = 0; i < s->minibatches; i++) {
        double of_mean = s->square[i] / (rounds - 1) / rounds;

        t->value += s->mean[i];
        variance += of_mean;
        spread += of_mean * of_mean / (rounds - 1);
    }
    t->se = sqrt(variance);
    freedom = variance * variance / spread;
    t->error = variance > 0
                   ? ks_student_point(freedom, missed / 2) * (1 + SKEW / sqrt(freedom)) * t->se
                   : 0;
}

/* How many rounds are expected to be enough. The estimates from few rounds are uncertain, so their
 * number at most triples. */
static size_t predict(const struct ks_trace_samples *t, double tolerance, size_t most)
{
    const double excess = t->error / (tolerance * fabs(t->value));
    const double rounds = (double)t->rounds;
    const double wanted = fmax(rounds + 1, fmin(ceil(rounds * excess * excess), 3 * rounds));

    return wanted < (double)most ? (size_t)wanted : most;
}

ks_status ks_trace_sample(struct ks_pipeline *p, const struct ks_lanczos *l, double tolerance,
                          size_t most)
{
    struct sampling s = {.p = p, .l = l, .minibatches = p->problem.minibatches};
    ks_status status = KS_OK;
    struct ks_trace_samples *t = &p->trace;
    size_t wanted = (LEAST + s.minibatches - 1) / s.minibatches, look = 0;

    *t = (struct ks_trace_samples){.rounds = 0};
    wanted = wanted < FIRST ? FIRST : wanted > most ? most : wanted;
    KS_GO(sampling_new(&s));
    if (ks_counting()) {
        status = ks_minibatches_make(&s.set, 0, s.minibatches);
        goto done;
    }
    do {
        KS_GO(sample_rounds(&s, t->rounds, wanted));
        t->rounds = wanted;
        estimate(&s, ++look, t);
        wanted = predict(t, tolerance, most);
    } while (t->error > tolerance * fabs(t->value) && t->rounds < most);
done:
    ks_minibatches_clear(&s.set);
    ks_arena_free(&s.arena);
    return status;
}
