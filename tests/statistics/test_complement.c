/* Counts by two runs, the second one in the complement of the first one's Krylov space. */
#include "lanczos/lanczos.h"
#include "spectra.h"
#include "statistics/share_bounds.h"
#include "statistics/shares.h"
#include "trials.h"

enum { MOST = 2000, STEPS = 90 };

/* Both runs of diag(value), whose first `null` entries are known to be zero, and what the counts
 * need of them. */
struct pair {
    size_t null;
    double value[MOST], alpha[2][2 * STEPS], beta[2][2 * STEPS];
    struct ks_share_probe probe[2];
    struct ks_shares_input in;
};

static void take(const struct ks_lanczos *l, size_t k, struct pair *p)
{
    memcpy(p->alpha[k], l->alpha, l->steps * sizeof *l->alpha);
    memcpy(p->beta[k], l->beta, l->steps * sizeof *l->beta);
    p->probe[k] = (struct ks_share_probe){.steps = l->steps,
                                          .alpha = p->alpha[k],
                                          .beta = p->beta[k],
                                          .ended = l->kept + l->steps == l->n,
                                          .start_norm2 = l->start_norm * l->start_norm};
}

static void step_to(struct ks_lanczos *l, size_t steps)
{
    while (l->steps < steps && !l->exhausted)
        assert_ok(ks_lanczos_step(l));
}

static void find_null_weights(const struct ks_lanczos *l, struct pair *p)
{
    const double *next = l->basis + l->kept * l->n;
    size_t touched = 0;

    p->probe[0].null_weight = dot(p->null, l->basis, l->basis);
    if (p->null > 0 && l->kept > 0)
        p->probe[1].null_weight = null_weight_beside(p->null, l->kept, l->n, l->basis, next,
                                                     &touched, &p->in.null_last);
    p->in.n_null_beside = p->null - touched;
}

/* What the steps after those of the first probe are for. */
enum second { NONE, IN_COMPLEMENT, ANOTHER_PROBE };

static void run_pair(struct pair *p, size_t n, size_t first, size_t next, enum second second,
                     uint64_t seed)
{
    struct ks_operator a = DIAGONAL(n, p->value);
    struct ks_lanczos *l;

    p->in = (struct ks_shares_input){.n = n, .n_null = p->null, .probes = 1, .probe = p->probe};
    assert_ok(ks_lanczos_new_for_two(&a, first > next ? first : next, false, &l));
    ks_lanczos_start(l, seed, 0);
    step_to(l, first);
    take(l, 0, p);
    if (second == IN_COMPLEMENT)
        ks_lanczos_start_beside(l, seed);
    else
        ks_lanczos_start(l, seed, 1);
    if (second != NONE) {
        step_to(l, next);
        take(l, 1, p);
        p->in.probes += second == ANOTHER_PROBE;
        p->in.complement = second == IN_COMPLEMENT ? &p->probe[1] : NULL;
    }
    if (second == IN_COMPLEMENT)
        find_null_weights(l, p);
    ks_lanczos_free(l);
    for (size_t i = 0; i < n; i++)
        p->in.abs_max_lower = fmax(p->in.abs_max_lower, fabs(p->value[i]));
    p->in.abs_max_upper = p->in.abs_max_lower;
}

static struct ks_estimate count(struct pair *p, double x)
{
    struct ks_shares shares;

    p->in.count_above = x;
    assert_ok(ks_shares(&p->in, &shares));
    return shares.above;
}

static double truth(const struct pair *p, double x)
{
    double larger = 0;

    for (size_t i = 0; i < p->in.n; i++)
        larger += fabs(p->value[i]) > x;
    return larger;
}

/* If the second run is complete, all Ritz values together say the count but for the terms of rank
 * one at both ends: at every x, between the eigenvalues and at Ritz values of the first run. */
TEST(test_inertia)
{
    enum { ALL = 60, FIRST = 12 };
    static struct pair p;
    struct ks_rng rng = ks_rng_start(5, 0);
    size_t exact = 0, points = 0;

    for (size_t seed = 0; seed < 10; seed++) {
        struct ks_share_bounds *b;
        struct ks_complement *k;

        for (size_t i = 0; i < ALL; i++)
            p.value[i] = ks_rng_normal(&rng) / (1 + (double)(i % 7));
        run_pair(&p, ALL, FIRST, ALL, IN_COMPLEMENT, seed);
        assert_int_equal(p.probe[1].steps, ALL - FIRST);
        assert_ok(ks_share_bounds_new(&p.in, &b));
        assert_ok(ks_complement_new(b, &k));
        for (size_t i = 0; i < 200 + FIRST; i++, points++) {
            const double x = i < 200 ? 3 * (double)(i + 1) / 200
                                     : fabs(b->radau[0]->theta[i - 200]);
            struct ks_estimate found = {NAN, {NAN, NAN}};

            assert_ok(ks_complement_count(k, x, x, 0, &found));
            assert_true(found.in.lower <= truth(&p, x) && truth(&p, x) <= found.in.upper);
            assert_true(found.in.upper - found.in.lower <= 4); /* at a Ritz value two at each end */
            exact += found.in.lower == found.in.upper;
        }
        ks_complement_free(k);
        ks_share_bounds_free(b);
    }
    print_message("%zu of %zu counts are exact\n", exact, points);
    assert_true(exact > points / 10);
}

/* What the first run has found does not count again, with h = 0: single eigenvalues, clusters down
 * to the last digit, and eigenvalues of several dimensions, of which the first run sees one. */
TEST(test_clusters_without_rounding)
{
    static const double top[][8] = {{10, 9, 8, 7, 6, 5, 4, 3},
                                    {10, 10, 10, 10, 5, 5, 5, 5},
                                    {10, 10 + 2e-15, 10 + 4e-15, 5, 5 + 1e-15, -5, -5 - 1e-15, -5},
                                    {10, 10 + 1e-9, 10 - 1e-9, 5 + 1e-6, 5, -5, -5 - 1e-12, -5}};
    static struct pair p;

    for (size_t k = 0; k < sizeof top / sizeof *top; k++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct ks_estimate found;

            for (size_t i = 0; i < 800; i++)
                p.value[i] = i < 8 ? top[k][i] : sin((double)i) * 0.01;
            run_pair(&p, 800, 40, 40, IN_COMPLEMENT, seed);
            found = count(&p, 1);
            assert_close(found.value, 8, 1e-3);
            assert_close(found.in.lower, 8, 0);
            assert_close(found.in.upper, 8, 0);
            found = count(&p, 7.5); /* between clusters */
            assert_close(found.in.lower, truth(&p, 7.5), 0);
            assert_close(found.in.upper, truth(&p, 7.5), 0);
        }
}

/* All eigenvalues but the known zeros count, all 200. The numbers of steps include those after
 * which rounding lets the first run find a second zero, up to some part. */
TEST(test_known_zeros)
{
    enum { OTHERS = 200 };
    static const size_t zeros[] = {2, 400};
    static struct pair p;
    double lower = 0;

    for (size_t z = 0; z < 2; z++)
        for (size_t m = 10; m <= 80; m += 5)
            for (uint64_t seed = 0; seed < 6; seed++) {
                struct ks_estimate found;

                p.null = zeros[z];
                for (size_t i = 0; i < p.null + OTHERS; i++)
                    p.value[i] = i < p.null ? 0 : (i % 2 == 0 ? 1 : -1) * (1 + (double)i / 600);
                run_pair(&p, p.null + OTHERS, m, m, IN_COMPLEMENT, seed);
                p.in.h = 1e-14;
                found = count(&p, 0.5);
                assert_close(found.in.upper, OTHERS, 0);
                assert_true(found.in.lower <= found.value && found.value <= OTHERS);
                lower += found.in.lower / (2 * 15 * 6);
            }
    print_message("mean lower end %.1f of %d\n", lower, OTHERS);
    assert_true(lower > 0.97 * OTHERS);
}

/* Mean upper / lower of the number of eigenvalues above 0.1, with 2m products each, on spectra
 * whose large eigenvalues are no outliers: the manual has this table. */
TEST(test_equal_products)
{
    enum { M = 40, SEEDS = 10 };
    static const size_t counts[] = {10, 20, 40, 80, 160, 320};
    static struct pair p;

    print_message("count / m  complement  two probes  2m steps\n");
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        double width[3] = {0};

        for (size_t i = 0; i < MOST; i++)
            p.value[i] = (i % 3 == 0 ? -1 : 1) * pow(10, -(double)i / (double)counts[c]);
        for (uint64_t run = 0; run < 3 * SEEDS; run++) {
            static const enum second second[] = {IN_COMPLEMENT, ANOTHER_PROBE, NONE};
            const size_t way = run % 3;
            struct ks_estimate found;

            run_pair(&p, MOST, second[way] == NONE ? 2 * M : M, M, second[way], run / 3);
            p.in.h = 1e-14;
            found = count(&p, 0.1);
            assert_true(found.in.lower <= (double)counts[c] && (double)counts[c] <= found.in.upper);
            width[way] += log(found.in.upper / found.in.lower) / SEEDS;
        }
        print_message("%9.4g  %10.2f  %10.2f  %8.2f\n", (double)counts[c] / M, exp(width[0]),
                      exp(width[1]), exp(width[2]));
        assert_true(counts[c] > M || width[0] < fmin(width[1], width[2]));
    }
}
