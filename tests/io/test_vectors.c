/* Vector files: a round trip, and what is refused. */
#include "example.h"
#include "programs.h"

TEST_CLEAN(test_vectors)
{
    enum { K = 2, N = 1000 };
    const struct stored flat = {.rank = 1, .dims = {N}};
    const char *path = scratch("v.h5");
    struct ks_rng rng = ks_rng_start(1, 2);
    double *vectors = hold(numbers(&rng, K * N)), *read;
    struct ks_attribute loss = {.name = "loss", .type = KS_ATTRIBUTE_NUMBER, .number = 0.25}, a;
    struct ks_h5 *h5;
    size_t k;

    assert_ok(ks_vectors_write(path, &(struct ks_vectors){K, N, vectors, NULL, NULL}));
    assert_ok(try_vectors(path, N, &k, &read));
    assert_int_equal(k, K);
    same_numbers(K * N, read, vectors, false);
    free(read);
    assert_fails(try_vectors(path, N + 1, &k, &read), KS_FORMAT,
                 "/vector: expected shape [2, 1001], found [2, 1000]");
    assert_null(read);
    poke(path, "/vector", N, NAN);
    assert_fails(try_vectors(path, N, &k, &read), KS_FORMAT, "found nan at element 1000");
    free(read);
    assert_ok(ks_vectors_write(
        path,
        &(struct ks_vectors){1, N, vectors, &(struct ks_attributes){.list = &loss, .n = 1}, NULL}));
    assert_ok(ks_h5_open(path, "kappascope-vector", &h5));
    assert_ok(ks_h5_read_attribute(h5, "/", "loss", KS_ATTRIBUTE_NUMBER, &a));
    assert_true(a.number == loss.number);
    ks_h5_close(h5);
    replace(path, "/vector", H5T_IEEE_F64LE, &flat);
    assert_fails(try_vectors(path, N, &k, &read), KS_FORMAT,
                 "/vector: expected k > 0 vectors, [k, 1000], found [1000]");
    vectors[5] = INFINITY;
    assert_fails(ks_vectors_write(path, &(struct ks_vectors){1, N, vectors, NULL, NULL}), KS_NUMBER,
                 "/vector: expected finite numbers, found inf at element 5");
    set_integer(path, "/", "version", 3);
    assert_fails(try_vectors(path, N, &k, &read), KS_FORMAT, "expected 1, found 3");
}

/* An attribute that nothing reads is refused; those that the analyzer writes are not. */
TEST_CLEAN(test_attributes)
{
    struct ks_checkpoint *c = make_plain(MSE);
    const size_t n = ks_networks_parameters(&c->critic);
    KS_CLEARED_BY(ks_attributes_clear) struct ks_attributes attributes = {.n = 0};
    double *v;

    v = hold(calloc(n, sizeof *v));
    v[3] = 1;
    write_one(scratch("a.h5"), c, false);
    assert_ok(ks_vectors_write(scratch("v.h5"), &(struct ks_vectors){1, n, v, NULL, NULL}));
    assert_runs("-q --apply v.h5 --output hv.h5 a.h5%s", "");
    assert_runs("-q --apply hv.h5 --output hhv.h5 a.h5%s", ""); /* what the analyzer writes */
    assert_runs("-q --gradient g.h5 a.h5%s", "");
    assert_runs("-q --apply g.h5 --output hg.h5 a.h5%s", "");
    ks_attribute_add_string(&attributes, "order", "pytorch");
    assert_ok(ks_vectors_write(scratch("v.h5"), &(struct ks_vectors){1, n, v, &attributes, NULL}));
    assert_int_equal(analyzer("-q --apply v.h5 --output hv.h5 a.h5%s", ""), 2);
    assert_complains("v.h5: /: unknown attribute order: expected only format");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
