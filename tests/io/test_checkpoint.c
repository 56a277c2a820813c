/* Checkpoints: round trips, files of other programs, damaged and incomplete files. */
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "example.h"

#ifdef __SANITIZE_ADDRESS__
/* libhdf5 does not free all that it allocated for a damaged file. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}
#endif

TEST_CLEAN(test_round_trip)
{
    const char *path = scratch("a.h5");

    for (int variant = 0; variant < 6; variant++) {
        const bool single = variant % 2;
        struct ks_checkpoint *written = variant < 2 ? make_with_references()
                                                    : make_plain(variant < 4 ? CE : MSE);
        struct ks_checkpoint *read;

        if (variant == 2) { /* running statistics are optional */
            free(written->critic.state);
            written->critic.state = NULL;
        }
        assert_ok(ks_checkpoint_write(path, written, single));
        assert_ok(try_checkpoint(path, &read));
        same_checkpoint(read, written, single);
        ks_checkpoint_free(read);
        assert_int_equal(scratch_files(false), 1);
    }
}

/* No time is stored: writing again a second later gives the same bytes. */
TEST_CLEAN(test_deterministic)
{
    const struct timespec second = {.tv_sec = 1, .tv_nsec = 50000000};
    struct ks_checkpoint *c = make_with_references();

    assert_ok(ks_checkpoint_write(scratch("a.h5"), c, true));
    nanosleep(&second, NULL);
    assert_ok(ks_checkpoint_write(scratch("b.h5"), c, true));
    assert_same_files(scratch("b.h5"), scratch("a.h5"));
}

TEST_CLEAN(test_truncated)
{
    const char *path = scratch("a.h5"), *part = scratch("part.h5");
    struct ks_checkpoint *c;
    unsigned char *bytes;
    size_t n;

    write_one(path, make_with_references(), true);
    bytes = read_bytes(path, &n);
    for (size_t i = 0; i <= 200; i++) {
        ks_status status;

        write_bytes(part, bytes, i < 200 ? i * n / 200 : n - 1);
        status = try_checkpoint(part, &c);
        assert_null(c);
        assert_true(status == KS_FORMAT || status == KS_IO);
        assert_one_line(part);
    }
}

/* A flipped byte is detected, or lies in unused space and changes nothing. */
TEST_CLEAN(test_flipped_bytes)
{
    enum { FLIPS = 700 };
    const char *path = scratch("a.h5"), *bad = scratch("bad.h5");
    struct ks_checkpoint *good, *c;
    unsigned char *bytes;
    size_t n, found = 0;

    write_one(path, make_with_references(), false);
    assert_ok(try_checkpoint(path, &good));
    bytes = read_bytes(path, &n);
    for (size_t i = 0; i < FLIPS; i++) {
        const size_t at = i * n / FLIPS;

        bytes[at] ^= (unsigned char)(1u << i % 8);
        write_bytes(bad, bytes, n);
        bytes[at] ^= (unsigned char)(1u << i % 8);
        if (try_checkpoint(bad, &c) == KS_OK) {
            same_checkpoint(c, good, false);
            ks_checkpoint_free(c);
        } else {
            assert_one_line(bad);
            found++;
        }
    }
    assert_true(found > FLIPS / 4);
    ks_checkpoint_free(good);
}

TEST_CLEAN(test_not_written)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_with_references();

    assert_ok(ks_checkpoint_write(path, c, true));
    assert_ok(ks_checkpoint_write(scratch("same.h5"), c, true));
    c->critic.w[3] = NAN;
    assert_fails(ks_checkpoint_write(path, c, true), KS_NUMBER, "the file is not written");
    c->critic.w[3] = 1e39; /* overflows float32 */
    assert_fails(ks_checkpoint_write(path, c, true), KS_NUMBER, "the file is not written");
    assert_fails(ks_checkpoint_write(scratch("no/such.h5"), c, false), KS_IO, "No such file");
    assert_same_files(path, scratch("same.h5"));
    assert_int_equal(scratch_files(false), 2);
}

/* A limit on file sizes interrupts the write, as a full disk does. */
TEST_CLEAN(test_full_disk)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_with_references(), *read;
    struct rlimit old, small;
    ks_status status;

    assert_ok(ks_checkpoint_write(path, c, false));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = ks_checkpoint_write(path, c, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_fails(status, KS_FULL, "cannot be written: File too large");
    assert_one_line(path);
    assert_int_equal(scratch_files(false), 1);
    assert_ok(try_checkpoint(path, &read));
    same_checkpoint(read, c, false);
    ks_checkpoint_free(read);
}

TEST_CLEAN(test_allocation_failures)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_with_references(), *read = NULL;
    struct starved writing = {.least = 10}, reading = {.least = 10};

    while (starving(&writing)) {
        writing.status = ks_checkpoint_write(path, written, false);
        assert_int_equal(scratch_files(false), writing.status == KS_OK);
    }
    while (starving(&reading))
        reading.status = try_checkpoint(path, &read);
    same_checkpoint(read, written, false);
    ks_checkpoint_free(read);
}

/* For tests/peer/h5py_checkpoint.py: `test_checkpoint write FILE` writes a complete checkpoint,
 * `test_checkpoint read FILE` reads one and prints its contents. */
static int serve_peer(const char *command, const char *path)
{
    struct ks_checkpoint *c = NULL;
    ks_status status;

    if (strcmp(command, "write") == 0) {
        c = make_with_references();
        status = ks_checkpoint_write(path, c, true);
    } else {
        status = try_checkpoint(path, &c);
    }
    if (status != KS_OK)
        fprintf(stderr, "%s\n", ks_error_text());
    else
        printf("%zu %zu %zu %zu %zu %.17g %.17g %.17g\n", c->critic.ensemble,
               c->critic.arch->parameters, c->minibatches, c->rows, c->loss_rows, c->critic.w[1],
               c->input[2], c->target[3]);
    ks_checkpoint_free(c);
    return ks_exit_status(status);
}

/* ks_checkpoint_read_loss gives the same numbers without the parts on which the loss does not
 * depend. A malformed actor does not matter. */
TEST_CLEAN(test_loss_parts)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_with_references(), *read;
    const size_t p = written->critic.ensemble * written->critic.arch->parameters;
    struct ks_h5 *h5;
    double bytes;
    hid_t file;

    assert_ok(ks_checkpoint_write(path, written, false));
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_true(H5Adelete_by_name(file, "/actor", "arch", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    assert_fails(try_checkpoint(path, &read), KS_FORMAT, "/actor");
    assert_ok(ks_h5_open(path, "kappascope-checkpoint", &h5));
    assert_ok(ks_checkpoint_bytes(h5, &bytes));
    assert_ok(ks_checkpoint_read_loss(h5, &read));
    ks_h5_close(h5);
    assert_null(read->actor.text);
    assert_null(read->target_critic.text);
    assert_int_equal(read->settings.n, 0);
    assert_int_equal(read->adam_step, written->adam_step);
    assert_memory_equal(read->adam_m, written->adam_m, p * sizeof *read->adam_m);
    assert_memory_equal(read->adam_v, written->adam_v, p * sizeof *read->adam_v);
    assert_memory_equal(read->critic.w, written->critic.w, p * sizeof *read->critic.w);
    ks_checkpoint_free(read);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;

int main(int argc, char **argv)
{
    if (argc == 3)
        return serve_peer(argv[1], argv[2]);
    return run_all_tests();
}
