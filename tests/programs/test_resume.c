/* --keep-basis by running the program: an analysis that is killed at any moment, or finds its disk
 * full or its file damaged, is restarted. It ends with the same file as an uninterrupted one, byte
 * for byte. */
#include "small_critics.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "core/progress.h"
#include "core/rng.h"
#include "io/spectrum.h"

enum { ORDER = 60, SHORTER = 45, LONGER = 75, TRIALS = 24 };
static const char MEDIUM[] =
    "repeat 3 {\ndense 40\nlayernorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n";
static char program[1200]; /* its absolute path */

/* The memory budget decides the precision of the basis. */
static struct variant {
    const char *precision;
    char options[128];
} variants[] = {
    {"f64", "--precision f64 --probes 2"},
    {"f32", "--precision f64 --probes 2"},
};

static int write_medium(void **state)
{
    struct ks_checkpoint *c = make(MEDIUM);
    const char *folder = getenv("KS_BIN");
    char here[1024] = "", options[64];

    if (write_checkpoints(state) != 0)
        return -1;
    assert_ok(ks_checkpoint_write(file("medium"), c, false));
    ks_checkpoint_free(c);
    folder = folder ? folder : "build/bin";
    if (folder[0] != '/')
        assert_non_null(getcwd(here, sizeof here));
    snprintf(program, sizeof program, "%s%s%s/kappascope-analyze", here, here[0] ? "/" : "",
             folder);
    snprintf(options, sizeof options, "--precision f64 --order %d medium.h5", LONGER);
    snprintf(variants[1].options, sizeof variants[1].options,
             "--precision f64 --probes 2 --memory %zuK", least_memory(options));
    return 0;
}

static void remove_results(void)
{
    remove(scratch("medium.probe0.basis"));
    remove(scratch("medium.probe1.basis"));
    remove(scratch("medium.spectrum.h5"));
}

/* The bytes of the spectrum file of a run with these options; the caller frees. */
static unsigned char *result(const char *options, int order, size_t *size)
{
    assert_runs("-q %s --order %d medium.h5", options, order);
    return read_bytes(scratch("medium.spectrum.h5"), size);
}

static void check_result(const char *options, int order, const unsigned char *expected,
                         size_t expected_size)
{
    size_t size;
    unsigned char *bytes = result(options, order, &size);

    assert_int_equal(size, expected_size);
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

static void check_basis_precision(const char *expected)
{
    struct ks_spectrum *s;

    assert_ok(ks_spectrum_read(scratch("medium.spectrum.h5"), &s));
    assert_string_equal(ks_attribute_find(&s->attributes, "basis_precision")->string, expected);
    ks_spectrum_free(s);
}

static void wait_seconds(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};

    nanosleep(&time, NULL);
}

/* Starts the analysis and kills it after that time. Returns whether it had finished by then. */
static bool run_for(const char *options, double seconds)
{
    pid_t child = fork();
    char command[2048];
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        snprintf(command, sizeof command,
                 "exec '%s' -q --keep-basis %s --order %d medium.h5 "
                 ">out.txt 2>err.txt",
                 program, options, ORDER);
        setenv("OMP_WAIT_POLICY", "passive", 1);
        if (chdir(scratch_folder) == 0)
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    wait_seconds(seconds);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return !WIFSIGNALED(status);
}

/* The analysis is killed repeatedly, at random moments within the duration of a run, until one run
 * finishes. */
static void test_kills(void **state)
{
    struct ks_rng rng = ks_rng_start(31, 0);
    size_t kills = 0;

    (void)state;
    for (size_t v = 0; v < 2; v++) {
        double started = ks_seconds(), duration;
        size_t size;
        unsigned char *expected = result(variants[v].options, ORDER, &size);

        duration = ks_seconds() - started;
        check_basis_precision(variants[v].precision);
        for (size_t trial = 0; trial < TRIALS / 2; trial++) {
            char options[256];

            remove_results();
            for (int i = 0;
                 i < 4 && !run_for(variants[v].options, ks_rng_uniform(&rng, 0, duration)); i++)
                kills++;
            snprintf(options, sizeof options, "--keep-basis %s", variants[v].options);
            check_result(options, ORDER, expected, size);
        }
        free(expected);
        remove_results();
    }
    assert_true(kills >= TRIALS);
}

/* The file is truncated or damaged at many positions, and resumed with a larger or a smaller
 * order. */
static void test_damage(void **state)
{
    struct ks_rng rng = ks_rng_start(32, 0);

    (void)state;
    for (size_t v = 0; v < 2; v++) {
        size_t size, longer_size, shorter_size, basis_size;
        char options[256];
        unsigned char *expected = result(variants[v].options, ORDER, &size), *basis;
        unsigned char *longer = result(variants[v].options, LONGER, &longer_size);
        unsigned char *shorter = result(variants[v].options, SHORTER, &shorter_size);

        snprintf(options, sizeof options, "--keep-basis %s", variants[v].options);
        check_result(options, ORDER, expected, size);
        basis = read_bytes(scratch("medium.probe1.basis"), &basis_size);
        for (size_t trial = 0; trial < TRIALS / 2; trial++) {
            size_t at = 16 + ks_rng_index(&rng, basis_size - 16);

            if (trial % 2) {
                basis[at] ^= 0x10;
                write_bytes(scratch("medium.probe1.basis"), basis, basis_size);
                basis[at] ^= 0x10;
            } else {
                write_bytes(scratch("medium.probe1.basis"), basis, at);
            }
            check_result(options, ORDER, expected, size);
        }
        check_result(options, SHORTER, shorter, shorter_size);
        check_result(options, LONGER, longer, longer_size);
        check_result(options, ORDER, expected, size);
        free(expected), free(longer), free(shorter), free(basis);
        remove_results();
    }
}

/* Existing iterations are not computed again, and a message says so; another analysis is refused
 * and changes nothing. */
static void test_messages(void **state)
{
    static const char *const others[] = {
        "--precision f32",
        "--precision f64 --seed 1",
        "--precision f64 --scale 2",
        "--precision f64 --weight-decay 0.1",
        "--precision f64 --batches 2",
        "--precision f64 --batchnorm eval",
        "--precision f64 --operator ggn",
        "--precision f64 --critic 1",
        "--precision f64 --layer 0",
    };

    (void)state;
    assert_runs("--keep-basis --precision f64 --order 30 medium.h5");
    assert_null(strstr(complained, "are there"));
    assert_runs("--keep-basis --precision f64 --order 40 medium.h5");
    assert_non_null(strstr(complained, "medium.h5: probe 0: resuming after 30 of 40 steps\n"));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char *newline;

        if (analyzer("-q --keep-basis %s medium.h5", others[i]) != 2)
            fail_msg("%s: %s", others[i], complained);
        newline = strchr(complained, '\n');
        assert_non_null(strstr(complained, "medium.probe0.basis: expected the steps of this"));
        assert_non_null(strstr(complained, "delete the file"));
        assert_true(newline && !newline[1]);
    }
    assert_runs("--keep-basis --precision f64 --order 40 medium.h5");
    assert_non_null(strstr(complained, "resuming after 40 of 40 steps\n"));
    remove_results();
}

/* With less memory the basis is in float32, and a message says so; with even less the analysis is
 * refused, with the sizes. */
static void test_memory(void **state)
{
    size_t least = least_memory("--precision f64 --order 60 medium.h5");

    (void)state;
    assert_non_null(strstr(complained, "the Lanczos vectors in float32 in "));
    assert_runs("--precision f64 --memory %zuK --order 60 medium.h5", least);
    assert_non_null(
        strstr(complained, "GB for vectors (in float32, since they do not fit in float64)"));
    check_basis_precision("f32");
    assert_runs("--precision f64 --memory %zuK --order 60 medium.h5", 3 * least);
    assert_null(strstr(complained, "float32"));
    check_basis_precision("f64");
    assert_int_equal(analyzer("--precision f64 --memory %zuK --order 60 medium.h5", least - 1), 1);
    least_memory("--exact ln+ce.h5");
    remove_results();
}

/* A full disk ends the run with one line; when there is room again, the run resumes. */
static void test_full_disk(void **state)
{
    struct rlimit old, small;
    size_t size;
    unsigned char *expected = result(variants[0].options, ORDER, &size);

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (rlim_t limit = 1 << 14; limit < 1 << 22; limit *= 4) {
        remove_results();
        small = (struct rlimit){.rlim_cur = limit, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(
            analyzer("-q --keep-basis --precision f64 --probes 2 --order 60 medium.h5"), 1);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_non_null(strstr(complained, "medium.probe0.basis: cannot be written"));
        assert_int_not_equal(access(scratch("medium.spectrum.h5"), F_OK), 0);
        check_result("--keep-basis --precision f64 --probes 2", ORDER, expected, size);
    }
    free(expected);
    remove_results();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills),     cmocka_unit_test(test_damage),
        cmocka_unit_test(test_messages),  cmocka_unit_test(test_memory),
        cmocka_unit_test(test_full_disk),
    };

    return cmocka_run_group_tests(tests, write_medium, scratch_remove);
}
