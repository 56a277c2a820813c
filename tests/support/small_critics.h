/* Small checkpoints of six architectures for the tests of the analyzer, written to NAME.h5 in the
 * scratch folder. */
#ifndef KS_TEST_SMALL_CRITICS_H
#define KS_TEST_SMALL_CRITICS_H

#include "analyzer.h"

#include "io/spectrum.h"
#include "memory_critics.h"
#include "statistics/statistics.h"

enum { IN = 5, ENSEMBLE = 2, MINIBATCHES = 3, ROWS = 10, LOSS_ROWS = 6, ARCHS = 6 };

/* Batchnorm, layernorm or no norm before each relu, with both losses. */
static const struct {
    const char *name, *text;
} archs[ARCHS] = {
    {"bn+ce", "batchnorm\nrepeat 2 {\ndense 6 bias=no\nbatchnorm\nrelu\n}\ndense 4\n"
              "loss ce min=-5 max=5\n"},
    {"bn+mse", "batchnorm\ndense 6 bias=no\nbatchnorm\nrelu\ndense 1\nloss mse\n"},
    {"ln+ce",
     "layernorm\nrepeat 2 {\ndense 6\nlayernorm\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n"},
    {"ln+mse", "dense 6\nlayernorm\nrelu\ndense 1\nloss mse\n"},
    {"dense+ce", "repeat 2 {\ndense 6\nrelu\n}\ndense 4\nloss ce min=-5 max=5\n"},
    {"dense+mse", "repeat 2 {\ndense 6\nrelu\n}\ndense 1\nloss mse\n"},
};

static inline void add_attributes(struct ks_checkpoint *c)
{
    const double returns[] = {10, 15};

    assert_ok(ks_attribute_add_string(&c->attributes, "env", "dog-trot"));
    assert_ok(ks_attribute_add_integer(&c->attributes, "env_step", 50000));
    assert_ok(ks_attribute_add_number(&c->attributes, "return_mean", 12.5));
    assert_ok(ks_attribute_add_list(&c->attributes, "returns", 2, returns));
}

static inline struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};
    struct ks_checkpoint *c = random_critic(text, sizes, 21);

    add_attributes(c);
    return c;
}

/* Adds targets from raw rewards for an mse loss: three times as large, and shifted. */
static inline void add_raw(struct ks_checkpoint *c)
{
    size_t n = MINIBATCHES * LOSS_ROWS;

    assert_ok(ks_alloc(n, sizeof *c->target_raw, &c->target_raw));
    for (size_t i = 0; i < n; i++)
        c->target_raw[i] = 3 * c->target[i] + 1;
}

static const char *file(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s.h5", scratch_folder, name);
    return path;
}

/* The spectrum from a run with these arguments on NAME.h5; the caller frees it. */
static inline struct ks_spectrum *spectrum(const char *name, const char *arguments)
{
    char output[300];
    struct ks_spectrum *s;

    assert_runs("%s %s.h5", arguments, name);
    snprintf(output, sizeof output, "%s.spectrum", name);
    assert_ok(ks_spectrum_read(file(output), &s));
    assert_int_equal(remove(file(output)), 0);
    return s;
}

/* One statistic of that spectrum. */
static inline double statistic_of(const char *name, const char *arguments,
                                  const char *statistic_name)
{
    struct ks_spectrum *s = spectrum(name, arguments);
    double value = ks_statistic(s, statistic_name);

    ks_spectrum_free(s);
    return value;
}

static inline size_t dimension(const char *text)
{
    struct KS(arch) *a;
    size_t n;

    assert_ok(ks_arch_parse_f64(text, "test", IN, &a));
    n = ENSEMBLE * a->parameters;
    ks_arch_free_f64(a);
    return n;
}

static inline int write_checkpoints(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    for (size_t i = 0; i < ARCHS; i++) {
        struct ks_checkpoint *c = make(archs[i].text);

        assert_ok(ks_checkpoint_write(file(archs[i].name), c, false));
        ks_checkpoint_free(c);
    }
    return 0;
}

#endif
