#include "small_critics.h"

static void add_attributes(struct ks_checkpoint *c)
{
    const double returns[] = {10, 15};

    ks_attribute_add_string(&c->attributes, "env", "dog-trot");
    ks_attribute_add_integer(&c->attributes, "env_step", 50000);
    ks_attribute_add_number(&c->attributes, "return_mean", 12.5);
    ks_attribute_add_list(&c->attributes, "returns", 2, returns);
}

struct ks_checkpoint *make(const char *text)
{
    struct critic_sizes sizes = {ENSEMBLE, IN, MINIBATCHES, ROWS, LOSS_ROWS};
    struct ks_checkpoint *c = keep_checkpoint(random_critic(text, sizes, 21));

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
    return scratch(text_of("%s.h5", name));
}

void save(const char *name, struct ks_checkpoint *c)
{
    assert_ok(ks_checkpoint_write(file(name), c, false));
}

struct ks_spectrum *spectrum(const char *name, const char *arguments)
{
    const char *output = scratch(text_of("%s.spectrum.h5", name));
    struct ks_spectrum *s;

    assert_runs("%s %s.h5", arguments, name);
    s = read_spectrum(output);
    assert_int_equal(remove(output), 0);
    return s;
}

double statistic_of(const char *name, const char *arguments, const char *statistic_name)
{
    return ks_statistic(spectrum(name, arguments), statistic_name);
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

double *dense_hessian(const char *name, size_t n)
{
    double *h = hold(calloc(n * n, sizeof *h));

    for (size_t k = 0; k < n; k++)
        h[k * n + k] = 1;
    assert_ok(ks_vectors_write(file("units"), &(struct ks_vectors){n, n, h, NULL, NULL}));
    assert_runs("--apply units.h5 --output columns.h5 --precision f64 %s.h5", name);
    return read_vectors("columns.h5", n, n);
}

int write_checkpoints(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    for (size_t i = 0; i < ARCHS; i++)
        save(archs[i].name, make(archs[i].text));
    return 0;
}
