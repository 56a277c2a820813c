/* The Lanczos basis on disk. A run that resumes from a file equals an uninterrupted one, wherever
 * writing stopped and however the file was damaged afterwards. */
#include "lanczos/basis.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "operators.h"
#include "scratch.h"

enum { N = 40, ORDER = 12, LONGER = 18, HEADER = 16 + 8 + 32 };
static const char FINGERPRINT[] = "operator diagonal\nseed 5\n";
static double value[20000];

static void fill_uniform(size_t n, double low, double high)
{
    for (size_t i = 0; i < n; i++)
        value[i] = low + (high - low) * (double)i / (double)(n - 1);
}

/* A run; it resumes from the file if `path` is not NULL. */
struct run {
    size_t order, stop; /* no iteration from `stop` on */
    bool single;
    size_t found, products;
    struct ks_lanczos *l;
};

static ks_status go(struct run *run, const char *stem)
{
    struct diagonal d = {.n = N, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_basis *basis = NULL;
    ks_status status = KS_OK;

    fill_uniform(N, -1, 2);
    KS_GO(ks_lanczos_new(N, run->order, run->single, NULL, &run->l));
    ks_lanczos_start(run->l, 5, 0);
    if (stem)
        KS_GO(ks_basis_open(stem, FINGERPRINT, run->l, &basis));
    run->found = run->l->steps;
    while (run->l->steps < run->stop && !run->l->exhausted) {
        KS_GO(ks_lanczos_step(run->l, &a));
        if (stem)
            KS_GO(ks_basis_append(basis, run->l));
    }
done:
    run->products = d.products;
    ks_basis_close(basis);
    return status;
}

/* Iterations [0, stop), read from the file and written to it, equal those of a run without a file,
 * bit for bit. */
static void check_resumes(size_t found_at_least, size_t found_at_most, size_t order, bool single)
{
    struct run run = {.order = order, .stop = order, .single = single}, uninterrupted = run;

    assert_ok(go(&run, scratch("a")));
    assert_ok(go(&uninterrupted, NULL));
    assert_in_range(run.found, found_at_least, found_at_most);
    assert_int_equal(run.products, order - run.found);
    assert_int_equal(run.l->steps, uninterrupted.l->steps);
    assert_memory_equal(run.l->alpha, uninterrupted.l->alpha, order * sizeof(double));
    assert_memory_equal(run.l->beta, uninterrupted.l->beta, order * sizeof(double));
    for (size_t j = 0; j <= order; j++)
        assert_memory_equal(ks_lanczos_vector(run.l, j), ks_lanczos_vector(uninterrupted.l, j),
                            ks_lanczos_vector_bytes(run.l));
    ks_lanczos_free(run.l);
    ks_lanczos_free(uninterrupted.l);
}

/* Replaces the file by these bytes. Writes a new file, because overwriting an old one may wait for
 * the disk. */
static void replace(const unsigned char *bytes, size_t size)
{
    remove(scratch("a.probe0.basis"));
    write_bytes(scratch("a.probe0.basis"), bytes, size);
}

static void write_steps(size_t steps, bool single)
{
    struct run run = {.order = ORDER, .stop = steps, .single = single};

    assert_ok(go(&run, scratch("a")));
    ks_lanczos_free(run.l);
}

/* Stops after each number of iterations. A larger order repeats none of them; a smaller one uses
 * the leading part and leaves the file unchanged. */
static void test_resumes(void **state)
{
    (void)state;
    for (int single = 0; single < 2; single++)
        for (size_t steps = 0; steps <= ORDER; steps++) {
            remove(scratch("a.probe0.basis"));
            write_steps(steps, single);
            check_resumes(steps, steps, LONGER, single);
            check_resumes(ORDER, ORDER, ORDER, single);
            check_resumes(LONGER, LONGER, LONGER, single);
        }
}

/* The file is truncated at any position. */
static void test_truncated_file(void **state)
{
    (void)state;
    for (int single = 0; single < 2; single++) {
        size_t size, record = 24 + N * (single ? 4 : 8) + 32, header;
        unsigned char *bytes;

        remove(scratch("a.probe0.basis"));
        write_steps(ORDER, single);
        bytes = read_bytes(scratch("a.probe0.basis"), &size);
        header = size - ORDER * record;
        assert_in_range(header, HEADER + strlen(FINGERPRINT), HEADER + strlen(FINGERPRINT) + 50);
        for (size_t cut = 0; cut <= size; cut++) {
            size_t complete = cut < header ? 0 : (cut - header) / record;

            replace(bytes, cut);
            check_resumes(complete, complete, ORDER, single);
        }
        free(bytes);
    }
}

/* One bit is flipped at any position: the iterations before it are used. If it is in the header,
 * the file is not recognized and stays unchanged. */
static void test_damage(void **state)
{
    (void)state;
    for (int single = 0; single < 2; single++) {
        size_t size, record = 24 + N * (single ? 4 : 8) + 32, header, size_now;
        unsigned char *bytes, *now;

        remove(scratch("a.probe0.basis"));
        write_steps(ORDER, single);
        bytes = read_bytes(scratch("a.probe0.basis"), &size);
        header = size - ORDER * record;
        for (size_t at = 0; at < size; at++) {
            size_t complete = at < header ? 0 : (at - header) / record;
            struct run run = {.order = ORDER, .stop = ORDER, .single = single};

            bytes[at] ^= (unsigned char)(1 << at % 8);
            replace(bytes, size);
            if (at < 16) {
                assert_fails(go(&run, scratch("a")), KS_FORMAT, "not a Lanczos basis file");
                assert_one_line("a.probe0.basis");
                ks_lanczos_free(run.l);
            } else {
                check_resumes(complete, complete, ORDER, single);
            }
            bytes[at] ^= (unsigned char)(1 << at % 8);
            if (at < 16)
                continue;
            now = read_bytes(scratch("a.probe0.basis"), &size_now); /* repaired */
            assert_int_equal(size_now, size);
            assert_memory_equal(now, bytes, size);
            free(now);
        }
        free(bytes);
    }
}

/* Records after a damaged one are removed when the next iteration is written. */
static void test_tail(void **state)
{
    size_t size, size_after, record = 24 + N * 8 + 32;
    struct run run = {.order = ORDER, .stop = 5};
    unsigned char *bytes;

    (void)state;
    write_steps(ORDER, false);
    bytes = read_bytes(scratch("a.probe0.basis"), &size);
    bytes[size - 8 * record] ^= 1; /* in iteration 4 */
    replace(bytes, size);
    assert_ok(go(&run, scratch("a")));
    assert_int_equal(run.found, 4);
    ks_lanczos_free(run.l);
    free(bytes);
    free(read_bytes(scratch("a.probe0.basis"), &size_after));
    assert_int_equal(size_after, size - (ORDER - 5) * record);
}

/* Undamaged records from another position or another file are rejected. */
static void test_foreign_records(void **state)
{
    size_t size, other_size, record = 24 + N * 8 + 32, header;
    unsigned char *bytes, *other;
    struct ks_lanczos *l;
    struct ks_basis *basis;

    (void)state;
    write_steps(ORDER, false);
    bytes = read_bytes(scratch("a.probe0.basis"), &size);
    header = size - ORDER * record;
    memcpy(bytes + header + 3 * record, bytes + header + 4 * record, record);
    write_bytes(scratch("a.probe0.basis"), bytes, size);
    check_resumes(3, 3, ORDER, false);
    write_steps(ORDER, false);
    free(bytes);
    bytes = read_bytes(scratch("a.probe0.basis"), &size);
    assert_ok(ks_lanczos_new(N, ORDER, false, NULL, &l));
    ks_lanczos_start(l, 6, 0);
    assert_ok(ks_basis_open(scratch("b"), "operator diagonal\nseed 6\n", l, &basis));
    ks_basis_close(basis);
    ks_lanczos_free(l);
    other = read_bytes(scratch("b.probe0.basis"), &other_size);
    assert_int_equal(other_size, header);
    memcpy(bytes, other, header);
    write_bytes(scratch("b.probe0.basis"), bytes, size);
    assert_ok(ks_lanczos_new(N, ORDER, false, NULL, &l));
    ks_lanczos_start(l, 6, 0);
    assert_ok(ks_basis_open(scratch("b"), "operator diagonal\nseed 6\n", l, &basis));
    assert_int_equal(l->steps, 0);
    ks_basis_close(basis);
    ks_lanczos_free(l);
    free(bytes);
    free(other);
}

static ks_status open_with(const char *stem, const char *fingerprint, uint64_t probe)
{
    struct ks_basis *basis = NULL;
    struct ks_lanczos *l;
    ks_status status;

    assert_ok(ks_lanczos_new(N, ORDER, false, NULL, &l));
    ks_lanczos_start(l, 5, probe);
    status = ks_basis_open(stem, fingerprint, l, &basis);
    ks_basis_close(basis);
    ks_lanczos_free(l);
    return status;
}

/* A file with another fingerprint is refused, with the first line that differs, and stays
 * unchanged. */
static void test_other_fingerprints(void **state)
{
    size_t size, size_after;
    unsigned char *before, *after;

    (void)state;
    write_steps(ORDER, false);
    before = read_bytes(scratch("a.probe0.basis"), &size);
    assert_fails(open_with(scratch("a"), "operator diagonal\nseed 6\n", 0), KS_USAGE,
                 "'seed 6'; found those of another, 'seed 5': delete the file");
    assert_one_line("a.probe0.basis");
    assert_fails(open_with(scratch("a"), "operator diagonal\nseed 5\nmore 1\n", 0), KS_USAGE,
                 "'more 1'; found those of another, 'probe 0'");
    assert_fails(open_with(scratch("a"), "operator diagonal\n", 0), KS_USAGE,
                 "'probe 0'; found those of another, 'seed 5'");
    assert_ok(open_with(scratch("a"), FINGERPRINT, 1)); /* each probe has its own file */
    after = read_bytes(scratch("a.probe0.basis"), &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
    assert_int_equal(rename(scratch("a.probe0.basis"), scratch("a.probe1.basis")), 0);
    assert_fails(open_with(scratch("a"), FINGERPRINT, 1), KS_USAGE,
                 "'probe 1'; found those of another, 'probe 0'");
}

static void test_refused_paths(void **state)
{
    char path[300];

    (void)state;
    snprintf(path, sizeof path, "%s/", scratch("nowhere"));
    assert_fails(open_with(path, FINGERPRINT, 0), KS_IO, "No such file");
    write_bytes(scratch("a.probe0.basis"), "some text\n", 10);
    assert_fails(open_with(scratch("a"), FINGERPRINT, 0), KS_FORMAT, "not a Lanczos basis file");
    remove(scratch("a.probe0.basis"));
    assert_int_equal(mkdir(scratch("a.probe0.basis"), 0755), 0);
    assert_fails(open_with(scratch("a"), FINGERPRINT, 0), KS_IO, "directory");
    assert_int_equal(rmdir(scratch("a.probe0.basis")), 0);
    assert_int_equal(mkfifo(scratch("a.probe0.basis"), 0644), 0);
    assert_fails(open_with(scratch("a"), FINGERPRINT, 0), KS_IO, "regular file");
}

/* While a process writes the file, no other process can open it for writing. */
static void test_lock(void **state)
{
    struct ks_basis *basis;
    struct ks_lanczos *l;
    int status;
    pid_t child;

    (void)state;
    assert_ok(ks_lanczos_new(N, ORDER, false, NULL, &l));
    ks_lanczos_start(l, 5, 0);
    assert_ok(ks_basis_open(scratch("a"), FINGERPRINT, l, &basis));
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(open_with(scratch("a"), FINGERPRINT, 0) == KS_IO &&
                      strstr(ks_error_text(), "another analysis")
                  ? 0
                  : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ks_basis_close(basis);
    assert_ok(open_with(scratch("a"), FINGERPRINT, 0));
    ks_lanczos_free(l);
}

/* A limit on file sizes stops the writing within a record, as a full disk does. */
static void test_full_disk(void **state)
{
    struct rlimit old, small;
    size_t size;

    (void)state;
    write_steps(ORDER, false);
    free(read_bytes(scratch("a.probe0.basis"), &size));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (size_t limit = 1; limit < size; limit += 97) {
        struct run run = {.order = ORDER, .stop = ORDER};
        ks_status status;

        remove(scratch("a.probe0.basis"));
        small = (struct rlimit){.rlim_cur = limit, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        status = go(&run, scratch("a"));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_fails(status, KS_FULL, "cannot be written");
        assert_one_line("a.probe0.basis");
        ks_lanczos_free(run.l);
        check_resumes(0, ORDER, ORDER, false);
    }
}

/* The Krylov space has ended: a resumed run has nothing left to do. */
static void test_exhausted(void **state)
{
    struct diagonal d = {.n = N, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_slq slq = {.order = ORDER,
                         .probes = 2,
                         .seed = 5,
                         .basis_stem = scratch("a"),
                         .fingerprint = FINGERPRINT};

    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = i % 3 == 0 ? 0.1 : 7.3;
    for (int again = 0; again < 2; again++) {
        struct ks_spectrum *s = spectrum_new();

        d.products = 0;
        assert_ok(ks_slq(&a, &slq, s));
        assert_int_equal(s->steps[0], 2);
        assert_int_equal(s->steps[1], 2);
        assert_int_equal(d.products, again ? 0 : 4);
        ks_spectrum_free(s);
    }
}

static void test_out_of_memory(void **state)
{
    ks_status status = KS_MEMORY;
    size_t n = 0;

    (void)state;
    for (; status != KS_OK; n++) {
        struct run run = {.order = ORDER, .stop = 4};

        ks_alloc_fail_at(n + 1);
        status = go(&run, scratch("a"));
        ks_alloc_fail_at(0);
        assert_true(status == KS_OK || status == KS_MEMORY);
        ks_lanczos_free(run.l);
    }
    assert_true(n > 5);
    check_resumes(4, 4, ORDER, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_resumes, scratch_clean),
        cmocka_unit_test_teardown(test_truncated_file, scratch_clean),
        cmocka_unit_test_teardown(test_damage, scratch_clean),
        cmocka_unit_test_teardown(test_tail, scratch_clean),
        cmocka_unit_test_teardown(test_foreign_records, scratch_clean),
        cmocka_unit_test_teardown(test_other_fingerprints, scratch_clean),
        cmocka_unit_test_teardown(test_refused_paths, scratch_clean),
        cmocka_unit_test_teardown(test_lock, scratch_clean),
        cmocka_unit_test_teardown(test_full_disk, scratch_clean),
        cmocka_unit_test_teardown(test_exhausted, scratch_clean),
        cmocka_unit_test_teardown(test_out_of_memory, scratch_clean),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
