#include "spectrum/trace_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <omp.h>

#include "core/memory.h"
#include "core/rng.h"
#include "operators/minibatches.h"
#include "spectrum/measurement.h"
#include "statistics/beta_distribution.h"

static const uint64_t SEED = 0x7472616365; /* added to that of the start vectors */
static const double MISSED = 0.01; /* the probability that the interval misses the trace       */
static const double MANY = 2.7;    /* Student's point for it with many degrees of freedom        */
enum { FIRST = 2 };                /* vectors of each minibatch before the first estimate       */

struct sampling {
    const struct ks_measurement *m;
    const struct ks_lanczos *l;
    struct ks_minibatches set;
    size_t minibatches, vectors; /* vectors: that have been multiplied                          */
    double *w;             /* [threads, n]                                                      */
    const double **each;   /* [threads]: the rows of w                                          */
    double *mean, *square; /* [minibatches]: the mean of w'A_i w, and the sum of squared distances
                            * from it                                                          */
};

static void sampling_clear(struct sampling *s)
{
    ks_minibatches_clear(&s->set);
    free(s->w);
    free(s->each);
    free(s->mean);
    free(s->square);
}

static ks_status allocate(struct sampling *s)
{
    const size_t n = s->m->n, memory = s->m->spare / (size_t)omp_get_max_threads();

    KS_TRY(ks_minibatches_new(s->m->analyzed, n, s->minibatches, s->m->analyzed->single, memory,
                              &s->set));
    KS_TRY(ks_alloc(s->set.threads * n, sizeof *s->w, &s->w));
    KS_TRY(ks_alloc(s->set.threads, sizeof *s->each, &s->each));
    KS_TRY(ks_alloc(s->minibatches, sizeof *s->mean, &s->mean));
    for (size_t t = 0; t < s->set.threads; t++)
        s->each[t] = s->w + t * n;
    return ks_alloc(s->minibatches, sizeof *s->square, &s->square);
}

/* w = (I - P) z, with the vector z of this round and minibatch. */
static void draw(const struct sampling *s, size_t round, size_t minibatch, double *w)
{
    struct ks_rng rng = ks_rng_start(s->m->seed + SEED, round * s->minibatches + minibatch);

    for (size_t i = 0; i < s->m->n; i++)
        w[i] = ks_rng_uniform(&rng, -1, 1) < 0 ? -1 : 1;
    ks_lanczos_remove(s->l, w);
}

/* One vector for each of `count` minibatches from `first` on. */
static ks_status sample(struct sampling *s, size_t round, size_t first, size_t count)
{
    for (size_t t = 0; t < count; t++)
        draw(s, round, first + t, s->w + t * s->m->n);
    KS_TRY(ks_minibatches_apply(&s->set, count, s->each));
    for (size_t t = 0; t < count; t++) {
        double x = cblas_ddot((int)s->m->n, s->each[t], 1, s->set.list[t].out, 1);
        double *mean = &s->mean[first + t], before = x - *mean;

        if (!isfinite(x))
            return ks_fail(KS_NUMBER, "the trace: a product holds a NaN or an infinity");
        *mean += before / (double)(round + 1);
        s->square[first + t] += before * (x - *mean);
    }
    s->vectors += count;
    if (s->m->on_sample)
        s->m->on_sample(s->m->context, s->vectors);
    return KS_OK;
}

/* The rounds [begin, end) of all minibatches. The weight decay is added to the first. */
static ks_status sample_rounds(struct sampling *s, size_t begin, size_t end)
{
    const bool decays = !s->m->analyzed->problem.omits_decay;

    for (size_t first = 0; first < s->minibatches; first += s->set.threads) {
        size_t left = s->minibatches - first;
        size_t count = left < s->set.threads ? left : s->set.threads;

        KS_TRY(ks_minibatches_make(&s->set, first, count));
        if (first == 0 && decays)
            KS_TRY(ks_minibatches_make_one(&s->set, 0, true, 0));
        for (size_t round = begin; round < end; round++)
            KS_TRY(sample(s, round, first, count));
    }
    return KS_OK;
}

/* The minibatches are strata: the variance of the sum is the sum of their variances, and its
 * degrees of freedom are those of Satterthwaite (Biometrics Bulletin 2, 1946). */
static void estimate(const struct sampling *s, struct ks_trace_samples *t)
{
    const double rounds = (double)t->rounds;
    double variance = 0, spread = 0;

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
    t->error = variance > 0 ? ks_student_point(variance * variance / spread, MISSED / 2) * t->se
                            : 0;
}

/* How many rounds are expected to be enough. The estimates from few rounds are uncertain, so their
 * number at most triples. */
static size_t predict(const struct ks_trace_samples *t, double tolerance, size_t most)
{
    const double excess = MANY * t->se / (tolerance * fabs(t->value));
    const double rounds = (double)t->rounds;
    const double wanted = fmax(rounds + 1, fmin(ceil(rounds * excess * excess), 3 * rounds));

    return wanted < (double)most ? (size_t)wanted : most;
}

ks_status ks_trace_sample(const struct ks_measurement *m, const struct ks_lanczos *l,
                          double tolerance, size_t most, struct ks_trace_samples *t)
{
    struct sampling s = {.m = m, .l = l, .minibatches = m->analyzed->problem.minibatches};
    ks_status status = KS_OK;
    size_t wanted = FIRST;

    *t = (struct ks_trace_samples){.rounds = 0};
    KS_GO(allocate(&s));
    do {
        KS_GO(sample_rounds(&s, t->rounds, wanted));
        t->rounds = wanted;
        estimate(&s, t);
        wanted = predict(t, tolerance, most);
    } while (t->error > tolerance * fabs(t->value) && t->rounds < most);
done:
    sampling_clear(&s);
    return status;
}

void ks_trace_store(const struct ks_trace_samples *t, struct ks_spectrum *spectrum)
{
    const struct {
        const char *name;
        double value;
    } list[] = {{"trace", t->value},
                {"trace_se", t->se},
                {"trace_lower", t->value - t->error},
                {"trace_upper", t->value + t->error}};

    for (size_t i = 0; t->rounds > 0 && i < spectrum->statistics.n; i++)
        for (size_t k = 0; k < sizeof list / sizeof list[0]; k++)
            if (strcmp(spectrum->statistics.list[i].name, list[k].name) == 0)
                spectrum->statistics.list[i].number = list[k].value;
}
