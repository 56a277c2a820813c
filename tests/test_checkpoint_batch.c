/* The shapes and targets that /batch of a checkpoint may have: a good one with one edit at a time.
 */
#include "io/checkpoint.h"

#include "edited_file.h"
#include "example_checkpoint.h"
#include "scratch.h"
#include "test.h"

static void test_batch_shapes(void **state)
{
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS}, row[1] = {LOSS_ROWS},
                  many[3] = {MINIBATCHES, ROWS + 1, 3}, none[3] = {MINIBATCHES, 0, 3},
                  empty[3] = {MINIBATCHES, 0, IN}, wide[3] = {MINIBATCHES, ROWS, IN + 1},
                  more[3] = {MINIBATCHES + 1, ROWS, IN}, huge[3] = {1, 1ULL << 33, IN},
                  deep[4] = {1, 1, 1, 1};
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c;
    struct original o;

    (void)state;
    write_one(path, make_plain(CE), false);
    o = keep(path);
    reshape(path, "/batch/target", 2, flat);
    refused(&o, "/batch/target: expected shape [3, 4, 3], found [3, 4]");
    reshape(path, "/batch/target", 1, row);
    refused(&o,
            "/batch/target: expected [N, B, T], or [N, B, E, T] with the targets of each critic, "
            "where N = 3 minibatches, B = 1 to 6 rows, E = 2 critics and T = 3 targets of a row, "
            "found [4]");
    reshape(path, "/batch/target", 3, many);
    refused(&o, "/batch/target: expected 1 to 6 rows");
    reshape(path, "/batch/target", 3, none);
    refused(&o, "/batch/target: expected 1 to 6 rows");
    reshape(path, "/batch/input", 3, empty);
    refused(&o, "/batch/input: expected at least one");
    reshape(path, "/batch/input", 3, huge);
    refused(&o, "/batch/input: expected at most 1073741824 rows");
    reshape(path, "/batch/input", 2, flat);
    refused(&o, "/batch/input: expected 3 dimensions [N, R, D], found [3, 4]");
    reshape(path, "/batch/input", 4, deep);
    refused(&o, "/batch/input: expected 3 dimensions [N, R, D], found [1, 1, 1, 1]");
    reshape(path, "/batch/input", 3, wide);
    refused(&o, "/critic/00_batchnorm/scale: expected shape [2, 6], found [2, 5]");
    reshape(path, "/batch/input", 3, more);
    refused(&o, "/batch/target: expected shape [4, 4, 3], found [3, 4, 3]");
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
    const hsize_t flat[2] = {MINIBATCHES, LOSS_ROWS}, row[1] = {LOSS_ROWS},
                  fewer[3] = {MINIBATCHES, LOSS_ROWS - 1, 3}, many[3] = {MINIBATCHES, ROWS + 1, 3},
                  none[3] = {MINIBATCHES, 0, 3};
    static const char raw[] = "/batch/target_raw";
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
    reshape(path, raw, 2, flat);
    refused(&o, "/batch/target_raw: expected shape [3, 4, 3], found [3, 4]");
    reshape(path, raw, 1, row);
    refused(&o, "/batch/target_raw: expected [N, B, T], or [N, B, E, T]");
    reshape(path, raw, 3, many);
    refused(&o, "/batch/target_raw: expected 1 to 6 rows");
    reshape(path, raw, 3, none);
    refused(&o, "/batch/target_raw: expected 1 to 6 rows");
    reshape(path, raw, 3, fewer);
    refused(&o, "/batch/target_raw: expected 4 rows per minibatch, as many as /batch/target has");
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
