/* The public header: bad arguments and failed allocations give a status and a message, without a
 * crash or a leak. */
#include "handles.h"

#include "core/blas.h"

TEST(test_bad_operators)
{
    struct counting c = {.n = 20, .fail_at = 3};
    struct kappascope_slq_options slq;
    struct kappascope_operator *a, *none = (void *)&c;
    struct kappascope_spectrum *s = (void *)&c;
    double x[20] = {NAN};

    assert_refuses(kappascope_operator_from_product(0, count_up, &c, &none), KAPPASCOPE_USAGE,
                   "n: expected 1");
    assert_null(none);
    assert_refuses(kappascope_operator_from_product(9, NULL, &c, &none), KAPPASCOPE_USAGE,
                   "product is NULL");
    assert_refuses(kappascope_operator_from_product(9, count_up, &c, NULL), KAPPASCOPE_USAGE,
                   "NULL");
    assert_done(kappascope_operator_from_product(c.n, count_up, &c, &a));
    assert_refuses(kappascope_operator_apply(a, x, x), KAPPASCOPE_NUMBER, "x: ");
    kappascope_slq_defaults(&slq);
    assert_refuses(kappascope_slq(a, &slq, &s), KAPPASCOPE_RUN, "77");
    assert_null(s);
    c = (struct counting){.n = 20, .nan_at = 5};
    assert_refuses(kappascope_slq(a, &slq, &s), KAPPASCOPE_NUMBER, "product");
    slq.order = 0;
    assert_refuses(kappascope_slq(a, &slq, &s), KAPPASCOPE_USAGE, "order");
    slq.order = 5, slq.gradient = true;
    assert_refuses(kappascope_slq(a, &slq, &s), KAPPASCOPE_USAGE, "gradient");
    slq.gradient = false;
    assert_refuses(kappascope_slq(NULL, &slq, &s), KAPPASCOPE_USAGE, "a is NULL");
    assert_refuses(kappascope_spectrum_read("/nowhere/s.h5", &s), KAPPASCOPE_IO, "/nowhere/s.h5");
    assert_null(s);
    assert_int_equal(kappascope_spectrum_probes(NULL), 0);
    assert_null(kappascope_spectrum_ritz(NULL, 0));
    kappascope_spectrum_free(NULL);
    kappascope_operator_free(NULL);
    kappascope_checkpoint_free(NULL);
    kappascope_operator_free(a);
    assert_done(kappascope_operator_from_product(2147483647, count_up, &c, &a));
    slq.order = 10000; /* 160 TB */
    assert_refuses(kappascope_slq(a, &slq, &s), KAPPASCOPE_MEMORY, "Lanczos vectors");
    assert_refuses(kappascope_exact(a, &s), KAPPASCOPE_USAGE, "8000");
    kappascope_operator_free(a);
}

TEST(test_bad_critics)
{
    struct ks_checkpoint *c = make_projected();
    const struct kappascope_critic good = critic_of(c);
    struct kappascope_checkpoint *k;
    struct kappascope_critic bad;
    double kept;

#define REFUSED(change, status, words)                                                             \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        k = (void *)c;                                                                             \
        assert_refuses(kappascope_checkpoint_new(&bad, &k), status, words);                        \
        assert_null(k);                                                                            \
    } while (0)
    REFUSED(bad.arch = NULL, KAPPASCOPE_USAGE, "arch is NULL");
    REFUSED(bad.arch = "dense 4\n", KAPPASCOPE_FORMAT, "arch");
    REFUSED(bad.arch = "dense 4\npolicy tanh-gaussian\n", KAPPASCOPE_FORMAT, "arch");
    REFUSED(bad.inputs = 0, KAPPASCOPE_USAGE, "inputs");
    REFUSED(bad.ensemble = 0, KAPPASCOPE_USAGE, "ensemble");
    REFUSED(bad.minibatches = 0, KAPPASCOPE_USAGE, "minibatches");
    REFUSED(bad.rows = SIZE_MAX, KAPPASCOPE_USAGE, "rows");
    REFUSED(bad.loss_rows = ROWS + 1, KAPPASCOPE_USAGE, "loss_rows");
    REFUSED(bad.parameters = NULL, KAPPASCOPE_USAGE, "parameters is NULL");
    REFUSED(bad.target = NULL, KAPPASCOPE_USAGE, "target is NULL");
    REFUSED(bad.adam_step = 0, KAPPASCOPE_USAGE, "adam_step");
    REFUSED(bad.weight = c->input, KAPPASCOPE_FORMAT, "a weight of at least 0");
    kept = c->input[3], c->input[3] = NAN;
    REFUSED((void)0, KAPPASCOPE_NUMBER, "input");
    c->input[3] = kept, kept = c->target[1], c->target[1] = 0.5;
    REFUSED((void)0, KAPPASCOPE_FORMAT, "sum 1");
    c->target[1] = kept, kept = c->critic.state[IN + 1], c->critic.state[IN + 1] = -1;
    REFUSED((void)0, KAPPASCOPE_FORMAT, "variances");
    c->critic.state[IN + 1] = kept, c->adam_v[1] = -1;
    REFUSED((void)0, KAPPASCOPE_FORMAT, "squares");
#undef REFUSED
    assert_refuses(kappascope_checkpoint_read("/nowhere.h5", &k), KAPPASCOPE_IO, "/nowhere.h5");
    assert_refuses(kappascope_checkpoint_read(NULL, &k), KAPPASCOPE_USAGE, "path is NULL");
}

TEST(test_bad_problems)
{
    struct ks_checkpoint *c = make(archs[0].text);
    struct kappascope_checkpoint *k = from_memory(c);
    struct kappascope_problem bad;
    struct kappascope_operator *a;

#define REFUSED(change, status, words)                                                             \
    do {                                                                                           \
        kappascope_problem_defaults(&bad);                                                         \
        change;                                                                                    \
        a = (void *)c;                                                                             \
        assert_refuses(kappascope_operator_new(k, &bad, &a), status, words);                       \
        assert_null(a);                                                                            \
    } while (0)
    REFUSED(bad.kind = "covariance", KAPPASCOPE_USAGE, "covariance");
    REFUSED(bad.kind = NULL, KAPPASCOPE_USAGE, "NULL");
    REFUSED(bad.precision = (enum kappascope_precision)7, KAPPASCOPE_USAGE, "precision");
    REFUSED(bad.minibatches = MINIBATCHES + 1, KAPPASCOPE_USAGE, "minibatches");
    REFUSED(bad.weight_decay = -1, KAPPASCOPE_USAGE, "weight_decay");
    REFUSED(bad.scale = NAN, KAPPASCOPE_USAGE, "scale");
    REFUSED(bad.critic = ENSEMBLE, KAPPASCOPE_USAGE, "critic");
    REFUSED(bad.layer = 99, KAPPASCOPE_USAGE, "layer");
    REFUSED(bad.layer = -2, KAPPASCOPE_USAGE, "layer");
    REFUSED(bad.raw_rewards = true, KAPPASCOPE_FORMAT, "raw");
    REFUSED(bad.kind = "preconditioned", KAPPASCOPE_FORMAT, "second moment");
    REFUSED(bad.kind = "manifold", KAPPASCOPE_FORMAT, "");
#undef REFUSED
    kappascope_checkpoint_free(k);
}

/* Any allocation may fail: the call returns an error and leaks nothing. */
TEST(test_no_memory)
{
    struct ks_checkpoint *c = make(archs[0].text);
    const struct kappascope_critic critic = critic_of(c);
    enum kappascope_status status = KAPPASCOPE_MEMORY;
    size_t failures = 0;

    for (size_t i = 1; status == KAPPASCOPE_MEMORY; i++) {
        struct kappascope_checkpoint *k = NULL;
        struct kappascope_operator *a = NULL;
        struct kappascope_spectrum *s = NULL;
        struct kappascope_problem problem;
        struct kappascope_slq_options slq;

        kappascope_problem_defaults(&problem);
        kappascope_slq_defaults(&slq);
        slq.order = 4;
        ks_alloc_fail_at(i);
        status = kappascope_checkpoint_new(&critic, &k);
        if (status == KAPPASCOPE_OK)
            status = kappascope_operator_new(k, &problem, &a);
        if (status == KAPPASCOPE_OK)
            status = kappascope_slq(a, &slq, &s);
        ks_alloc_fail_at(0);
        assert_true((status == KAPPASCOPE_OK) == (s != NULL));
        kappascope_spectrum_free(s);
        kappascope_operator_free(a);
        kappascope_checkpoint_free(k);
        failures += status != KAPPASCOPE_OK;
    }
    assert_int_equal(status, KAPPASCOPE_OK);
    assert_true(failures > 50);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;

int main(int argc, char **argv)
{
    (void)argc;
    ks_blas_start(argv);
    return run_all_tests();
}
