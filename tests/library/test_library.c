/* The public header: checkpoints from files and from memory against the analyzer, products against
 * the internal operators, the caller's own operators with known spectra, and threads. */
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>

#include "handles.h"

#include "core/blas.h"

/* --- against the analyzer --- */

static void assert_same_bytes(const char *a, const char *b)
{
    size_t n, m;
    unsigned char *x = read_bytes(a, &n), *y = read_bytes(b, &m);

    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

/* The analyzer and the library write identical spectrum files. */
static void compare(const char *name, const struct kappascope_problem *problem,
                    const struct kappascope_slq_options *options, const char *arguments)
{
    struct kappascope_checkpoint *checkpoint;
    struct kappascope_operator *a;
    struct kappascope_spectrum *s;
    const char *theirs = file(text_of("%s.spectrum", name));

    assert_runs("--operator %s %s '%s'", problem->kind, arguments, file(name));
    assert_done(kappascope_checkpoint_read(file(name), &checkpoint));
    assert_done(kappascope_operator_new(checkpoint, problem, &a));
    if (options)
        assert_done(kappascope_slq(a, options, &s));
    else
        assert_done(kappascope_exact(a, &s));
    assert_done(kappascope_spectrum_write(s, scratch("ours.h5")));
    assert_same_bytes(theirs, scratch("ours.h5"));
    kappascope_spectrum_free(s);
    kappascope_operator_free(a);
    kappascope_checkpoint_free(checkpoint);
}

TEST(test_analyzer)
{
    struct ks_checkpoint *c = make_projected();
    struct kappascope_problem problem;
    struct kappascope_slq_options slq;
    const char *kind;

    save("projected", c);
    kappascope_problem_defaults(&problem);
    kappascope_slq_defaults(&slq);
    slq.order = 40;
    slq.probes = 2;
    slq.seed = 5;
    for (size_t i = 0; (kind = kappascope_operator_kind(i)); i++) {
        problem.kind = kind;
        compare("projected", &problem, &slq, "--order 40 --probes 2 --seed 5");
        compare("projected", &problem, NULL, "--exact");
    }
    problem = (struct kappascope_problem){.kind = "hessian",
                                          .precision = KAPPASCOPE_F64,
                                          .evaluation = true,
                                          .minibatches = 2,
                                          .weight_decay = 0.01,
                                          .scale = 3,
                                          .critic = 1,
                                          .layer = 1};
    slq = (struct kappascope_slq_options){.order = 10, .probes = 1, .gradient = true};
    compare("bn+ce", &problem, &slq,
            "--precision f64 --batchnorm eval --batches 2 --weight-decay 0.01 --scale 3 --critic 1 "
            "--layer 1 --order 10 --start gradient --no-certificates");
    kappascope_problem_defaults(&problem);
    kappascope_slq_defaults(&slq);
    for (size_t i = 0; i < ARCHS; i++)
        compare(archs[i].name, &problem, &slq, "");
}

/* --- checkpoints from memory, and products --- */

static void assert_same_spectrum(const struct kappascope_spectrum *s,
                                 const struct kappascope_spectrum *t)
{
    const char *name;
    size_t m = kappascope_spectrum_steps(s, 0);

    assert_int_equal(m, kappascope_spectrum_steps(t, 0));
    assert_memory_equal(kappascope_spectrum_ritz(s, 0), kappascope_spectrum_ritz(t, 0),
                        m * sizeof(double));
    for (size_t i = 0; (name = kappascope_spectrum_statistic_name(s, i)); i++) {
        double x = kappascope_spectrum_statistic(s, name),
               y = kappascope_spectrum_statistic(t, name);

        assert_true(memcmp(&x, &y, sizeof x) == 0);
    }
}

static struct kappascope_spectrum *quadrature(const struct kappascope_checkpoint *checkpoint)
{
    struct kappascope_problem problem;
    struct kappascope_slq_options slq;
    struct kappascope_operator *a;
    struct kappascope_spectrum *s;

    kappascope_problem_defaults(&problem);
    kappascope_slq_defaults(&slq);
    slq.order = 30;
    assert_done(kappascope_operator_new(checkpoint, &problem, &a));
    assert_done(kappascope_slq(a, &slq, &s));
    kappascope_operator_free(a);
    return s;
}

TEST(test_memory_and_file)
{
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_checkpoint *c = make(archs[i].text);
        struct kappascope_checkpoint *memory = from_memory(c), *read;
        struct kappascope_sizes sizes, described;
        struct kappascope_spectrum *s, *t;

        assert_done(kappascope_checkpoint_read(file(archs[i].name), &read));
        assert_done(kappascope_checkpoint_sizes(read, &sizes));
        assert_done(kappascope_arch_sizes(archs[i].text, IN, &described));
        assert_int_equal(sizes.parameters, c->critic.arch->parameters);
        assert_int_equal(described.parameters, sizes.parameters);
        assert_int_equal(described.targets, sizes.targets);
        assert_int_equal(sizes.minibatches, MINIBATCHES);
        assert_int_equal(sizes.loss_rows, LOSS_ROWS);
        s = quadrature(memory);
        t = quadrature(read);
        assert_same_spectrum(s, t);
        assert_contains(kappascope_spectrum_claim(s), "eigenvalues of H");
        kappascope_spectrum_free(s);
        kappascope_spectrum_free(t);
        kappascope_checkpoint_free(memory);
        kappascope_checkpoint_free(read);
    }
}

TEST(test_apply)
{
    struct ks_checkpoint *c = make(archs[0].text);
    const size_t n_all = ENSEMBLE * c->critic.arch->parameters;
    const struct ks_problem inside = {
        .checkpoint = c, .minibatches = MINIBATCHES, .scale = 1, .critic = -1, .layer = -1};
    struct kappascope_checkpoint *checkpoint = from_memory(c);
    struct kappascope_problem problem;
    struct kappascope_operator *all, *block;
    struct ks_operator *a;
    struct ks_rng rng = ks_rng_start(8, 0);
    double *v = hold(numbers(&rng, n_all)), *expected = hold(numbers(&rng, n_all)),
           *found = hold(numbers(&rng, n_all));
    size_t *index = hold(calloc(n_all, sizeof *index)), n;

    assert_ok(ks_hessian_new_f64(&inside, &a));
    assert_ok(ks_operator_prepare(a, SIZE_MAX / 2));
    kappascope_problem_defaults(&problem);
    problem.precision = KAPPASCOPE_F64;
    assert_done(kappascope_operator_new(checkpoint, &problem, &all));
    assert_int_equal(kappascope_operator_dimension(all), n_all);
    assert_ok(ks_operator_apply(a, v, expected));
    assert_done(kappascope_operator_apply(all, v, found));
    assert_memory_equal(expected, found, n_all * sizeof *v);
    problem.critic = 1, problem.layer = 1;
    assert_done(kappascope_operator_new(checkpoint, &problem, &block));
    n = kappascope_operator_dimension(block);
    assert_done(kappascope_operator_coordinates(block, index));
    assert_true(n < n_all && index[0] >= n_all / 2);
    for (size_t i = 0, k = 0; i < n_all; i++) /* zero off the block */
        v[i] = k < n && index[k] == i ? (k++, v[i]) : 0;
    assert_ok(ks_operator_apply(a, v, expected));
    for (size_t k = 0; k < n; k++) {
        v[k] = v[index[k]];
        expected[k] = expected[index[k]];
    }
    assert_done(kappascope_operator_apply(block, v, found));
    assert_close(relative_error(n, found, expected), 0, 1e-14);
    ks_operator_free(a);
    kappascope_operator_free(block);
    kappascope_operator_free(all);
    kappascope_checkpoint_free(checkpoint);
}

/* --- the caller's operators --- */

/* The identity. It fails if the locale is the caller's, or if its decimal character is not a point,
 * or its encoding not the caller's. */
static int identity(void *before, const double *v, double *out)
{
    *out = *v;
    return uselocale((locale_t)0) == *(locale_t *)before ||
           strcmp(localeconv()->decimal_point, ".") || strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* Numbers have a point in every locale, here in one with a comma if this system has one. The locale
 * stays the caller's. */
TEST(test_locale)
{
    locale_t comma = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t)0);
    locale_t own = comma ? comma : newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = uselocale(own);
    struct kappascope_sizes sizes;
    struct kappascope_operator *a;
    double x = 1, y;

    assert_true(own != (locale_t)0);
    assert_done(kappascope_arch_sizes("layernorm eps=0.5\ndense 1\nloss mse\n", 3, &sizes));
    assert_done(kappascope_operator_from_product(1, identity, &own, &a));
    assert_done(kappascope_operator_apply(a, &x, &y));
    assert_true(uselocale(before) == own);
    freelocale(own);
    kappascope_operator_free(a);
}

TEST(test_callback)
{
    struct counting c = {.n = 60};
    struct kappascope_operator *a;
    struct kappascope_slq_options slq;
    struct kappascope_spectrum *s, *t;
    struct kappascope_density density;
    double integral = 0;

    assert_done(kappascope_operator_from_product(c.n, count_up, &c, &a));
    kappascope_slq_defaults(&slq);
    slq.order = 60, slq.probes = 2;
    assert_done(kappascope_slq(a, &slq, &s));
    for (size_t i = 0; i < c.n; i++)
        assert_close(kappascope_spectrum_ritz(s, 1)[i], (double)(i + 1), 1e-10);
    assert_close(kappascope_spectrum_statistic(s, "kappa"), 60, 1e-9);
    assert_close(kappascope_spectrum_certificate(s, "largest_quotient"), 60, 1e-10);
    assert_close(kappascope_spectrum_statistic(s, "product_error"), 0, 1e-12);
    assert_true(isnan(kappascope_spectrum_statistic(s, "null_dimension")));
    assert_contains(kappascope_spectrum_claim(s), "60 of the 60 eigenvalues of the operator");
    assert_done(kappascope_spectrum_density(s, &density));
    for (size_t i = 1; i < density.points; i++)
        integral += (density.grid[i] - density.grid[i - 1]) *
                    (density.density[i] + density.density[i - 1]) / 2;
    assert_close(integral, 1, 1e-6);
    assert_done(kappascope_spectrum_write(s, scratch("mine.h5")));
    assert_done(kappascope_spectrum_read(scratch("mine.h5"), &t));
    assert_same_spectrum(s, t);
    kappascope_spectrum_free(s);
    kappascope_spectrum_free(t);
    /* gives bounds for the eigenvalues that twelve iterations do not find */
    slq.order = 12, slq.probes = 3;
    assert_done(kappascope_slq(a, &slq, &s));
    assert_true(kappascope_spectrum_statistic(s, "lambda_max") <= 60 + 1e-12);
    assert_true(kappascope_spectrum_statistic(s, "lambda_max_upper") >= 60);
    assert_true(kappascope_spectrum_statistic(s, "kappa_effective_bound") <= 60 * (1 + 1e-9));
    assert_true(kappascope_spectrum_statistic(s, "kappa_effective_bound") > 2);
    kappascope_spectrum_free(s);
    assert_done(kappascope_exact(a, &s));
    for (size_t i = 0; i < c.n; i++)
        assert_close(kappascope_spectrum_ritz(s, 0)[i], (double)(i + 1), 1e-12);
    assert_null(kappascope_spectrum_alpha(s, 0));
    assert_true(kappascope_spectrum_statistic(s, "trace_lower") < 1830);
    assert_close(kappascope_spectrum_statistic(s, "trace_upper"), 1830, 1e-9);
    kappascope_spectrum_free(s);
    kappascope_operator_free(a);
}

/* diag(1 .. n) with a relative error of float32, which differs from entry to entry. */
static int count_up_roughly(void *context, const double *x, double *y)
{
    struct counting *c = context;

    for (size_t i = 0; i < c->n; i++)
        y[i] = (double)(float)((double)(i + 1) * (1 + 1e-7 * (double)(i % 3)) * x[i]);
    return 0;
}

/* Bounds of products in float32 are certified by products in float64, where there are any. */
TEST(test_float32)
{
    struct counting c = {.n = 60};
    struct kappascope_request request = {.options = 0};
    struct kappascope_option exact = {"exact", "yes"};
    struct kappascope_operator *a;
    struct kappascope_spectrum *s;

    assert_done(kappascope_operator_from_products(c.n, count_up_roughly, count_up, &c, &a));
    assert_done(kappascope_operator_analyze(a, &request, &s));
    assert_true(kappascope_spectrum_statistic(s, "product_error") > 1e-9);
    assert_true(kappascope_spectrum_statistic(s, "lambda_max") <= 60 * (1 + 1e-14));
    assert_true(kappascope_spectrum_statistic(s, "lambda_max_upper") >= 60);
    assert_null(strstr(kappascope_spectrum_claim(s), "uncertified"));
    kappascope_spectrum_free(s);
    request = (struct kappascope_request){.options = 1, .option = &exact};
    assert_refuses(kappascope_operator_analyze(a, &request, &s), KAPPASCOPE_USAGE, "in float64");
    kappascope_operator_free(a);
    request.options = 0;
    assert_done(kappascope_operator_from_products(c.n, count_up_roughly, NULL, &c, &a));
    assert_done(kappascope_operator_analyze(a, &request, &s));
    assert_true(isnan(kappascope_spectrum_certificate(s, "largest_quotient")));
    assert_contains(kappascope_spectrum_claim(s), "uncertified");
    kappascope_spectrum_free(s);
    kappascope_operator_free(a);
}

/* --- by the options of the analyzer --- */

static int count_calls(void *watcher, size_t done, size_t products)
{
    size_t *calls = watcher;

    assert_true(done <= products);
    return ++*calls == 7;
}

TEST(test_request)
{
    static const struct kappascope_option options[] = {{"order", "20"},
                                                       {"operator", "ggn"},
                                                       {"tolerance", "lambda_max=0.1"},
                                                       {"weight-decay", "0.25"},
                                                       {"no-certificates", "yes"}};
    struct kappascope_request request = {.options = 5, .option = options};
    struct kappascope_option one = {"json", "yes"};
    struct counting c = {.n = 60};
    struct kappascope_operator *a;
    struct kappascope_spectrum *s;
    struct kappascope_statistic statistic;
    struct kappascope_attribute attribute;
    struct kappascope_array array;
    size_t calls = 0, i = 0;

    assert_runs("--order 20 --operator ggn --tolerance lambda_max=0.1 --weight-decay 0.25 "
                "--no-certificates '%s'",
                file("bn+ce"));
    assert_done(kappascope_analyze(file("bn+ce"), &request, &s));
    assert_done(kappascope_spectrum_write(s, scratch("ours.h5")));
    assert_same_bytes(file("bn+ce.spectrum"), scratch("ours.h5"));
    do
        assert_done(kappascope_spectrum_attribute(s, i++, &attribute));
    while (strcmp(attribute.name, "checkpoint") != 0);
    assert_string_equal(attribute.text, file("bn+ce"));
    i = 0;
    do
        assert_done(kappascope_spectrum_array(s, i++, &array));
    while (strcmp(array.name, "/ritz/value") != 0);
    assert_true(array.values == kappascope_spectrum_ritz(s, 0));
    assert_refuses(kappascope_spectrum_array(s, 99, &array), KAPPASCOPE_USAGE, "no more");
    for (i = 0; kappascope_spectrum_reading(s, i, &statistic) == KAPPASCOPE_OK; i++)
        if (strcmp(statistic.name, "lambda_max") == 0) {
            assert_string_equal(statistic.what, "bound");
            assert_true(statistic.value == kappascope_spectrum_statistic(s, "lambda_max"));
            assert_true(statistic.upper == kappascope_spectrum_statistic(s, "lambda_max_upper"));
        }
    assert_true(i > 5);
    kappascope_spectrum_free(s);
    request = (struct kappascope_request){1, &one, NULL, NULL};
    assert_refuses(kappascope_analyze(file("bn+ce"), &request, &s), KAPPASCOPE_USAGE, "json: ");
    one = (struct kappascope_option){"ordre", "4"};
    assert_refuses(kappascope_analyze(file("bn+ce"), &request, &s), KAPPASCOPE_USAGE, "'ordre'");
    one = (struct kappascope_option){"order", "0"};
    assert_refuses(kappascope_analyze(file("bn+ce"), &request, &s), KAPPASCOPE_USAGE,
                   "from 1 to 10000, found '0'");
    /* a watcher counts products, and ends the analysis */
    request = (struct kappascope_request){0, NULL, count_calls, &calls};
    assert_refuses(kappascope_analyze(file("bn+ce"), &request, &s), KAPPASCOPE_RUN,
                   "stopped after ");
    calls = 0;
    assert_done(kappascope_operator_from_product(c.n, count_up, &c, &a));
    assert_refuses(kappascope_operator_analyze(a, &request, &s), KAPPASCOPE_RUN,
                   "stopped after 7 of 90");
    request = (struct kappascope_request){1, &one, NULL, NULL};
    one = (struct kappascope_option){"weight-decay", "1"};
    assert_refuses(kappascope_operator_analyze(a, &request, &s), KAPPASCOPE_USAGE,
                   "found an operator");
    one = (struct kappascope_option){"start", "gradient"};
    assert_refuses(kappascope_operator_analyze(a, &request, &s), KAPPASCOPE_USAGE, "a gradient");
    one = (struct kappascope_option){"tolerance", "trace=0.05,directions_1e2=1"};
    assert_done(kappascope_operator_analyze(a, &request, &s));
    assert_close(kappascope_spectrum_statistic(s, "trace"), 1830, 100);
    kappascope_spectrum_free(s);
    /* the options of one analysis are not those of the next one */
    one = (struct kappascope_option){"count-above", "3"};
    assert_done(kappascope_operator_analyze(a, &request, &s));
    assert_false(isnan(kappascope_spectrum_statistic(s, "directions_above_lower")));
    kappascope_spectrum_free(s);
    assert_done(kappascope_exact(a, &s));
    assert_true(isnan(kappascope_spectrum_statistic(s, "directions_above_lower")));
    kappascope_spectrum_free(s);
    kappascope_operator_free(a);
}

/* A Q - Q T = beta q_m e_m'. For a start vector with three components the Krylov space ends after
 * three iterations. */
TEST(test_lanczos)
{
    enum { N = 50, M = 12 };
    struct counting c = {.n = N};
    struct kappascope_lanczos_options options = {.order = M, .seed = 4, .probe = 2};
    struct kappascope_operator *a;
    double alpha[M], beta[M], basis[(M + 1) * N], image[N], start[N] = {1, 2, 3};
    struct kappascope_recurrence t = {.alpha = alpha, .beta = beta, .basis = basis};
    const struct kappascope_rule rule = {.ritz = image, .weight = basis, .residual = basis + M};

    assert_done(kappascope_operator_from_product(N, count_up, &c, &a));
    assert_done(kappascope_lanczos(a, &options, &t));
    assert_int_equal(t.steps, M);
    for (size_t j = 0; j < M; j++) {
        const double *q = basis + j * N;

        assert_done(kappascope_operator_apply(a, q, image));
        for (size_t i = 0; i < N; i++)
            assert_close(
                image[i],
                (j > 0 ? beta[j - 1] * q[i - N] : 0) + alpha[j] * q[i] + beta[j] * q[i + N], 1e-11);
    }
    options.start = start;
    t.basis = NULL;
    assert_done(kappascope_lanczos(a, &options, &t));
    assert_int_equal(t.steps, 3);
    assert_done(kappascope_ritz(t.steps, alpha, beta, &rule));
    for (size_t i = 0; i < 3; i++) {
        assert_close(image[i], (double)(i + 1), 1e-12);
        assert_close(basis[i], (double)((i + 1) * (i + 1)) / 14, 1e-12);
    }
    kappascope_operator_free(a);
}

/* --- threads --- */

struct thread {
    const struct kappascope_checkpoint *checkpoint;
    const struct kappascope_spectrum *expected;
    const char *words; /* of the failure in this thread */
    size_t wrong;
};

static void *work(void *argument)
{
    struct thread *t = argument;
    struct kappascope_checkpoint *none;

    for (size_t i = 0; i < 20; i++) {
        struct kappascope_spectrum *s, *read = NULL;
        char path[512];

        snprintf(path, sizeof path, "%s/%s.h5", scratch_folder, t->words);
        t->wrong += kappascope_checkpoint_read(t->words, &none) != KAPPASCOPE_IO;
        s = quadrature(t->checkpoint);
        t->wrong += kappascope_spectrum_write(s, path) != KAPPASCOPE_OK;
        t->wrong += kappascope_spectrum_read(path, &read) != KAPPASCOPE_OK;
        t->wrong += !read || kappascope_spectrum_steps(read, 0) != 30 ||
                    memcmp(kappascope_spectrum_ritz(read, 0),
                           kappascope_spectrum_ritz(t->expected, 0), 30 * sizeof(double)) != 0;
        t->wrong += !strstr(kappascope_error(), t->words);
        kappascope_spectrum_free(s);
        kappascope_spectrum_free(read);
    }
    return NULL;
}

TEST(test_threads)
{
    enum { THREADS = 2 };
    static const char *const words[THREADS] = {"one", "two"};
    struct ks_checkpoint *c = make(archs[0].text);
    struct kappascope_checkpoint *k = from_memory(c);
    struct kappascope_spectrum *expected = quadrature(k);
    struct thread thread[THREADS];
    pthread_t id[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        thread[i] = (struct thread){.checkpoint = k, .expected = expected, .words = words[i]};
        assert_int_equal(pthread_create(&id[i], NULL, work, &thread[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(id[i], NULL), 0);
        assert_int_equal(thread[i].wrong, 0);
    }
    kappascope_spectrum_free(expected);
    kappascope_checkpoint_free(k);
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;

int main(int argc, char **argv)
{
    (void)argc;
    ks_blas_start(argv);
    return run_all_tests();
}
