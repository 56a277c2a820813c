/* --eigenvectors, on small checkpoints that the test writes, against the dense matrix. */
#include "small_critics.h"
#include "spectra.h"

enum { COUNT = 5 };

/* What the output file has beside the vectors. */
struct tables {
    double value[COUNT], residual[COUNT], gradient[COUNT], *share;
    size_t layers;
};

static struct tables read_tables(const char *name)
{
    static const char *const columns[] = {"/eigenvalue", "/residual", "/gradient_share"};
    struct tables t;
    double *const to[] = {t.value, t.residual, t.gradient};
    struct ks_h5_shape shape;
    struct ks_h5 *h5;
    size_t n;

    for (size_t i = 0; i < 3; i++) {
        const double *values = read_list(file(name), columns[i], &n);

        assert_int_equal(n, COUNT);
        memcpy(to[i], values, COUNT * sizeof *values);
    }
    assert_ok(ks_h5_open(file(name), "kappascope-vector", &h5));
    assert_ok(ks_h5_shape(h5, "/layer_share", &shape));
    assert_ok(ks_h5_read_new(h5, "/layer_share", &shape, &t.share));
    hold(t.share);
    assert_int_equal(shape.dims[0], COUNT);
    t.layers = shape.dims[1];
    ks_h5_close(h5);
    return t;
}

static int descending(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x < y) - (x > y);
}

/* The squares of y in the parameters of each layer that has some, in all critics. */
static void check_shares(const char *text, const double *y, const double *share, size_t layers)
{
    struct KS(arch) *arch;
    size_t found = 0;
    double sum = 0;

    assert_ok(ks_arch_parse_f64(text, "test", IN, &arch));
    for (size_t k = 0; k < arch->n_layers; k++) {
        const struct KS(layer) *l = &arch->layer[k];
        double square = 0;

        if (l->parameters == 0)
            continue;
        for (size_t e = 0; e < ENSEMBLE; e++)
            for (size_t i = 0; i < l->parameters; i++)
                square += pow(y[e * arch->parameters + l->offset + i], 2);
        assert_close(share[found++], square, 1e-12);
        sum += square;
    }
    assert_int_equal(found, layers);
    assert_close(sum, 1, 1e-12);
    ks_arch_free_f64(arch);
}

/* Every row against the dense matrix h: the eigenvalue is the next by modulus, or from the smallest
 * on, the residual is that of the stored vector, the gradient's share is its squared cosine. */
static void check_rows(size_t k, const double *h, bool smallest)
{
    const size_t n = dimension(archs[k].text);
    double *expected = eigenvalues(n, h), *image = hold(calloc(n, sizeof *image));
    const double size = fmax(fabs(expected[0]), fabs(expected[n - 1])), *y, *g;
    struct tables t;

    if (!smallest)
        qsort(expected, n, sizeof *expected, descending);
    assert_true(!smallest || expected[COUNT] < 0);
    assert_runs("--gradient g.h5 %s.h5", archs[k].name);
    assert_runs("--eigenvectors %d --which %s --tolerance 1e-6 --output e.h5 --precision f64 %s.h5",
                COUNT, smallest ? "smallest" : "largest", archs[k].name);
    assert_shows(smallest ? "5 eigenvectors of smallest eigenvalue that were found"
                          : "5 eigenvectors of largest |eigenvalue| that were found");
    g = read_vectors("g.h5", n, 1);
    y = read_vectors("e.h5", n, COUNT);
    t = read_tables("e");
    for (size_t i = 0; i < COUNT; i++) {
        const double *v = y + i * n;
        double cosine = cblas_ddot((int)n, v, 1, g, 1) / cblas_dnrm2((int)n, g, 1);

        assert_close(t.value[i], expected[i], 1e-9 * size);
        assert_true(t.residual[i] <= 1e-6 * fabs(t.value[i]));
        assert_close(cblas_dnrm2((int)n, v, 1), 1, 1e-12);
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)n, 1, h, (int)n, v, 1, 0, image, 1);
        cblas_daxpy((int)n, -t.value[i], v, 1, image, 1);
        assert_close(t.residual[i], cblas_dnrm2((int)n, image, 1), 1e-11 * size);
        assert_close(t.gradient[i], cosine * cosine, 1e-12);
        check_shares(archs[k].text, v, t.share + i * t.layers, t.layers);
    }
}

TEST(test_against_dense)
{
    for (size_t k = 0; k < ARCHS; k++) {
        const double *h = dense_hessian(archs[k].name, dimension(archs[k].text));

        check_rows(k, h, false);
        check_rows(k, h, true);
    }
    assert_runs("--eigenvectors 2 --which smallest --json --output e.h5 bn+ce.h5");
    assert_shows("\"which\":\"smallest\"");
    assert_runs("--apply e.h5 --output o.h5 bn+ce.h5"); /* which reads the file's attributes */
}

/* Residuals of float32 products are those that float64 products show, and a warning says if that is
 * more than was asked for. */
TEST(test_single_precision)
{
    struct tables wide, single;

    assert_runs("--eigenvectors %d --tolerance 1e-9 --output e.h5 --precision f64 bn+ce.h5", COUNT);
    assert_null(strstr(complained, "relative residual"));
    wide = read_tables("e");
    assert_runs("--eigenvectors %d --tolerance 1e-9 --output e.h5 bn+ce.h5", COUNT);
    single = read_tables("e");
    assert_complains("relative residual above 1e-09 by products in float64: use "
                     "--precision f64");
    for (size_t i = 0; i < COUNT; i++) {
        assert_close(single.value[i], wide.value[i], 1e-9 * fabs(wide.value[0]));
        assert_true(single.residual[i] > wide.residual[i]);
        assert_true(single.residual[i] < 1e-5 * fabs(wide.value[0]));
    }
}

/* To a coarse tolerance a Ritz value converges in a few steps; but the search goes on until a
 * modulus that is larger by more than the tolerance is excluded. */
TEST(test_largest_of_all)
{
    static const double tolerances[] = {0.3, 0.1, 0.03};

    for (size_t i = 0; i < ARCHS; i++) {
        struct tables t;

        assert_runs("--eigenvectors %d --tolerance 1e-8 --output e.h5 --precision f64 %s.h5", COUNT,
                    archs[i].name);
        t = read_tables("e");
        for (size_t k = 0; k < 3; k++) {
            const double *found;
            size_t n;

            assert_runs("--eigenvectors 1 --tolerance %g --output o.h5 --precision f64 %s.h5",
                        tolerances[k], archs[i].name);
            found = read_list(file("o"), "/eigenvalue", &n);
            if (!(fabs(*found) >= fabs(t.value[0]) / (1 + tolerances[k])))
                fail_msg("%s, tolerance %g: %g, expected %g", archs[i].name, tolerances[k], *found,
                         t.value[0]);
        }
    }
}

/* In a block, vectors are zero outside of it. */
TEST(test_block)
{
    size_t n = dimension(archs[1].text);
    double *y;

    assert_runs("--eigenvectors 2 --critic 1 --output e.h5 bn+mse.h5");
    y = read_vectors("e.h5", n, 2);
    for (size_t i = 0; i < n / ENSEMBLE; i++)
        assert_true(y[i] == 0);
    assert_close(cblas_dnrm2((int)n, y, 1), 1, 1e-12);
}

/* With too few steps what was found is written with its residuals, and the exit status says so. */
TEST(test_too_few_steps)
{
    const size_t n = dimension(archs[0].text);
    struct tables t;

    assert_int_equal(analyzer("-q --eigenvectors 5 --order 6 --output few.h5 bn+ce.h5"), 3);
    assert_complains("bn+ce.h5: eigenvectors: 0 of 5 have a relative residual of at most 0.001 "
                     "after 6 Lanczos steps: expected a larger order or tolerance, or fewer "
                     "eigenvectors; what was found is written with its residuals");
    assert_shows("\n       4 ");
    (void)read_vectors("few.h5", n, 5);
    t = read_tables("few");
    for (size_t i = 0; i < 5; i++)
        assert_true(t.residual[i] > 1e-3 * fabs(t.value[i]) && t.residual[i] < fabs(t.value[0]));
    check_word(scratch("few.h5"), "shortfall",
               "0 of 5 have a relative residual of at most 0.001 after 6 Lanczos steps: expected a "
               "larger order or tolerance, or fewer eigenvectors");
    assert_int_equal(analyzer("-q --eigenvectors 2 --which smallest --operator ggn --output few.h5 "
                              "bn+ce.h5"),
                     3);
    assert_complains(" Ritz values are negative): expected a larger order");
}

/* Other options are refused, and nothing is written. */
TEST(test_refusals)
{
    static const struct {
        const char *arguments, *words;
        int status;
    } cases[] = {
        {"--eigenvectors 5", "--eigenvectors: expected a file for them, --output OUT", 2},
        {"--eigenvectors 5 --order 4 --output no.h5",
         "--order: expected at least 5, as many as --eigenvectors, found 4", 2},
        {"--eigenvectors 0 --output no.h5", "--eigenvectors: expected an integer from 1 to", 2},
        {"--eigenvectors 2 --tolerance 1 --output no.h5",
         "--tolerance: expected a number above 0 and below 1, found '1'", 2},
        {"--eigenvectors 2 --tolerance lambda_max=1 --output no.h5",
         "--tolerance: expected a number above 0 and below 1, found 'lambda_max=1'", 2},
        {"--eigenvectors 2 --output no.h5 --probes 2", "--eigenvectors: expected no --probes", 2},
        {"--which smallest", "--which: expected with --eigenvectors K", 2},
        {"--eigenvectors 2 --which lowest --output no.h5",
         "--which: expected largest or smallest, found 'lowest'", 2},
        {"--eigenvectors 2 --output no.h5 --exact", "--eigenvectors: expected no --exact", 2},
        {"--eigenvectors 2 --output no.h5 -o .", "--eigenvectors: expected no --out", 2},
        {"--eigenvectors 2 --output bn+ce.h5",
         "bn+ce.h5: expected another file for the output, found the input bn+ce.h5", 2},
        {"--start-at v.h5", "--start-at", 2},
        {"--eigenvectors 2 --output no.h5 ln+ce.h5",
         "expected one checkpoint with --apply, --gradient and --eigenvectors, found 2", 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = analyzer("-q %s bn+ce.h5", cases[i].arguments);

        if (status != cases[i].status || !strstr(complained, cases[i].words))
            fail_msg("%s: exit status %d, '%s'", cases[i].arguments, status, complained);
        assert_int_not_equal(access(file("no"), F_OK), 0);
    }
}

/* What is printed, in its three forms. */
TEST(test_output)
{
    assert_runs("--eigenvectors 2 --output e.h5 bn+ce.h5");
    assert_shows("gradient (%)  layers\n       0 ");
    assert_shows("_dense ");
    assert_shows("2 eigenvectors of largest |eigenvalue| that were found, of hessian in ");
    assert_runs("--eigenvectors 2 --csv --output e.h5 bn+ce.h5");
    assert_shows("eigenvalue,residual,gradient_share,00_batchnorm,01_dense,02_batchnorm,04_dense,");
    assert_shows("\nbn+ce.h5,hessian,f32,");
    assert_runs("--eigenvectors 2 --json --output e.h5 bn+ce.h5");
    assert_shows("\"eigenvectors\":[{\"eigenvalue\":");
    assert_shows("\"layers\":{\"00_batchnorm\":");
    assert_int_equal(run_program("kappascope-inspect", "e.h5"), 0);
    assert_shows("  largest |x|  zeros  eigenvalue\n");
    assert_shows("00_batchnorm/scale [5], 00_batchnorm/bias [5], 01_dense/kernel [5, 6]");
    assert_runs("--eigenvectors 2 --output o.h5 bn+mse.h5");
    assert_int_equal(run_program("kappascope-inspect", "e.h5 --against o.h5"), 2);
    assert_complains("o.h5: expected vectors of ");
    assert_runs("--eigenvectors 3 --tolerance 1e-5 --precision f64 --output o.h5 bn+ce.h5");
    assert_int_equal(run_program("kappascope-inspect", "e.h5 --against o.h5"), 0);
    assert_shows("\n  2  1.00000");
    assert_null(strstr(printed, "\n  3  "));
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;
