/* Benchmark: the passes of the convolutions of an encoder from pixels (Yarats et al., "DrQ-v2",
 * ICLR 2022: 84 x 84 images, 9 channels, 32 filters of 3 x 3) relative to their matrix products
 * alone, on operands of the same shapes, in float32 with one thread. Prints the rates of both.
 *
 *   build/bench/conv2d [ROWS]          (default: 8)
 *
 * Rounds are interleaved, and the best round of each kind counts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cblas.h>

#include "core/line.h"
#include "core/memory.h"
#include "core/progress.h"
#include "core/rng.h"
#include "layers/layer.h"

#include "must.h"

enum { LAYERS = 4, ROUNDS = 7, FILTERS = 32, SIZE = 3 };

/* A convolution with its operands, and the sizes of its products. */
struct convolution {
    struct KS(layer) layer;
    struct KS(pass) pass;
    int patch, places;
    float *patches; /* for the products alone */
};

static real *normal(size_t n)
{
    struct ks_rng rng = ks_rng_start(1, n);
    real *a = NULL;

    must(ks_alloc(n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++)
        a[i] = (real)ks_rng_normal(&rng);
    return a;
}

static void setup(const char *text, struct ks_image in, size_t rows, struct convolution *c)
{
    struct KS(layer) *l = &c->layer;
    struct ks_line line;

    must(ks_line_split(&line, "conv2d", 1, text));
    l->kind = &KS(conv2d);
    l->in_image = in;
    l->in = l->network_in = in.channels * in.height * in.width;
    must(KS(layer_configure)(l, &line));
    c->places = (int)(l->out_image.height * l->out_image.width);
    c->patch = (int)(in.channels * SIZE * SIZE);
    c->patches = normal((size_t)c->patch * (size_t)c->places);
    c->pass = (struct KS(pass)){.rows = rows,
                                .products = KS_PRODUCTS_BLAS,
                                .x = normal(rows * l->in),
                                .w = normal((size_t)c->patch * FILTERS + FILTERS),
                                .y = normal(rows * l->out),
                                .cache = normal(l->cache_fixed),
                                .y_bar = normal(rows * l->out),
                                .x_bar = normal(rows * l->in),
                                .w_bar = normal((size_t)c->patch * FILTERS + FILTERS)};
}

static void run_layers(struct convolution c[LAYERS])
{
    for (size_t k = 0; k < LAYERS; k++)
        c[k].layer.kind->forward(&c[k].layer, &c[k].pass);
    for (size_t k = LAYERS; k-- > 0;)
        c[k].layer.kind->backward(&c[k].layer, &c[k].pass);
}

/* y = W' P, W_bar = P y_bar', patches_bar = W y_bar, for every row. */
static void run_products(struct convolution c[LAYERS])
{
    for (size_t k = 0; k < LAYERS; k++)
        for (size_t row = 0; row < c[k].pass.rows; row++) {
            const int n = c[k].places, p = c[k].patch;
            const size_t at = row * c[k].layer.out;

            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, FILTERS, n, p, 1, c[k].pass.w,
                        FILTERS, c[k].patches, n, 0, c[k].pass.y + at, n);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p, FILTERS, n, 1, c[k].patches, n,
                        c[k].pass.y_bar + at, n, 1, c[k].pass.w_bar, FILTERS);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p, n, FILTERS, 1, c[k].pass.w,
                        FILTERS, c[k].pass.y_bar + at, n, 0, c[k].patches, n);
        }
}

static double best(void (*run)(struct convolution *), struct convolution *c, double least)
{
    const double start = ks_seconds();

    run(c);
    return fmin(least, ks_seconds() - start);
}

int main(int argc, char **argv)
{
    static const char *const texts[LAYERS] = {"conv2d 32 size=3 stride=2", "conv2d 32 size=3",
                                              "conv2d 32 size=3", "conv2d 32 size=3"};
    const size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 8;
    struct convolution c[LAYERS] = {0};
    struct ks_image image = {9, 84, 84};
    double layers = INFINITY, products = INFINITY, operations = 0;

    openblas_set_num_threads(1);
    for (size_t k = 0; k < LAYERS; k++) {
        setup(texts[k], image, rows, &c[k]);
        image = c[k].layer.out_image;
        operations += 6. * FILTERS * c[k].patch * c[k].places * (double)rows;
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        layers = best(run_layers, c, layers);
        products = best(run_products, c, products);
    }
    printf("conv2d, forward and backward of %zu images: %.1f GFLOP/s; its matrix products alone: "
           "%.1f GFLOP/s; ratio of times %.2f\n",
           rows, 1e-9 * operations / layers, 1e-9 * operations / products, layers / products);
    return 0;
}
