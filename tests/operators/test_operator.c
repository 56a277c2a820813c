/* The table of operators: each is linear and symmetric, in both precisions. Also the interface
 * itself. */
#include "core/memory.h"
#include "critics.h"
#include "spectra.h"

enum { IN = 4, ENSEMBLE = 2, MINIBATCHES = 2, ROWS = 9, LOSS_ROWS = 5 };

static struct ks_checkpoint *make(void)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};
    struct ks_checkpoint *c = random_critic(
        "batchnorm\ndense 5 bias=no project=unit\nlayernorm\nrelu\n"
        "dense 3\nloss ce min=-1 max=1\n",
        sizes, 31);

    return keep_checkpoint(settle(c, 31));
}

/* <a, H b> = <b, H a> and H (a - 3 b) = H a - 3 H b. The inputs are not changed, and a second call
 * gives the same bits. */
static void check(const struct ks_operator *a, double bound)
{
    struct ks_rng rng = ks_rng_start(32, 0);
    double *v[3], *image[3], *again, *kept, size;

    for (size_t k = 0; k < 3; k++) {
        v[k] = hold(numbers(&rng, a->n));
        image[k] = hold(numbers(&rng, a->n));
    }
    for (size_t i = 0; i < a->n; i++)
        v[2][i] = v[0][i] - 3 * v[1][i];
    kept = hold(malloc(a->n * sizeof *kept));
    memcpy(kept, v[0], a->n * sizeof *kept);
    again = hold(numbers(&rng, a->n));
    for (size_t k = 0; k < 3; k++)
        assert_ok(ks_operator_apply(a, v[k], image[k]));
    assert_ok(ks_operator_apply(a, v[0], again));
    assert_memory_equal(again, image[0], a->n * sizeof *again);
    assert_memory_equal(kept, v[0], a->n * sizeof *kept);
    size = sqrt(dot(a->n, v[1], v[1]) * dot(a->n, image[0], image[0]));
    assert_close(dot(a->n, v[1], image[0]), dot(a->n, v[0], image[1]), bound * size);
    for (size_t i = 0; i < a->n; i++)
        again[i] = image[0][i] - 3 * image[1][i];
    assert_close(relative_error(a->n, image[2], again), 0, bound);
}

TEST(test_table)
{
    struct ks_checkpoint *c = make();
    struct ks_problem problem = full_problem(c);
    size_t kinds = 0;

    for (const struct ks_operator_kind *kind = ks_operator_kinds; kind->name; kind++, kinds++) {
        struct ks_operator *a;

        assert_ok(prepared_kind(kind, false, &problem, &a));
        check(hold_operator(a), 1e-13);
        assert_ok(prepared_kind(kind, true, &problem, &a));
        check(hold_operator(a), 3e-6);
    }
    assert_true(kinds >= 5);
}

/* A run without arrays counts what the operator allocates, but for its small structs, and all of it
 * is freed. */
TEST(test_counted)
{
    enum { SMALL = 32768 };
    struct critic_sizes sizes = {ENSEMBLE, 40, MINIBATCHES, 300, 200};
    struct ks_checkpoint *c = keep_checkpoint(
        random_critic("dense 60\nrelu\ndense 1\nloss mse\n", sizes, 33));
    struct ks_problem problem = full_problem(c);
    struct ks_operator *a;
    struct ks_count count;
    size_t taken = ks_alloc_total();
    double made;

    assert_ok(ks_hessian_new(&problem, false, &a));
    taken = ks_alloc_total() - taken;
    ks_operator_free(a);
    ks_count_start(&count);
    assert_ok(ks_hessian_new(&problem, false, &a));
    made = count.now;
    ks_count_next();
    ks_operator_free(a);
    ks_count_end();
    assert_true(made <= (double)taken && made > (double)taken - SMALL && made > 4 * SMALL);
    assert_true(count.earlier >= made && count.most <= count.earlier);
    assert_close(count.now, 0, 0);
    assert_false(ks_counting());
}

static size_t freed;

static void count_free(void *self)
{
    (void)self;
    freed++;
}

TEST(test_interface)
{
    double value[] = {2, -1}, v[] = {3, 4}, out[2];
    struct diagonal d = {.n = 2, .value = value};
    struct ks_operator *a = malloc(sizeof *a);

    *a = diagonal_operator(&d);
    a->free = count_free;
    assert_ok(ks_operator_apply(a, v, out));
    assert_close(out[0], 6, 0);
    assert_close(out[1], -4, 0);
    d.fail_at = 2;
    assert_fails(ks_operator_apply(a, v, out), KS_IO, "own words");
    ks_operator_free(a);
    assert_int_equal(freed, 1);
    ks_operator_free(NULL);
}
