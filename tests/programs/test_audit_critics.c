/* What kappascope-audit says of critics that have less, or nothing, to analyze. */
#include "example.h"
#include "programs.h"

/* Without moments, layers and a second minibatch less is computed, and that is said. */
TEST(test_less)
{
    write_one(scratch("plain.h5"), make_plain(MSE), false);
    if (audit("--quiet --order 20 --layer-order 0 --batches 1 plain.h5") != 0)
        fail_msg("%s", complained);
    assert_shows("no second moments of Adam");
    assert_shows("Not known: the analysis used a single minibatch");
    assert_shows("the first 1 minibatch of 6 rows");
    assert_shows("zero in all rows of the first 1 minibatch");
    assert_shows("The blocks of layers were not analyzed (--layer-order 0)");
    assert_null(strstr(printed, "share of the trace"));
    audit_refuses("--batches 4 plain.h5", "--batches: expected 1 to 3, found 4");
}

/* Half of the minibatches: nothing changes if all are the same; the largest eigenvalue does if only
 * the first one has large inputs. */
TEST(test_half)
{
    static const char arguments[] = "--quiet --order 20 --layer-order 0 half.h5";
    struct ks_checkpoint *c = make_plain(MSE);
    const size_t inputs = (size_t)ROWS * IN;

    for (size_t n = 1; n < MINIBATCHES; n++) {
        memcpy(c->input + n * inputs, c->input, inputs * sizeof *c->input);
        memcpy(c->target + n * LOSS_ROWS, c->target, LOSS_ROWS * sizeof *c->target);
    }
    assert_ok(ks_checkpoint_write(scratch("half.h5"), c, false));
    assert_int_equal(audit(arguments), 0);
    assert_shows("0 of 4 statistics change by more");
    assert_shows("  lambda_abs_max         similar");
    for (size_t i = 0; i < inputs; i++)
        c->input[i] *= 100;
    write_one(scratch("half.h5"), c, false);
    assert_int_equal(audit(arguments), 0);
    assert_shows("  lambda_abs_max         changes");
}

/* Before the first update Adam's second moments are zero: nothing is preconditioned by them. */
TEST(test_first_checkpoint)
{
    struct ks_checkpoint *c = make_full();

    for (size_t i = 0; i < ks_networks_parameters(&c->critic); i++)
        c->adam_v[i] = 0;
    write_one(scratch("first.h5"), c, false);
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 first.h5"), 0);
    assert_shows("because all of Adam's second");
}

/* Rows of weight 0 give no curvature and no gradient. */
TEST(test_zero)
{
    struct ks_checkpoint *c = make_plain(MSE);

    assert_ok(ks_alloc(MINIBATCHES * LOSS_ROWS, sizeof *c->weight, &c->weight));
    write_one(scratch("zero.h5"), c, false);
    assert_int_equal(audit("--quiet --order 20 --layer-order 5 zero.h5"), 0);
    assert_shows("All products with the Hessian are zero, so it has no condition number");
    assert_shows("The gradient is zero");
    assert_shows("There is no plot: all eigenvalues are zero");
    assert_shows("Not known: the Hessian is zero");
    assert_null(strstr(printed, "infinite,"));
    assert_null(strstr(printed, "-0"));
    assert_null(strstr(printed, "has the largest"));
}

/* Beyond its threshold a Huber loss is linear: the last bias changes the loss, although it is a
 * dead coordinate, and all of the curvature is in the residual. */
TEST(test_linear)
{
    struct ks_checkpoint *c = make_plain("dense 4\nrelu\ndense 1\nloss huber delta=0.001\n");

    for (size_t i = 0; i < MINIBATCHES * LOSS_ROWS; i++)
        c->target[i] += 1000;
    write_one(scratch("linear.h5"), c, false);
    assert_int_equal(audit("--quiet --order 60 --layer-order 5 linear.h5"), 0);
    assert_shows("The curvature is exactly zero along at least");
    assert_null(strstr(printed, "loss does not change"));
    assert_shows("All products with the Gauss-Newton matrix G are zero");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
