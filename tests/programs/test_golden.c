/* The analyzer against vectors from an independent program (automatic differentiation in float64):
 * ../shared/golden/NAME.*. Skipped if that folder does not exist. */
#include "io/spectrum.h"
#include "programs.h"

static const char FOLDER[] = "../shared/golden";
enum { VECTORS = 3 };
/* Bounds on |x - golden| / |golden|. */
#define F64 1e-11
#define F32 1e-5

static char folder[1024]; /* FOLDER as an absolute path */
static size_t products;   /* number of product files that were checked */
static struct precision {
    const char *name;
    double bound, worst;
} precisions[2] = {{"f64", F64, 0}, {"f32", F32, 0}};
static double worst_eigenvalue, worst_gradient;

static const char *golden(const char *name, const char *suffix)
{
    return text_of("%s/%s%s", folder, name, suffix);
}

static void keep_worst(const char *name, const char *what, double error, double bound,
                       double *worst)
{
    if (!(error <= bound))
        fail_msg("%s: %s is off by %g, bound %g", name, what, error, bound);
    *worst = fmax(*worst, error);
}

/* The products in NAME.`stored`.h5 against the operator with these `options`. */
static void check_products(const char *name, size_t n, const char *options, const char *stored,
                           struct precision *precision)
{
    double *expected, *found;
    size_t k;

    assert_runs("--apply %s --output hv.h5 %s --precision %s %s", golden(name, ".in.h5"), options,
                precision->name, golden(name, ".ckpt.h5"));
    assert_ok(try_vectors(golden(name, text_of(".%s.h5", stored)), n, &k, &expected));
    assert_int_equal(k, VECTORS);
    found = read_vectors("hv.h5", n, VECTORS);
    for (size_t i = 0; i < VECTORS; i++)
        keep_worst(name, stored, relative_error(n, found + i * n, expected + i * n),
                   precision->bound, &precision->worst);
    free(expected);
}

/* All products stored for this checkpoint, in both precisions. */
static void check_operators(const char *name, size_t n)
{
    static const struct {
        const char *stored, *options;
    } operators[] = {
        {"hessian", "--operator hessian"},
        {"ggn", "--operator ggn"},
        {"preconditioned", "--operator preconditioned"},
        {"manifold", "--operator manifold"},
        {"critic1", "--critic 1"},
        {"layer03", "--layer 3"},
    };

    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (i > 1 && access(golden(name, text_of(".%s.h5", operators[i].stored)), R_OK) != 0)
            continue;
        for (size_t k = 0; k < 2; k++)
            check_products(name, n, operators[i].options, operators[i].stored, &precisions[k]);
        products++;
    }
}

static void check_gradient(const char *name, size_t n, const double *gradient, double loss)
{
    double *found;

    assert_runs("--gradient g.h5 %s", golden(name, ".ckpt.h5"));
    found = read_vectors("g.h5", n, 1);
    keep_worst(name, "gradient", relative_error(n, found, gradient), F64, &worst_gradient);
    keep_worst(name, "loss", fabs(read_root_number(scratch("g.h5"), "loss") / loss - 1), F64,
               &worst_gradient);
}

static void check_exact(const char *name, size_t n, const double *eigenvalue)
{
    double size = fmax(fabs(eigenvalue[0]), fabs(eigenvalue[n - 1]));
    struct ks_spectrum *s;

    assert_runs("--exact --precision f64 -o . %s", golden(name, ".ckpt.h5"));
    s = read_spectrum(scratch(text_of("%s.ckpt.spectrum.h5", name)));
    assert_int_equal(s->order, n);
    for (size_t i = 0; i < n; i++)
        keep_worst(name, "eigenvalue", fabs(s->ritz[i] - eigenvalue[i]) / size, F64,
                   &worst_eigenvalue);
}

/* The extreme eigenvalues by Lanczos, in the default precision. */
static void check_lanczos(const char *name, size_t n, const double *eigenvalue)
{
    struct ks_spectrum *s;

    assert_runs("-o . %s", golden(name, ".ckpt.h5"));
    s = read_spectrum(scratch(text_of("%s.ckpt.spectrum.h5", name)));
    assert_close(s->ritz[s->steps[0] - 1], eigenvalue[n - 1], 1e-5 * fabs(eigenvalue[n - 1]));
    assert_close(s->ritz[0], eigenvalue[0], 1e-5 * fabs(eigenvalue[0]));
}

static void check(const char *name)
{
    size_t n;
    const double *eigenvalue = read_list(golden(name, ".eig.h5"), "/eigenvalues", &n);
    const double *gradient = read_list(golden(name, ".eig.h5"), "/gradient", &n);

    check_gradient(name, n, gradient, read_root_number(golden(name, ".eig.h5"), "loss"));
    check_operators(name, n);
    check_exact(name, n, eigenvalue);
    check_lanczos(name, n, eigenvalue);
}

TEST(test_golden)
{
    static const char *const needed[] = {"xqc",      "crossq",   "plain",       "layernorm",
                                         "smooth",   "residual", "hypersphere", "mixed",
                                         "quantile", "huber",    "projected"};
    size_t done;

    assert_non_null(getcwd(folder, sizeof folder - sizeof FOLDER - 1));
    strcat(strcat(folder, "/"), FOLDER);
    done = each_file(FOLDER, ".ckpt.h5", check);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        assert_int_equal(access(golden(needed[i], ".ckpt.h5"), R_OK), 0);
    assert_int_equal(products, 2 * done + 4);
    print_message("%zu checkpoints; largest errors: products %.1e (f64), %.1e (f32), gradient and "
                  "loss %.1e, eigenvalues %.1e of the largest\n",
                  done, precisions[0].worst, precisions[1].worst, worst_gradient, worst_eigenvalue);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
