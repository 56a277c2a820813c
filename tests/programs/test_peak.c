/* The memory of a process keeps to --memory: few large and many small minibatches, wide and narrow
 * critics, all operators, each with the size that a refusal names; the Hessian in float32 also
 * with three times as much. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "small_critics.h"

#define MLP "dense %zu\nrelu\ndense %zu\nrelu\ndense 1\nloss mse\n"
#define LN  "layernorm\ndense %zu\nlayernorm\nrelu\ndense %zu\nrelu\ndense 8\nloss ce min=-5 max=5\n"
#define BN                                                                                         \
    "batchnorm\ndense %zu bias=no\nbatchnorm\nrelu\ndense %zu\nbatchnorm\nrelu\ndense 1\nloss "    \
    "mse\n"
#define WN                                                                                         \
    "batchnorm\ndense %zu bias=no project=unit\nbatchnorm\nrelu\ndense %zu project=unit\n"         \
    "batchnorm\nrelu\ndense 8 project=unit-kernel\nloss ce min=-5 max=5\n"

struct shape {
    const char *name, *text;
    size_t width;
    struct critic_sizes sizes;
};

static const struct shape shapes[] = {
    {"large", MLP, 32, {1, 40, 1, 12000, 12000}},
    {"coupled", BN, 32, {2, 20, 1, 2500, 2000}},
    {"linear", "dense 1\nloss mse\n", 0, {1, 50, 1, 30000, 30000}},
    {"softmax", LN, 24, {2, 30, 1, 6000, 6000}},
    {"small", LN, 24, {2, 30, 60, 32, 32}},
    {"wide", MLP, 256, {1, 30, 2, 64, 64}},
    {"projected", WN, 48, {2, 20, 2, 1000, 800}},
    {"ensemble", MLP, 32, {10, 20, 4, 256, 256}},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* In a process of its own, so that this one stays small. */
static void write_shape(const struct shape *s)
{
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct ks_checkpoint *c = settle(
            random_critic(text_of(s->text, s->width, s->width), s->sizes, 50), 51);

        _exit(ks_checkpoint_write(file(s->name), c, true) == KS_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The largest resident memory of the analyzer, in kilobytes. */
static size_t peak(const char *arguments)
{
    int status, ends[2];
    size_t found = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rusage usage;
        const int end = analyzer("%s", arguments);

        getrusage(RUSAGE_CHILDREN, &usage);
        found = (size_t)usage.ru_maxrss;
        _exit(write(ends[1], &found, sizeof found) == sizeof found ? end : 3);
    }
    assert_int_equal(read(ends[0], &found, sizeof found), sizeof found);
    close(ends[0]), close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("the analyzer failed: %s", arguments);
    return found;
}

/* What the packed blocks of OpenBLAS and the caches of HDF5 take with large matrices, beyond what
 * they take with tiny ones. */
enum { SLACK = 12 << 10, TIMES = 3 };

static void check(const struct shape *s, const char *options, size_t most, size_t base)
{
    const size_t least = refused_memory(text_of("-q %s %s.h5", options, s->name));

    for (size_t times = 1; times <= most; times += TIMES - 1) {
        const char *arguments = text_of("-q --memory %zuK %s %s.h5", times * least, options,
                                        s->name);
        const size_t found = peak(arguments);

        if (found > times * least + base + SLACK)
            fail_msg("%s: %zuK, and %zuK for a tiny checkpoint", arguments, found, base);
    }
}

TEST(test_peak)
{
    static const char *const all[] = {"--order 6", "--order 6 --operator ggn --start gradient",
                                      "--order 6 --precision f64"};
    static const struct {
        const char *shape, *options;
    } others[] = {
        {"large", "--order 6 --operator residual"},
        {"large", "--order 6 --operator preconditioned"},
        {"large", "--order 6 --layers"},
        {"large", "--gradient g.h5"},
        {"large", "--order 12 --eigenvectors 1 --tolerance 0.9 --output v.h5"},
        {"large", "--order 12 --tolerance trace=0.5"},
        {"linear", "--exact"},
        {"coupled", "--order 6 --operator preconditioned"},
        {"coupled", "--order 6 --batchnorm eval"},
        {"coupled", "--gradient g.h5"},
        {"projected", "--order 6 --operator manifold"},
        {"projected", "--order 6 --layers"},
        {"projected", "--order 6 --compat xqc"},
        {"small", "--order 60 --probes 2"},
        {"small", "--order 60 --complement"},
        {"wide", "--order 60 --complement"},
        {"wide", "--order 60 --complement --tolerance directions_1e2=0.2"},
        {"wide", "--order 12 --eigenvectors 1 --tolerance 0.9 --output v.h5"},
        {"wide", "--order 20 --critic 0 --layer 2"},
    };
    size_t base;

#if defined(__SANITIZE_ADDRESS__)
    skip(); /* its own memory is many times as large */
#endif
    setenv("OMP_NUM_THREADS", "2", 1);
    base = peak("-q --order 6 bn+ce.h5");
    for (const struct shape *s = shapes; s < shapes + SHAPES; s++) {
        write_shape(s);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            check(s, all[i], i == 0 ? TIMES : 1, base);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strcmp(others[i].shape, s->name) == 0)
                check(s, others[i].options, 1, base);
        remove(file(s->name));
    }
}

CMFixtureFunction tests_setup = write_checkpoints, tests_teardown = scratch_remove;
