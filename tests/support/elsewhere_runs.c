#include "elsewhere_runs.h"

#include "critics.h"

enum { IN = 3, ROWS = 8, STEPS = 3 };
static const size_t step_of[STEPS] = {100, 200, 300};

const char *run_path(const char *name, size_t seed, const char *file)
{
    return text_of("s/runs/toy/%s/seed%zu/%s", name, seed, file);
}

static void add_adam(struct ks_checkpoint *c, size_t still)
{
    const size_t n = ks_networks_parameters(&c->critic);

    assert_ok(ks_alloc(n, sizeof *c->adam_m, &c->adam_m));
    assert_ok(ks_alloc(n, sizeof *c->adam_v, &c->adam_v));
    for (size_t i = still; i < n; i++)
        c->adam_v[i] = 1;
    c->adam_step = 10;
    c->adam = KS_ADAM_DEFAULTS;
}

void write_checkpoint(const char *name, size_t seed, size_t step, const struct sort *sort)
{
    const char *path = run_path(name, seed, text_of("step_%09zu.h5", step));
    const struct critic_sizes sizes = {2, IN, sort->n ? sort->n : 2, sort->rows ? sort->rows : ROWS,
                                       sort->rows ? sort->rows : ROWS};
    struct ks_checkpoint *c = random_critic(sort->network ? sort->network : MSE, sizes,
                                            1000 * seed + step + (size_t)*name);

    ks_attribute_add_integer(&c->attributes, "env_step", (int64_t)step);
    ks_attribute_add_integer(&c->attributes, "seed", (int64_t)seed);
    ks_attribute_add_number(&c->attributes, "gamma", sort->gamma > 0 ? sort->gamma : 0.99);
    if (sort->has_adam)
        add_adam(c, seed);
    if (sort->reward_scale > 0)
        ks_attribute_add_number(&c->attributes, "reward_scale", sort->reward_scale);
    ks_attribute_add_string(&c->attributes, "minibatches",
                            sort->minibatches ? sort->minibatches : "fixed");
    /* not what its table says, which counts */
    ks_attribute_add_number(&c->attributes, "return_mean", 999);
    write_text(path, ""); /* creates its folder */
    assert_ok(ks_checkpoint_write(scratch(path), c, false));
    ks_checkpoint_free(c);
}

void write_return_table(const char *name, size_t seed, const char *text)
{
    write_text(run_path(name, seed, "returns.csv"), text);
}

void write_run(const char *name, size_t seed, const struct sort *sort, int last)
{
    for (size_t k = 0; k < STEPS; k++)
        write_checkpoint(name, seed, step_of[k], sort);
    write_return_table(name, seed,
                       text_of("env_step,return,note\n100,1,a\n200,2,b\n300,%d,c\n", last));
}

void write_two(void)
{
    const struct sort same = {0};

    for (size_t i = 0; i < 2; i++) {
        write_run("a", i, &same, 10 + 10 * (int)i);
        write_run("b", i, &same, 30 + 10 * (int)i);
    }
}

void write_study(const char *text)
{
    write_text("s/study.study", text);
}

RELEASES(free_study, ks_study_free)

struct ks_study *read_study(void)
{
    struct ks_study *s = NULL;

    assert_ok(ks_study_read(scratch("s/study.study"), KS_STUDY_SHOW, &s));
    return hold_object(s, free_study);
}

void study_refuses(const char *words)
{
    struct ks_study *s = NULL;

    assert_fails(ks_study_read(scratch("s/study.study"), KS_STUDY_RUN, &s), KS_FORMAT, words);
    assert_null(s);
}

size_t count_warnings(const struct ks_study *s, const char *words)
{
    size_t n = 0;

    for (size_t i = 0; i < s->warnings.n; i++) {
        assert_null(strchr(s->warnings.text[i], '\n'));
        n += strstr(s->warnings.text[i], words) != NULL;
    }
    return n;
}
