/* No statement about a spectrum is false, even for spectra made to deceive: those of
 * ../shared/golden/claims, if that folder exists, and others made here. For any order, precision,
 * seed and number of probes. */
#include <omp.h>

#include "critics.h"
#include "programs.h"
#include "statements.h"

#include "core/blas.h"

/* --- critics whose Hessian has a prescribed spectrum --- */

/* One critic and one minibatch of `rows` rows; weights, inputs and targets are 0. */
static struct ks_checkpoint *one_minibatch(const char *text, size_t in, size_t rows)
{
    return blank_critic(text, (struct critic_sizes){1, in, 1, rows, rows});
}

/* Linear regression on `n` orthogonal rows: H = X'X / n = diag(value), with value[i] >= 0. */
static struct ks_checkpoint *diagonal_critic(size_t n, const double *value)
{
    struct ks_checkpoint *c = one_minibatch("dense 1 bias=no\nloss mse\n", n, n);

    for (size_t i = 0; i < n; i++) {
        c->input[i * n + i] = sqrt((double)n) * sqrt(value[i]);
        c->target[i] = 1;
    }
    return c;
}

/* f = sum_k w_2k w_1k x_k at w = 0, where row k is x_k. The only nonzero entries of the Hessian are
 * d2L/dw_1k dw_2k = -x_k t_k / n, so its eigenvalues are +-value[k], k < n. */
static struct ks_checkpoint *symmetric_critic(size_t n, const double *value)
{
    struct ks_checkpoint *c;

    c = one_minibatch(text_of("dense %zu groups=%zu bias=no\ndense 1 bias=no\nloss mse\n", n, n), n,
                      n);
    for (size_t i = 0; i < n; i++) {
        c->input[i * n + i] = (double)n * value[i];
        c->target[i] = 1;
    }
    return c;
}

static const char FOLDER[] = "../shared/golden/claims";

static size_t false_in_all, said_in_all, analyses;

/* Leaves ownership with the caller. The known null directions are those that the analysis projected
 * out. */
static void judge_analysis(const char *name, struct analysis *o, const struct truth *t)
{
    struct tally tally = {{0}, {0}, "", {NULL}};
    size_t certain = 0;

    if (analysis_run(o) != KS_OK)
        fail_msg("%s: %s", name, ks_error_text());
    judge_spectrum(o->spectrum, t, analysis_null(o), true, &tally);
    for (size_t k = 0; k < STATEMENTS; k++) {
        certain += statements[k].certain ? tally.missed[k] : 0;
        false_in_all += tally.missed[k];
        said_in_all += tally.made[k];
    }
    analyses++;
    if (tally.miss[0])
        print_message("%s %s order %zu probes %zu seed %zu%s:%s\n", name, o->single ? "f32" : "f64",
                      o->order, o->probes, (size_t)o->seed, o->exact ? " exact" : "", tally.miss);
    assert_int_equal(certain, 0);
    analysis_clear(o);
}

static void judge_checkpoint(const char *name, const struct ks_checkpoint *c, const struct truth *t)
{
    static const size_t orders[] = {3, 12, 30, 61, 100};

    for (size_t i = 0; i<sizeof orders / sizeof *orders; i += t->n> 500 ? 3 : 1)
        for (size_t run = 0; run < 4; run++) {
            struct analysis o = {.kind = &ks_operator_kinds[0],
                                 .problem = full_problem(c),
                                 .single = run % 2 == 1,
                                 .order = orders[i],
                                 .probes = run < 2 ? 1 : 3,
                                 .complement = run == 1,
                                 .gradient = true,
                                 .seed = run};

            judge_analysis(name, &o, t);
        }
    for (int single = 0; single < 2 && t->n <= 100; single++) {
        struct analysis o = {.kind = &ks_operator_kinds[0],
                             .problem = full_problem(c),
                             .single = single,
                             .exact = true,
                             .order = t->n,
                             .probes = 1};

        judge_analysis(name, &o, t);
    }
}

/* The eigenvalues of offset25 come from a float64 computation, those of the others from their
 * construction. */
static void judge_golden(const char *name)
{
    struct ks_checkpoint *c = read_checkpoint(text_of("%s/%s.h5", FOLDER, name));
    size_t n;
    const double *stored = read_list(text_of("%s/%s.eig.h5", FOLDER, name), "/eigenvalues", &n);
    double *value = memcpy(calloc(n, sizeof *value), stored, n * sizeof *value); /* t frees it */
    struct truth t = truth_new(n, value, strcmp(name, "offset25") == 0 ? 1e-11 : 1e-15);

    judge_checkpoint(name, c, &t);
    truth_clear(&t);
}

TEST(test_golden_claims)
{
    assert_true(each_file(FOLDER, ".eig.h5", judge_golden) >= 6);
}

/* `pairs`: the eigenvalues are these values and their negatives. */
static void judge_made(const char *name, size_t n, const double *value, bool pairs)
{
    struct ks_checkpoint *c = pairs ? symmetric_critic(n, value) : diagonal_critic(n, value);
    size_t all = pairs ? 2 * n : n;
    double *truth = malloc(all * sizeof *truth);
    struct truth t;

    for (size_t i = 0; i < n; i++) {
        truth[i] = value[i];
        if (pairs)
            truth[n + i] = -value[i];
    }
    t = truth_new(all, truth, 1e-15);
    judge_checkpoint(name, c, &t);
    ks_checkpoint_free(c);
    truth_clear(&t);
}

enum { MOST = 200 };

TEST(test_made)
{
    double value[MOST];

    for (size_t i = 0; i < MOST; i++) /* a bulk that a short Krylov space cannot resolve */
        value[i] = i < 5 ? 1 - 0.1 * (double)i : 1e-4 * (1 + (double)i / MOST);
    judge_made("+- bulk", MOST, value, true);
    for (size_t i = 0; i < 20; i++)
        value[i] = i < 10 ? 1 : i < 15 ? 0.5 : 1e-3;
    judge_made("20 eigenvalues", 20, value, false);
    for (size_t i = 0; i < 60; i++)
        value[i] = i < 50 ? 1 : i < 58 ? 5e-13 : 5e-15;
    judge_made("small ones", 60, value, false);
    for (size_t i = 0; i < 3; i++)
        value[i] = 1e-46 * ((double)i + 1);
    judge_made("tiny", 3, value, false);
    for (size_t i = 0; i < 3; i++)
        value[i] = 1e60 * ((double)i + 1);
    judge_made("huge", 3, value, false);
    for (size_t i = 0; i < MOST; i++)
        value[i] = i % 3 == 0 ? 5 : 1;
    judge_made("two values", MOST, value, false);
    for (size_t i = 0; i < 50; i++)
        value[i] = 2;
    judge_made("identity", 50, value, false);
    judge_made("+-", 50, value, true);
    for (size_t i = 0; i < 50; i++)
        value[i] = 0;
    judge_made("zero", 50, value, false);
    value[7] = 3;
    judge_made("rank 1", 50, value, false);
    for (size_t i = 0; i < 100; i++)
        value[i] = pow(10, -0.25 * (double)i);
    judge_made("25 decades", 100, value, false);
    judge_made("+- 25 decades", 100, value, true);
    print_message("%zu analyses, %zu statements, %zu false\n", analyses, said_in_all, false_in_all);
    assert_true(false_in_all <= most_misses(said_in_all, 0.0025));
}

/* Inputs far from zero before a dense layer and a batchnorm, which is invariant to the shift. The
 * true spectrum is that of the inputs without the shift. */
TEST(test_offset)
{
    static const double offsets[] = {25, 1e3, 1e5};
    enum { IN = 3, ROWS = 16 };

    for (size_t k = 0; k < 3; k++) {
        struct ks_checkpoint *c = one_minibatch("dense 3\nbatchnorm\nrelu\ndense 1\nloss mse\n", IN,
                                                ROWS);
        struct ks_rng rng = ks_rng_start(77, k);
        struct analysis o = {.kind = &ks_operator_kinds[0], .problem = full_problem(c)};
        size_t n = c->critic.arch->parameters;
        double asymmetry, *matrix, *value = malloc(n * sizeof *value);
        struct truth t;

        for (size_t i = 0; i < n; i++)
            c->critic.w[i] = ks_rng_normal(&rng);
        for (size_t i = 0; i < IN * ROWS; i++) /* so that adding the shift is exact */
            c->input[i] = rint(1024 * ks_rng_normal(&rng)) / 1024;
        for (size_t i = 0; i < ROWS; i++)
            c->target[i] = ks_rng_normal(&rng);
        assert_ok(ks_selection_new(&o.problem, false, &o.selection));
        assert_ok(analysis_matrix(&o, false, &matrix, &asymmetry));
        analysis_clear(&o);
        assert_int_equal(LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', (int)n, matrix, (int)n, value),
                         0);
        t = truth_new(n, value, 1e-12);
        for (size_t i = 0; i < IN * ROWS; i++)
            c->input[i] += offsets[k];
        judge_checkpoint("offset", c, &t);
        free(matrix);
        ks_checkpoint_free(c);
        truth_clear(&t);
    }
}

/* The program gives the same statistics as the functions called here. */
TEST(test_program)
{
    const double value[] = {1, 0.3, 1e-2, 1e-3, 1e-3, 1e-6, 2, 0.25, 0.125, 4e-5};
    struct ks_checkpoint *c = symmetric_critic(10, value);

    /* The program would choose a faster kernel than OpenBLAS did in this process. */
    assert_int_equal(setenv("OPENBLAS_CORETYPE", ks_blas_kernel(), 0), 0);
    c->critic.w[3] = 0.1; /* so that the gradient is not zero */
    assert_ok(ks_checkpoint_write(scratch("made.h5"), c, false));
    for (int exact = 0; exact < 2; exact++) {
        struct analysis o = {.kind = &ks_operator_kinds[0],
                             .problem = full_problem(c),
                             .single = true,
                             .exact = exact,
                             .gradient = true,
                             .order = 35,
                             .probes = 2,
                             .seed = 4};
        struct ks_spectrum *s;

        assert_ok(analysis_run(&o));
        assert_runs("%s --precision f32 -o . made.h5",
                    exact ? "--exact" : "--order 35 --probes 2 --seed 4 --start gradient");
        assert_ok(ks_spectrum_read(scratch("made.spectrum.h5"), &s));
        for (size_t i = 0; i < o.spectrum->statistics.n; i++) {
            const char *name = o.spectrum->statistics.list[i].name;
            double found = ks_statistic(s, name), expected = ks_statistic(o.spectrum, name);

            if (!(found == expected || (isnan(found) && isnan(expected))))
                fail_msg("%s: %.17g of the program, %.17g here", name, found, expected);
        }
        ks_spectrum_free(s);
        analysis_clear(&o);
    }
    ks_checkpoint_free(c);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;

int main(void)
{
    /* problems of microseconds: several threads would only wait for each other */
    omp_set_num_threads(1);
    return run_all_tests();
}
