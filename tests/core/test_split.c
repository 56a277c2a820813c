/* Tests of products from bfloat16 parts (core/split.h), by the kernel in plain C, whose bits
 * test_split_kernel.c compares with AMX's. */
#include <cblas.h>
#include <omp.h>

#include "test.h"

#include "core/rng.h"
#include "core/split.h"

enum { MARGIN = 3 }; /* entries of a stored row beyond the matrix */

/* An operand, or a result, as stored; held until the test ends. */
struct matrix {
    size_t rows, columns, stride;
    float *x;
};

static struct matrix new_matrix(size_t rows, size_t columns)
{
    const size_t stride = columns + MARGIN;

    return (struct matrix){rows, columns, stride, hold(calloc(rows * stride, sizeof(float)))};
}

static float *entry(const struct matrix *m, bool transposed, size_t i, size_t j)
{
    return m->x + (transposed ? j * m->stride + i : i * m->stride + j);
}

/* A, B, shape, and A B in float64. */
struct problem {
    struct ks_product p;
    struct matrix a, b;
    double *exact; /* [m, n] */
};

typedef float fill(struct ks_rng *rng, bool is_a, size_t v, size_t k);

static double a_of(const struct problem *q, size_t i, size_t k)
{
    return *entry(&q->a, q->p.a_transposed, i, k);
}

static double b_of(const struct problem *q, size_t k, size_t j)
{
    return *entry(&q->b, q->p.b_transposed, k, j);
}

static void multiply_exactly(struct problem *q)
{
    const size_t n = q->p.n;

    memset(q->exact, 0, q->p.m * n * sizeof *q->exact);
    for (size_t i = 0; i < q->p.m; i++)
        for (size_t k = 0; k < q->p.k; k++)
            for (size_t j = 0; j < n; j++)
                q->exact[i * n + j] += a_of(q, i, k) * b_of(q, k, j);
}

/* The shapes of the tests: the smallest; edges in all directions; several blocks of each. */
static const size_t shapes[][3] = {
    {16, 16, 32}, {17, 35, 33}, {70, 48, 300}, {33, 600, 64}, {40, 20, 513},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* bit 0 of `forms`: A is transposed; bit 1: B. */
static struct problem new_problem(const size_t *shape, size_t forms, fill *f)
{
    const bool a_transposed = forms & 1, b_transposed = forms & 2;
    const size_t m = shape[0], n = shape[1], k = shape[2];
    struct problem q = {.a = a_transposed ? new_matrix(k, m) : new_matrix(m, k),
                        .b = b_transposed ? new_matrix(n, k) : new_matrix(k, n)};
    struct ks_rng rng = ks_rng_start(m + n + k, forms);

    q.p = (struct ks_product){.products = KS_PRODUCTS_SPLIT3,
                              .m = m,
                              .n = n,
                              .k = k,
                              .a_stride = q.a.stride,
                              .b_stride = q.b.stride,
                              .c_stride = n + MARGIN,
                              .a_transposed = a_transposed,
                              .b_transposed = b_transposed};
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < k; j++)
            *entry(&q.a, a_transposed, i, j) = f(&rng, true, i, j);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            *entry(&q.b, b_transposed, j, i) = f(&rng, false, i, j);
    q.exact = hold(calloc(m * n, sizeof *q.exact));
    multiply_exactly(&q);
    return q;
}

static void multiply_by_sgemm(const struct ks_product *p, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
                p->b_transposed ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n, (int)p->k, 1, a,
                (int)p->a_stride, b, (int)p->b_stride, 1, c, (int)p->c_stride);
}

/* C, from zero, by the plain kernel or by sgemm. */
static struct matrix multiply(const struct problem *q, enum ks_products products)
{
    struct matrix c = new_matrix(q->p.m, q->p.n);
    struct ks_product p = q->p;

    p.products = products;
    if (products == KS_PRODUCTS_BLAS)
        multiply_by_sgemm(&p, q->a.x, q->b.x, c.x);
    else
        ks_split_multiply(&p, ks_split_plain, q->a.x, q->b.x, c.x);
    return c;
}

/* --- accuracy --- */

static float random_entry(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ks_rng_normal(rng);
}

static float positive(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ks_rng_uniform(rng, 1, 2);
}

/* Rows and columns of sizes from 1 to 2^-48, entries that fall along k. */
static float graded(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ldexp(ks_rng_normal(rng), -(int)(v % 49) - (int)(k % 17));
}

/* Neighbours along k are almost equal in A and opposite in B. */
static float cancelling(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    const double value = sin((double)(v + 1) * (double)(k / 2 + 1)) + 2;

    return (float)((is_a || k % 2 == 0 ? value : -value) + 1e-5 * ks_rng_normal(rng));
}

/* Exponents from -60 to 60 side by side. */
static float badly_scaled(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ldexp(ks_rng_uniform(rng, -1, 1), (int)ks_rng_index(rng, 121) - 60);
}

/* Rows of A from 2^-60 to 2^60, columns of B the other way round. */
static float scaled_rows(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    const int e = (int)(v * 29 % 121) - 60;

    return (float)ldexp(ks_rng_normal(rng), is_a ? e : -e);
}

static float subnormal(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ldexp(ks_rng_normal(rng), is_a ? -135 : 90);
}

/* Some rows of A are beyond what is split; B brings the product back into range. */
static float huge(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ldexp(ks_rng_normal(rng), is_a ? (v % 40 == 39 ? 126 : 0) : -60);
}

static float sparse(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return ks_rng_index(rng, 4) == 0 && v % 5 != 0 ? (float)ks_rng_normal(rng) : 0;
}

static const struct {
    const char *name;
    fill *f;
} operands[] = {
    {"random", random_entry},
    {"positive", positive},
    {"graded", graded},
    {"cancelling", cancelling},
    {"badly scaled", badly_scaled},
    {"scaled rows", scaled_rows},
    {"subnormal", subnormal},
    {"huge", huge},
    {"sparse", sparse},
};
enum { OPERANDS = sizeof operands / sizeof *operands };

/* |A|, |B|: the Frobenius norms. */
static double norm_of(const struct matrix *m)
{
    double sum = 0;

    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->columns; j++)
            sum += (double)m->x[i * m->stride + j] * m->x[i * m->stride + j];
    return sqrt(sum);
}

static double error_of(const struct problem *q, const struct matrix *c)
{
    double sum = 0;

    for (size_t i = 0; i < q->p.m; i++)
        for (size_t j = 0; j < q->p.n; j++) {
            double e = c->x[i * c->stride + j] - q->exact[i * q->p.n + j];

            sum += e * e;
        }
    return sqrt(sum);
}

/* The largest |error| / |row of A| / |column of B|. */
static double largest_error(const struct problem *q, const struct matrix *c)
{
    double most = 0;

    for (size_t i = 0; i < q->p.m; i++)
        for (size_t j = 0; j < q->p.n; j++) {
            double a = 0, b = 0, e = fabs(c->x[i * c->stride + j] - q->exact[i * q->p.n + j]);

            for (size_t k = 0; k < q->p.k; k++) {
                a += a_of(q, i, k) * a_of(q, i, k);
                b += b_of(q, k, j) * b_of(q, k, j);
            }
            most = fmax(most, e > 0 ? e / sqrt(a) / sqrt(b) : 0);
        }
    return most;
}

struct errors {
    double split3, sgemm, entry;
};

/* Relative to |A| |B|; the largest over shapes and forms. Checks each product. */
static struct errors check_operands(fill *f)
{
    struct errors most = {0};

    for (size_t s = 0; s < SHAPES; s++)
        for (size_t forms = 0; forms < 4; forms++) {
            struct problem q = new_problem(shapes[s], forms, f);
            struct matrix split = multiply(&q, KS_PRODUCTS_SPLIT3);
            struct matrix blas = multiply(&q, KS_PRODUCTS_BLAS);
            const double size = norm_of(&q.a) * norm_of(&q.b);
            const struct errors e = {error_of(&q, &split) / size, error_of(&q, &blas) / size,
                                     largest_error(&q, &split)};

            assert_true(e.split3 <= fmax(e.sgemm, 0x1p-23));
            assert_true(e.entry <= 0x1p-22);
            most = (struct errors){fmax(most.split3, e.split3), fmax(most.sgemm, e.sgemm),
                                   fmax(most.entry, e.entry)};
        }
    return most;
}

/* The contract: at most sgemm's error or 2^-23 |A| |B|, in the Frobenius norm. */
TEST(test_accuracy)
{
    for (size_t i = 0; i < OPERANDS; i++) {
        const struct errors e = check_operands(operands[i].f);

        print_message("%-12s  split3 %.1e  sgemm %.1e  entry of split3 %.1e\n", operands[i].name,
                      e.split3, e.sgemm, e.entry);
    }
}

static float integer(struct ks_rng *rng, bool is_a, size_t v, size_t k)
{
    return (float)ks_rng_index(rng, is_a ? 1024 : 64) - (is_a ? 512 : 32);
}

/* Sums of integers below 2^24 are exact, so every entry must be right; and nothing is written
 * beyond the rows of C, which is added to, or set. */
TEST(test_exact_integers)
{
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t forms = 0; forms < 8; forms++) {
            struct problem q = new_problem(shapes[s], forms, integer);
            struct matrix c = new_matrix(q.p.m, q.p.n);
            const bool sets = forms & 4;

            q.p.sets = sets;
            for (size_t i = 0; i < c.rows * c.stride; i++)
                c.x[i] = 7;
            ks_split_multiply(&q.p, ks_split_plain, q.a.x, q.b.x, c.x);
            for (size_t i = 0; i < c.rows; i++)
                for (size_t j = 0; j < c.stride; j++)
                    assert_close(c.x[i * c.stride + j],
                                 j >= q.p.n ? 7 : q.exact[i * q.p.n + j] + (sets ? 0 : 7), 0);
        }
}

/* What is not finite stands where sgemm puts it, and leaves other rows and columns alone. */
TEST(test_not_finite)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, FLT_MAX};

    for (size_t v = 0; v < 4; v++)
        for (size_t in_b = 0; in_b < 2; in_b++)
            for (size_t forms = 0; forms < 4; forms++) {
                struct problem q = new_problem(shapes[2], forms, positive);
                struct matrix three, blas;

                if (in_b)
                    *entry(&q.b, q.p.b_transposed, 290, 40) = values[v];
                else
                    *entry(&q.a, q.p.a_transposed, 66, 7) = values[v];
                multiply_exactly(&q);
                three = multiply(&q, KS_PRODUCTS_SPLIT3);
                blas = multiply(&q, KS_PRODUCTS_BLAS);
                for (size_t i = 0; i < q.p.m; i++)
                    for (size_t j = 0; j < q.p.n; j++) {
                        const float x = three.x[i * three.stride + j];
                        const float want = blas.x[i * blas.stride + j];

                        if (isfinite(want))
                            assert_close(x, q.exact[i * q.p.n + j], 1e-6 * fabs((double)want));
                        else
                            assert_true(isnan(want) ? isnan(x) : x == want);
                    }
            }
}

/* --- bits --- */

/* Rows of C do not depend on which rows are multiplied with them, nor on the thread, nor on the
 * kernel. */
TEST(test_same_bits)
{
    struct problem q = new_problem(shapes[2], 0, badly_scaled);
    struct matrix all = multiply(&q, KS_PRODUCTS_SPLIT3), parts = new_matrix(q.p.m, q.p.n);
    struct ks_product first = q.p, rest = q.p;
    struct matrix each[8];

    first.m = 37;
    rest.m -= first.m;
    ks_split_multiply(&first, ks_split_plain, q.a.x, q.b.x, parts.x);
    ks_split_multiply(&rest, ks_split_plain, q.a.x + first.m * q.p.a_stride, q.b.x,
                      parts.x + first.m * q.p.c_stride);
    assert_memory_equal(all.x, parts.x, all.rows * all.stride * sizeof *all.x);
    for (size_t t = 0; t < 8; t++)
        each[t] = new_matrix(q.p.m, q.p.n);
#pragma omp parallel for num_threads(4) schedule(static, 1)
    for (size_t t = 0; t < 8; t++)
        ks_split_multiply(&q.p, ks_split_plain, q.a.x, q.b.x, each[t].x);
    for (size_t t = 0; t < 8; t++)
        assert_memory_equal(all.x, each[t].x, all.rows * all.stride * sizeof *all.x);
    memset(parts.x, 0, parts.rows * parts.stride * sizeof *parts.x);
    ks_split_multiply(&q.p, ks_split_has_amx() ? ks_split_amx : ks_split_plain, q.a.x, q.b.x,
                      parts.x);
    assert_memory_equal(all.x, parts.x, all.rows * all.stride * sizeof *all.x);
}
