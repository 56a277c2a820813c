/* The tanh-Gaussian: its density against the formula, far out in the tails, and its derivatives.
 * Compiled in both precisions; differences only in double. */
#include "test.h"

#include "agent/actor.h"
#include "core/rng.h"

enum { ROWS = 3, ACTIONS = 4, STRIDE = 7 };

static const struct ks_policy clip = {.actions = ACTIONS, .log_std_min = -10, .log_std_max = 2};
#ifndef KS_SINGLE
static const struct ks_policy squash = {
    .actions = ACTIONS, .squash = true, .log_std_min = -3, .log_std_max = 1};
#endif

struct trial_policy {
    real head[ROWS * 2 * ACTIONS], noise[ROWS * ACTIONS], action[ROWS * STRIDE], log_pi[ROWS];
    real a_bar[ROWS * STRIDE], head_bar[ROWS * 2 * ACTIONS];
    struct KS(policy_pass) pass;
};

static void sample(const struct ks_policy *policy, const struct KS(policy_pass) *p)
{
    for (size_t i = 0; i < p->rows; i++)
        KS(policy_sample)(policy, p, i);
}

static void setup(struct trial_policy *s)
{
    struct ks_rng rng = ks_rng_start(4, 0);

    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < ROWS * 2 * ACTIONS; i++)
        s->head[i] = (real)(0.7 * ks_rng_normal(&rng));
    for (size_t i = 0; i < ROWS * ACTIONS; i++)
        s->noise[i] = (real)ks_rng_normal(&rng);
    for (size_t i = 0; i < ROWS * STRIDE; i++)
        s->a_bar[i] = (real)ks_rng_normal(&rng);
    s->pass = (struct KS(policy_pass)){.rows = ROWS,
                                       .stride = STRIDE,
                                       .head = s->head,
                                       .noise = s->noise,
                                       .action = s->action,
                                       .log_pi = s->log_pi,
                                       .a_bar = s->a_bar,
                                       .log_pi_bar = (real)0.3,
                                       .head_bar = s->head_bar};
}

/* log N(u; mean, std^2) - log(1 - tanh(u)^2), literally, in long double. */
static double direct(double mean, double log_std, double noise)
{
    long double std = expl(log_std), u = mean + std * noise, t = tanhl(u);
    long double z = (u - mean) / std;

    return (double)(-z * z / 2 - logl(std * sqrtl(2 * 3.14159265358979323846264338L)) -
                    logl(1 - t * t));
}

TEST(test_density)
{
    struct trial_policy s;

    setup(&s);
    sample(&clip, &s.pass);
    for (size_t i = 0; i < ROWS; i++) {
        double sum = 0;

        for (size_t j = 0; j < ACTIONS; j++) {
            double mean = (double)s.head[i * 2 * ACTIONS + j];
            double log_std = (double)s.head[i * 2 * ACTIONS + ACTIONS + j];
            double noise = (double)s.noise[i * ACTIONS + j];

            sum += direct(mean, log_std, noise);
            assert_close((double)s.action[i * STRIDE + j], tanh(mean + exp(log_std) * noise),
                         4 * (double)KS_EPSILON);
        }
        assert_close((double)s.log_pi[i], sum, 40 * (double)KS_EPSILON * (1 + fabs(sum)));
        for (size_t j = ACTIONS; j < STRIDE; j++) /* nothing written between the rows */
            assert_true(s.action[i * STRIDE + j] == 0);
    }
}

/* Where tanh(u) rounds to 1 the literal formula is infinite; there log(1 - tanh^2 u) = log 4 -
 * 2|u|. */
TEST(test_tails)
{
    static const double means[] = {20, -20, 300, -300};

    for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
        struct ks_policy one = clip;
        real head[2] = {(real)means[i], 0}, noise = (real)0.5, action, log_pi;
        double u = means[i] + 0.5;

        one.actions = 1;
        KS(policy_sample)
        (&one,
         &(struct KS(policy_pass)){.rows = 1,
                                   .stride = 1,
                                   .head = head,
                                   .noise = &noise,
                                   .action = &action,
                                   .log_pi = &log_pi},
         0);
        assert_close((double)log_pi, -0.125 - 0.918938533204672742 - (log(4) - 2 * fabs(u)),
                     4 * (double)KS_EPSILON * 2 * fabs(u));
    }
}

/* A log-std beyond its bounds acts as the bound and has no derivative of its own. */
TEST(test_clip)
{
    static const double values[][2] = {{5, 2}, {-30, -10}};

    for (size_t i = 0; i < 2; i++) {
        struct trial_policy s, bound;

        setup(&s);
        setup(&bound);
        s.head[ACTIONS] = (real)values[i][0];
        bound.head[ACTIONS] = (real)values[i][1];
        sample(&clip, &s.pass);
        sample(&clip, &bound.pass);
        assert_true(s.action[0] == bound.action[0] && s.log_pi[0] == bound.log_pi[0]);
        KS(policy_backward)(&clip, &s.pass);
        assert_true(s.head_bar[ACTIONS] == 0 && s.head_bar[0] != 0);
    }
}

TEST(test_mean)
{
    struct trial_policy s;
    real action[ACTIONS];

    setup(&s);
    KS(policy_mean)(&clip, s.head, action);
    for (size_t j = 0; j < ACTIONS; j++)
        assert_close((double)action[j], tanh((double)s.head[j]), 2 * (double)KS_EPSILON);
}

#ifndef KS_SINGLE
/* L = <a_bar, action> + log_pi_bar sum log_pi */
static double value(const struct ks_policy *policy, struct trial_policy *s)
{
    double sum = 0;

    sample(policy, &s->pass);
    for (size_t i = 0; i < ROWS; i++) {
        sum += s->pass.log_pi_bar * s->log_pi[i];
        for (size_t j = 0; j < ACTIONS; j++)
            sum += s->a_bar[i * STRIDE + j] * s->action[i * STRIDE + j];
    }
    return sum;
}

static void check_backward(const struct ks_policy *policy)
{
    const double h = 1e-5;
    struct trial_policy s;

    setup(&s);
    sample(policy, &s.pass);
    KS(policy_backward)(policy, &s.pass);
    for (size_t i = 0; i < ROWS * 2 * ACTIONS; i++) {
        double at = s.head[i], up, down;

        s.head[i] = at + h;
        up = value(policy, &s);
        s.head[i] = at - h;
        down = value(policy, &s);
        s.head[i] = at;
        assert_close(s.head_bar[i], (up - down) / (2 * h), 1e-8);
    }
}

TEST(test_backward)
{
    check_backward(&clip);
    check_backward(&squash);
}
#endif
