/* Two checkpoints with random bytes changed: a scout and reading succeed or fail with one line that
 * names the file, and the analyzer ends with exit status 0 or 2.
 *
 * $KS_MUTATIONS: the number of mutations of each checkpoint; `make nightly` sets more. */
#include "example.h"
#include "io/checkpoint.h"
#include "programs.h"

enum { MUTATIONS = 150 };
enum { SOME = 25 }; /* the analyzer reads one in SOME, and all that crash the scout */

/* --- a checkpoint as h5py writes it: format version 0, without checksums, strings in the global
 * heap --- */

static void copy_dataset(const struct ks_h5 *from, hid_t to, const char *object)
{
    struct stored how = {0};
    struct ks_h5_shape shape;
    double *values;

    assert_ok(ks_h5_shape(from, object, &shape));
    assert_ok(ks_h5_read_new(from, object, &shape, &values));
    how.rank = (int)shape.n_dims;
    for (size_t i = 0; i < shape.n_dims; i++)
        how.dims[i] = shape.dims[i];
    how.values = hold(values);
    add_dataset(to, object, H5T_IEEE_F64LE, &how);
}

static void write_critic(const char *path)
{
    static const char *const groups[] = {"/critic", "/critic/00_dense", "/critic/02_dense",
                                         "/batch"};
    static const char *const objects[] = {
        "/critic/00_dense/kernel", "/critic/00_dense/bias", "/critic/02_dense/kernel",
        "/critic/02_dense/bias",   "/batch/input",          "/batch/target"};
    const char *own = scratch("own.h5");
    struct ks_h5 *from;
    hid_t to;

    write_one(own, make_plain(MSE), false);
    assert_ok(ks_h5_open(own, NULL, &from));
    to = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        H5Gclose(H5Gcreate2(to, groups[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        copy_dataset(from, to, objects[i]);
    H5Fclose(to);
    ks_h5_close(from);
    set_string(path, "/", "format", "kappascope-checkpoint");
    set_integer(path, "/", "version", 1);
    set_string(path, "/critic", "arch", MSE);
    set_integer(path, "/critic", "ensemble", ENSEMBLE);
}

/* --- mutations --- */

/* Sizes and addresses that a reader may trust. */
static uint64_t mutation_number(struct ks_rng *rng)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       (uint64_t)1 << 31,
                                       (uint64_t)1 << 32,
                                       (uint64_t)1 << 63,
                                       (uint64_t)0 - 16,
                                       (uint64_t)0 - 1};
    const size_t n = sizeof numbers / sizeof *numbers;
    const size_t i = ks_rng_index(rng, n + 1);

    return i < n ? numbers[i] : ks_rng_index(rng, (size_t)1 << 20);
}

/* Mutates the n bytes; returns how many are left. */
static size_t mutate(struct ks_rng *rng, unsigned char *bytes, size_t n)
{
    enum { RUN = 64 };
    const size_t at = ks_rng_index(rng, n - RUN), from = ks_rng_index(rng, n - RUN);
    const uint64_t value = mutation_number(rng);

    switch (ks_rng_index(rng, 8)) {
    case 0:
        bytes[at] = (unsigned char)ks_rng_index(rng, 256);
        break;
    case 1:
        bytes[at] ^= (unsigned char)(1u << ks_rng_index(rng, 8));
        break;
    case 2:
    case 3: /* most fields are aligned */
        memcpy(bytes + at / 8 * 8, &value, 8);
        break;
    case 4:
        memcpy(bytes + at, &value, 4);
        break;
    case 5:
        memset(bytes + at, 0, RUN);
        break;
    case 6:
        memmove(bytes + at, bytes + from, RUN);
        break;
    default:
        return at;
    }
    return n;
}

/* The loss may overflow if a number became huge: the analysis then fails with exit status 1. */
static void check_program(size_t i)
{
    const int status = analyzer("--quiet --probes 1 --order 2 -o out bad.h5");

    if (status == 0)
        return;
    if (count(complained, "\n") != 1 || !strstr(complained, "bad.h5: ") ||
        !(status == 2 || strstr(complained, "finite")))
        fail_msg("mutation %zu: exit status %d, '%s'", i, status, complained);
}

static ks_status read_loss(const char *path, struct ks_checkpoint **c)
{
    struct ks_h5 *h5;
    ks_status status = ks_h5_open(path, "kappascope-checkpoint", &h5);

    if (status == KS_OK)
        status = ks_checkpoint_read_loss(h5, c);
    ks_h5_close(h5);
    return status;
}

/* `checked`: the file has checksums, so a mutated one must not read as a different checkpoint. */
static void check_mutations(const char *path, uint64_t stream, bool checked)
{
    const char *const asked = getenv("KS_MUTATIONS");
    const size_t mutations = asked ? strtoul(asked, NULL, 10) : MUTATIONS;
    struct ks_rng rng = ks_rng_start(11, stream);
    struct ks_checkpoint *good, *c;
    size_t n, read = 0, crashed = 0;
    unsigned char *bytes, *bad;
    char name[256];

    snprintf(name, sizeof name, "%s", scratch("bad.h5"));
    assert_ok(read_loss(path, &good));
    bytes = read_bytes(path, &n);
    bad = hold(malloc(n));
    assert_non_null(bad);
    for (size_t i = 0; i < mutations; i++) {
        bool crash = false;

        memcpy(bad, bytes, n);
        write_bytes(name, bad, mutate(&rng, bad, n));
        if (read_loss(name, &c) == KS_OK) {
            if (checked)
                same_checkpoint(c, good, false);
            ks_checkpoint_free(c);
            read++;
        } else {
            assert_one_line(name);
            crash = strstr(ks_error_text(), "the HDF5 library") != NULL;
            crashed += crash;
        }
        if (crash || i % SOME == 0)
            check_program(i);
    }
    print_message("%zu mutations: %zu read, %zu refused, %zu crashes and endless loops\n",
                  mutations, read, mutations - read - crashed, crashed);
    ks_checkpoint_free(good);
}

TEST(test_own)
{
    char path[256];

    snprintf(path, sizeof path, "%s", scratch("good.h5"));
    write_one(path, make_with_references(), false);
    check_mutations(path, 0, true);
}

TEST(test_foreign)
{
    char path[256];

    snprintf(path, sizeof path, "%s", scratch("good.h5"));
    write_critic(path);
    check_mutations(path, 1, false);
}

static int setup(void **state)
{
    setenv("KAPPASCOPE_SCOUT", "1", 1);
    return scratch_make(state) == 0 && mkdir(scratch("out"), 0700) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    remove(scratch("out/bad.spectrum.h5"));
    return scratch_remove(state);
}

CMFixtureFunction tests_setup = setup, tests_teardown = teardown;
