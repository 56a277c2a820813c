/* The shapes and targets that /batch of a checkpoint may have: a good one with one edit at a time.
 */
#include "io/checkpoint.h"

#include "edited_file.h"
#include "example_checkpoint.h"
#include "scratch.h"
#include "test.h"

/* Replaces a dataset by one of another shape, which is refused with these words. */
struct wrong_shape {
    const char *object;
    int rank;
    hsize_t dims[4];
    const char *words;
};

static void refuse_shapes(const struct original *o, size_t n, const struct wrong_shape *wrong)
{
    for (size_t i = 0; i < n; i++) {
        reshape(o->path, wrong[i].object, wrong[i].rank, wrong[i].dims);
        refused(o, wrong[i].words);
    }
}

static void test_batch_shapes(void **state)
{
    static const struct wrong_shape wrong[] = {
        {"/batch/target", 2, {3, 4}, "/batch/target: expected shape [3, 4, 3], found [3, 4]"},
        {"/batch/target",
         1,
         {4},
         "/batch/target: expected [N, B, T], or [N, B, E, T] with the targets of each critic, "
         "where "
         "N = 3 minibatches, B = 1 to 6 rows, E = 2 critics and T = 3 targets of a row, found [4]"},
        {"/batch/target", 3, {3, 7, 3}, "/batch/target: expected 1 to 6 rows"},
        {"/batch/target", 3, {3, 0, 3}, "/batch/target: expected 1 to 6 rows"},
        {"/batch/input", 3, {3, 0, 5}, "/batch/input: expected at least one"},
        {"/batch/input", 3, {1, 1ULL << 33, 5}, "/batch/input: expected at most 1073741824 rows"},
        {"/batch/input", 2, {3, 4}, "/batch/input: expected 3 dimensions [N, R, D], found [3, 4]"},
        {"/batch/input", 4, {1, 1, 1, 1}, "expected 3 dimensions [N, R, D], found [1, 1, 1, 1]"},
        {"/batch/input",
         3,
         {3, 6, 6},
         "/critic/00_batchnorm/scale: expected shape [2, 6], found [2, 5]"},
        {"/batch/input", 3, {4, 6, 5}, "/batch/target: expected shape [4, 4, 3], found [3, 4, 3]"},
    };
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c;
    struct original o;

    (void)state;
    write_one(path, make_plain(CE), false);
    o = keep(path);
    refuse_shapes(&o, sizeof wrong / sizeof *wrong, wrong);
    free(o.bytes);

    write_one(path, make_plain(MSE), false); /* [N, B] where K = 1 */
    reshape(path, "/batch/target", 2, flat);
    assert_ok(ks_checkpoint_read(path, &c));
    assert_int_equal(c->loss_rows, LOSS_ROWS);
    ks_checkpoint_free(c);
}

/* Targets from raw rewards need the rows of /batch/target; both may omit the dimension K = 1. */
static void test_raw_target_shapes(void **state)
{
    static const char raw[] = "/batch/target_raw";
    static const struct wrong_shape wrong[] = {
        {raw, 2, {3, 4}, "/batch/target_raw: expected shape [3, 4, 3], found [3, 4]"},
        {raw, 1, {4}, "/batch/target_raw: expected [N, B, T], or [N, B, E, T]"},
        {raw, 3, {3, 7, 3}, "/batch/target_raw: expected 1 to 6 rows"},
        {raw, 3, {3, 0, 3}, "/batch/target_raw: expected 1 to 6 rows"},
        {raw,
         3,
         {3, 3, 3},
         "/batch/target_raw: expected 4 rows per minibatch, as many as /batch/target has"},
    };
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(MSE), *read;
    struct ks_rng rng = ks_rng_start(7, 2);
    struct original o;

    (void)state;
    c->target_raw = make_targets(&rng, 1);
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_ok(ks_checkpoint_read(path, &read));
    same_checkpoint(read, c, false);
    ks_checkpoint_free(read);
    reshape(path, raw, 2, flat);
    assert_ok(ks_checkpoint_read(path, &read));
    assert_true(read->target_raw[MINIBATCHES * LOSS_ROWS - 1] == 0);
    ks_checkpoint_free(read);
    ks_checkpoint_free(c);

    write_one(path, make_full(), false);
    o = keep(path);
    refuse_shapes(&o, sizeof wrong / sizeof *wrong, wrong);
    free(o.bytes);
}

/* A sum that deviates from 1 by less than 1e-3 counts as rounding and is not corrected. */
static void test_target_sums(void **state)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(CE), *read;
    const double t = c->target[4];

    (void)state;
    c->target[4] = t + 0.9e-3;
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_ok(ks_checkpoint_read(path, &read));
    assert_true(read->target[4] == t + 0.9e-3);
    ks_checkpoint_free(read);
    c->target[4] = t + 1.1e-3;
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_fails(ks_checkpoint_read(path, &read), KS_FORMAT, "expected the sum 1");
    ks_checkpoint_free(c);
}

/* Targets of the squared error need not be distributions; the shape may omit K = 1. */
static void test_other_targets(void **state)
{
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS};
    static const struct {
        const char *text;
        size_t targets;
    } critics[] = {{"dense 3\nloss quantile\n", 3},
                   {"dense 1\nloss quantile kappa=0.5\n", 1},
                   {"dense 1\nloss huber\n", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof critics / sizeof *critics; i++) {
        const char *path = scratch("a.h5");
        struct ks_checkpoint *c = make_plain(critics[i].text), *read;

        assert_int_equal(c->critic.arch->loss.targets, critics[i].targets);
        c->target[0] = -7, c->target[5] = 9;
        write_one(path, c, false);
        assert_ok(ks_checkpoint_read(path, &read));
        assert_true(read->target[0] == -7 && read->target[5] == 9);
        ks_checkpoint_free(read);
        reshape(path, "/batch/target", 2, flat);
        if (critics[i].targets > 1) {
            assert_fails(ks_checkpoint_read(path, &read), KS_FORMAT,
                         "/batch/target: expected shape [3, 4, 3], found [3, 4]");
        } else {
            assert_ok(ks_checkpoint_read(path, &read));
            ks_checkpoint_free(read);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_batch_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_raw_target_shapes, scratch_clean),
        cmocka_unit_test_teardown(test_target_sums, scratch_clean),
        cmocka_unit_test_teardown(test_other_targets, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
