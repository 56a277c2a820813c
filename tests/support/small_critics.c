#include "small_critics.h"

static void add_attributes(struct ks_checkpoint *c)
{
    const double returns[] = {10, 15};

    assert_ok(ks_attribute_add_string(&c->attributes, "env", "dog-trot"));
    assert_ok(ks_attribute_add_integer(&c->attributes, "env_step", 50000));
    assert_ok(ks_attribute_add_number(&c->attributes, "return_mean", 12.5));
    assert_ok(ks_attribute_add_list(&c->attributes, "returns", 2, returns));
}

struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};
    struct ks_checkpoint *c = random_critic(text, sizes, 21);

    add_attributes(c);
    return c;
}

void add_raw(struct ks_checkpoint *c)
{
    size_t n = MINIBATCHES * LOSS_ROWS;

    assert_ok(ks_alloc(n, sizeof *c->target_raw, &c->target_raw));
    for (size_t i = 0; i < n; i++)
        c->target_raw[i] = 3 * c->target[i] + 1;
}

const char *file(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s.h5", scratch_folder, name);
    return path;
}

struct ks_spectrum *spectrum(const char *name, const char *arguments)
{
    char output[300];
    struct ks_spectrum *s;

    assert_runs("%s %s.h5", arguments, name);
    snprintf(output, sizeof output, "%s.spectrum", name);
    assert_ok(ks_spectrum_read(file(output), &s));
    assert_int_equal(remove(file(output)), 0);
    return s;
}

double statistic_of(const char *name, const char *arguments, const char *statistic_name)
{
    struct ks_spectrum *s = spectrum(name, arguments);
    double value = ks_statistic(s, statistic_name);

    ks_spectrum_free(s);
    return value;
}

size_t dimension(const char *text)
{
    struct KS(arch) *a;
    size_t n;

    assert_ok(ks_arch_parse_f64(text, "test", IN, &a));
    n = ENSEMBLE * a->parameters;
    ks_arch_free_f64(a);
    return n;
}

int write_checkpoints(void **state)
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
