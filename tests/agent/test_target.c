/* Values and targets: hand-worked cases, conservation of mass and of the mean. Compiled in both
 * precisions. */
#include "test.h"

#include "agent/target.h"
#include "core/rng.h"

enum { ATOMS = 5, MANY = 101 };

static const struct KS(loss_kind) atoms_kind = {.name = "ce", .distribution = true},
                                  value_kind = {.name = "mse"},
                                  quantile_kind = {.name = "quantile"};

static const struct KS(loss) *ce(size_t atoms, double max) /* support [-max, max] */
{
    static struct KS(loss) loss;

    loss = (struct KS(loss)){.kind = &atoms_kind,
                             .outputs = atoms,
                             .targets = atoms,
                             .min = -max,
                             .max = max,
                             .weight = 1};
    return &loss;
}

static const struct KS(loss) mse = {.kind = &value_kind, .outputs = 1, .targets = 1, .weight = 1};

static const struct KS(loss) quantiles = {
    .kind = &quantile_kind, .outputs = 3, .targets = 3, .weight = 1};

struct row {
    double reward;
    float mask;
    double log_pi; /* of the next action */
};

/* The target of one row with critics' outputs f[e]. */
static size_t any_target(const struct KS(loss) *loss, size_t ensemble, enum ks_value value,
                         const real *const *f, struct row row, real *target)
{
    real scratch[2 * MANY], l = (real)row.log_pi;

    return KS(critic_target)(loss,
                             &(struct KS(next_values)){.ensemble = ensemble,
                                                       .value = value,
                                                       .f = f,
                                                       .reward = &row.reward,
                                                       .mask = &row.mask,
                                                       .log_pi = &l,
                                                       .gamma = 0.5,
                                                       .temperature = 0.1},
                             0, scratch, target);
}

static size_t one_target(const struct KS(loss) *loss, size_t ensemble, const real *const *f,
                         struct row row, real *target)
{
    return any_target(loss, ensemble, KS_SMALLEST, f, row, target);
}

static void assert_row(size_t n, const real *found, const double *expected)
{
    for (size_t k = 0; k < n; k++)
        assert_close((double)found[k], expected[k], 4 * (double)KS_EPSILON);
}

/* All mass on one atom: at -1000 the exponential is exactly 0. */
static void peak(size_t atoms, size_t at, real *f)
{
    for (size_t k = 0; k < atoms; k++)
        f[k] = k == at ? 0 : -1000;
}

/* Support -2, -1, 0, 1, 2; gamma 1/2. */
TEST(test_projection)
{
    static const struct {
        size_t at;
        double reward, log_pi;
        float mask;
        double target[ATOMS];
        size_t clipped;
    } cases[] = {
        {4, 0, 0, 1, {0, 0, 0, 1, 0}, 0},            /* z = 1: exactly on an atom            */
        {3, 0, 0, 1, {0, 0, 0.5, 0.5, 0}, 0},        /* z = 1/2: halved                      */
        {3, 0.25, 0, 1, {0, 0, 0.25, 0.75, 0}, 0},   /* z = 3/4                              */
        {4, 1.5, 0, 1, {0, 0, 0, 0, 1}, 1},          /* z = 5/2, clipped; atom 3 lands on 2  */
        {0, -1.5, 0, 1, {1, 0, 0, 0, 0}, 1},         /* z = -5/2                             */
        {4, 2, 0, 0, {0, 0, 0, 0, 1}, 0},            /* terminal: z = r, on the last atom    */
        {1, -0.25, 9, 0, {0, 0.25, 0.75, 0, 0}, 0},  /* terminal: neither values nor entropy */
        {2, 0, 5, 1, {0, 0.25, 0.75, 0, 0}, 0},      /* entropy: z = -gamma T log pi = -1/4  */
        {4, 1, 5, 0.5F, {0, 0, 0, 0.625, 0.375}, 0}, /* two steps: z = 1 + gamma^2 (2 - 1/2) */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        real f[ATOMS], target[ATOMS];
        const real *critics[] = {f};
        size_t clipped;

        peak(ATOMS, cases[i].at, f);
        clipped = one_target(ce(ATOMS, 2), 1, critics,
                             (struct row){cases[i].reward, cases[i].mask, cases[i].log_pi}, target);
        assert_row(ATOMS, target, cases[i].target);
        assert_int_equal(clipped, cases[i].clipped);
    }
}

/* A distribution inside the support keeps its mass, and its mean becomes r + gamma (mean - T log
 * pi). */
TEST(test_mass_and_mean)
{
    const struct KS(loss) *loss = ce(MANY, 5);
    struct ks_rng rng = ks_rng_start(5, 0);
    real f[MANY], p[MANY], target[MANY];
    const real *critics[] = {f};
    double mass = 0, mean = 0, q;

    for (size_t k = 0; k < MANY; k++)
        f[k] = (real)ks_rng_normal(&rng);
    q = KS(critic_value)(loss, f, p);
    assert_int_equal(one_target(loss, 1, critics, (struct row){0.7, 1, -3}, target), 0);
    for (size_t k = 0; k < MANY; k++) {
        assert_true(target[k] >= 0);
        mass += (double)target[k];
        mean += (double)target[k] * (-5 + 0.1 * (double)k);
    }
    assert_close(mass, 1, 20 * (double)KS_EPSILON);
    assert_close(mean, 0.7 + 0.5 * (q + 0.1 * 3), 50 * (double)KS_EPSILON);
}

/* The critic with the smaller mean supplies the distribution; on a tie the first. */
TEST(test_smaller_critic)
{
    real low[ATOMS], high[ATOMS], wide[ATOMS], target[ATOMS];
    const real *one[] = {high, low}, *two[] = {low, high}, *tie[] = {wide, high},
               *eit[] = {high, wide};
    static const double at_low[] = {0, 0.5, 0.5, 0, 0}, at_high[] = {0, 0, 1, 0, 0};
    static const double at_wide[] = {0, 0.5, 0, 0.5, 0};

    peak(ATOMS, 1, low);
    peak(ATOMS, 2, high); /* mean 0 */
    for (size_t k = 0; k < ATOMS; k++)
        wide[k] = k % 4 == 0 ? 0 : -1000; /* halves at -2 and 2: mean 0 */
    one_target(ce(ATOMS, 2), 2, one, (struct row){0, 1, 0}, target);
    assert_row(ATOMS, target, at_low);
    one_target(ce(ATOMS, 2), 2, two, (struct row){0, 1, 0}, target);
    assert_row(ATOMS, target, at_low);
    one_target(ce(ATOMS, 2), 2, tie, (struct row){0, 1, 0}, target);
    assert_row(ATOMS, target, at_wide);
    one_target(ce(ATOMS, 2), 2, eit, (struct row){0, 1, 0}, target);
    assert_row(ATOMS, target, at_high);
}

TEST(test_scalar)
{
    real a = 3, b = (real)2.5, target;
    const real *critics[] = {&a, &b};

    one_target(&mse, 2, critics, (struct row){0.75, 1, 4}, &target); /* .75 + .5 (2.5 - .1 * 4) */
    assert_close((double)target, 1.8, 4 * (double)KS_EPSILON);
    /* .75 + .25 (2.5 - .1 * 4) */
    one_target(&mse, 2, critics, (struct row){0.75, 0.5F, 4}, &target);
    assert_close((double)target, 1.275, 4 * (double)KS_EPSILON);
    one_target(&mse, 2, critics, (struct row){0.75, 0, 4}, &target);
    assert_close((double)target, 0.75, 0);
}

/* Of two critics: the mean of their values, of the k-th quantiles, of their distributions. */
TEST(test_mean)
{
    static const double halves[] = {0, 0.5, 0.25, 0.25, 0}, means[] = {1.6, 2.1, 3.1},
                        firsts[] = {0.6, 1.6, 2.6};
    const real a = 3, b = (real)2.5, one[] = {0, 2, 4}, two[] = {4, 4, 6};
    const real *scalars[] = {&a, &b}, *lists[] = {two, one}, *atoms[2];
    real low[ATOMS], high[ATOMS], target[ATOMS];

    any_target(&mse, 2, KS_MEAN, scalars, (struct row){0.75, 1, 4}, target);
    assert_close((double)target[0], 0.75 + 0.5 * (2.75 - 0.1 * 4), 4 * (double)KS_EPSILON);
    any_target(&quantiles, 2, KS_MEAN, lists, (struct row){0.8, 1, 4}, target);
    assert_row(3, target, means); /* .8 + .5 (2 - .4), ... */
    any_target(&quantiles, 2, KS_SMALLEST, lists, (struct row){0.8, 1, 4}, target);
    assert_row(3, target, firsts);
    peak(ATOMS, 1, low);
    peak(ATOMS, 4, high);
    atoms[0] = low, atoms[1] = high;
    any_target(ce(ATOMS, 4), 2, KS_MEAN, atoms, (struct row){-1, 1, 0}, target);
    assert_row(ATOMS, target, halves);
}

/* dQ/df: p_k (z_k - Q) for ce, against a difference; 1 for mse. */
TEST(test_value_gradient)
{
    static const double logits[] = {0.3, -0.2, 0.9, 0.1, -0.5};
    const double h = sqrt((double)KS_EPSILON);
    const struct KS(loss) *loss = ce(ATOMS, 2);
    real f[ATOMS], p[ATOMS], scratch[ATOMS], bar[ATOMS];
    double q;

    for (size_t k = 0; k < ATOMS; k++)
        f[k] = (real)logits[k];
    q = KS(critic_value)(loss, f, p);
    KS(critic_value_gradient)(loss, q, p, -3, bar);
    for (size_t k = 0; k < ATOMS; k++) {
        real at = f[k];
        double up, down;

        f[k] = (real)((double)at + h);
        up = KS(critic_value)(loss, f, scratch);
        f[k] = (real)((double)at - h);
        down = KS(critic_value)(loss, f, scratch);
        f[k] = at;
        assert_close((double)bar[k], -3 * (up - down) / (2 * h), 20 * h);
    }
    f[0] = 7, f[1] = 1, f[2] = -2;
    assert_close(KS(critic_value)(&mse, f, p), 7, 0);
    KS(critic_value_gradient)(&mse, 7, p, -3, bar);
    assert_close((double)bar[0], -3, 0);
    assert_close(KS(critic_value)(&quantiles, f, p), 2, 0);
    KS(critic_value_gradient)(&quantiles, 2, p, -3, bar);
    for (size_t k = 0; k < 3; k++)
        assert_close((double)bar[k], -1, 0);
}
