/* Products with the operators by layers that multiply in bfloat16 parts, small layers included:
 * against an independent program's vectors (../shared/golden), and against float64. */
#include "core/split.h"
#include "critics.h"
#include "io/checkpoint.h"
#include "scratch.h"
#include "spectra.h"

static size_t splits; /* how often a product was split */

/* In place of the library's: every product is large enough. */
bool ks_split_suits(const struct ks_product *p)
{
#pragma omp atomic
    splits++;
    return true;
}

static const struct {
    const char *name;
    ks_status (*new_f32)(const struct ks_problem *problem, struct ks_operator **a);
    ks_status (*new_f64)(const struct ks_problem *problem, struct ks_operator **a);
} operators[] = {{"hessian", ks_hessian_new_f32, ks_hessian_new_f64},
                 {"ggn", ks_ggn_new_f32, ks_ggn_new_f64}};
enum { OPERATORS = sizeof operators / sizeof *operators };

/* The worst error of the golden products of one checkpoint. */
static double golden_error(const char *folder, const char *name)
{
    const struct ks_checkpoint *c = read_checkpoint(text_of("%s/%s.ckpt.h5", folder, name));
    const size_t n = ks_networks_parameters(&c->critic);
    struct ks_problem q = full_problem(c);
    double worst = 0, *in, *expected;
    size_t vectors;

    q.products = KS_PRODUCTS_SPLIT3;
    for (size_t k = 0; k < OPERATORS; k++) {
        assert_ok(try_vectors(text_of("%s/%s.in.h5", folder, name), n, &vectors, &in));
        assert_ok(try_vectors(text_of("%s/%s.%s.h5", folder, name, operators[k].name), n, &vectors,
                              &expected));
        for (size_t i = 0; i < vectors; i++) {
            double *out = product_of(operators[k].new_f32, &q, in + i * n);

            worst = fmax(worst, relative_error(n, out, expected + i * n));
        }
        free(in), free(expected);
    }
    return worst;
}

static const char GOLDEN[] = "../shared/golden";
static double worst_error;

static void check_golden(const char *name)
{
    splits = 0;
    worst_error = fmax(worst_error, golden_error(GOLDEN, name));
    assert_true(splits > 0);
}

TEST(test_golden)
{
    const size_t done = each_file(GOLDEN, ".ckpt.h5", check_golden);

    assert_true(done >= 11 && worst_error <= 1e-5);
    print_message("%zu checkpoints; largest error %.1e\n", done, worst_error);
}

/* Layers of several tiles, groups, images and a batch of several blocks. */
TEST(test_large_layers)
{
    static const struct critic_sizes sizes = {2, 48, 2, 300, 280};
    static const char *const texts[] = {
        "dense 70 bias=no\nbatchnorm\nrelu\nresidual {\ndense 70\nlayernorm\nsilu\n}\ndense 5\n"
        "loss ce min=-5 max=5\n",
        "conv2d 20 size=3 padding=1 channels=3 height=4 width=4\nrelu\ndense 40 groups=2\ntanh\n"
        "dense 1\nloss mse\n",
    };

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < OPERATORS; k++) {
            const struct ks_checkpoint *c = keep_checkpoint(random_critic(texts[i], sizes, 5));
            struct ks_problem q = full_problem(c);
            struct ks_rng rng = ks_rng_start(6, i);
            const size_t n = ks_networks_parameters(&c->critic);
            double *v = numbers(&rng, n), *exact = product_of(operators[k].new_f64, &q, v);
            double error[2];

            for (enum ks_products p = KS_PRODUCTS_BLAS; p <= KS_PRODUCTS_SPLIT3; p++) {
                double *out;

                splits = 0;
                q.products = p;
                out = product_of(operators[k].new_f32, &q, v);
                error[p] = relative_error(n, out, exact);
                assert_true((splits > 0) == (p == KS_PRODUCTS_SPLIT3));
            }
            print_message("errors: blas %.1e, split3 %.1e\n", error[0], error[1]);
            assert_true(error[KS_PRODUCTS_SPLIT3] <= fmax(2 * error[KS_PRODUCTS_BLAS], 1e-6));
            free(v);
        }
}
