/* Intervals for shares against a brute-force search over all counts and sizes. */
#include "statistics/beta_distribution.h"
#include "trials.h"

static const double TAIL = 0.0025, SLACK = 1e-12;

/* The brute force uses the Gauss-Radau bounds alone. */
struct oracle {
    const struct ks_shares_input *in;
    struct ks_radau *radau[MOST_PROBES];
    size_t others, zeros;
};

static struct oracle oracle_new(const struct ks_shares_input *in)
{
    struct oracle o = {.in = in, .others = in->n - in->n_null};

    o.zeros = in->least_nullity > in->n_null ? in->least_nullity - in->n_null : 0;
    for (size_t p = 0; p < in->probes; p++)
        assert_ok(ks_radau_new(in->probe[p].steps, in->probe[p].alpha, in->probe[p].beta,
                               in->probe[p].ended, &o.radau[p]));
    return o;
}

static void oracle_free(struct oracle *o)
{
    for (size_t p = 0; p < o->in->probes; p++)
        ks_radau_free(o->radau[p]);
}

/* L' and U' of [-x, x], or with `one` of (-inf, x]; `null`: known zeros are excluded. */
static struct ks_interval mean_with(const struct oracle *o, double x, bool one, bool null)
{
    struct ks_interval mean = {0, 0};
    double all = 0;

    for (size_t p = 0; p < o->in->probes; p++) {
        const struct ks_share_probe *probe = &o->in->probe[p];
        double w0 = probe->null_weight, part = probe->start_norm2 * (1 - w0);
        struct ks_interval mu;

        assert_ok(one ? ks_radau_below(o->radau[p], x, &mu) : ks_radau_within(o->radau[p], x, &mu));
        w0 = null ? w0 : 0;
        mean.lower += part * fmax(0, (mu.lower - w0) / (1 - probe->null_weight));
        mean.upper += part * fmin(1, (mu.upper - w0) / (1 - probe->null_weight));
        all += part;
    }
    return (struct ks_interval){mean.lower / all, mean.upper / all};
}

static struct ks_interval mean_of(const struct oracle *o, double x, bool one)
{
    return mean_with(o, x, one, !one);
}

static bool rules_out_below(const struct oracle *o, size_t k0, double lower)
{
    double half = (double)o->in->probes / 2;

    return ks_beta_upper_tail(half * (double)k0, half * (double)(o->others - k0), lower - SLACK) <
           TAIL;
}

static bool rules_out_above(const struct oracle *o, size_t k1, double upper)
{
    double half = (double)o->in->probes / 2;

    return ks_beta_lower_tail(half * (double)k1, half * (double)(o->others - k1), upper + SLACK) <
           TAIL;
}

/* Tries all k. */
static struct ks_interval count_of(const struct oracle *o, double lower, double upper)
{
    size_t low = 0, high = o->others;

    for (size_t k = 0; k < o->others; k++)
        low = rules_out_below(o, k, lower) ? k + 1 : low;
    for (size_t k = o->others; k > 0; k--)
        high = rules_out_above(o, k, upper) ? k - 1 : high;
    return (struct ks_interval){(double)low, (double)high};
}

/* The largest number of disjoint intervals theta +- (r + h) above x (sign 1) or below -x (sign -1),
 * from the outermost inward. If zeros are known, intervals that may hold a zero are excluded. */
static double disjoint_beyond(const struct oracle *o, double x, int sign)
{
    bool zeros = o->in->n_null + o->zeros > 0;
    double edge = INFINITY, count = 0;

    for (;;) {
        double best = -INFINITY;

        for (size_t p = 0; p < o->in->probes; p++)
            for (size_t i = 0; i < o->radau[p]->m; i++) {
                double theta = sign * o->radau[p]->theta[i];
                double reach = o->radau[p]->residual[i] + o->in->h;

                if (theta + reach < edge && theta - reach > x && !(zeros && fabs(theta) <= reach))
                    best = fmax(best, theta - reach);
            }
        if (best == -INFINITY)
            return count;
        count++;
        edge = best;
    }
}

/* That, or if it is larger, the number of Ritz values of one probe above x + h. If zeros are known
 * and above x: of those above h, and of the disjoint intervals up to zero. */
static double certain_beyond(const struct oracle *o, double x, int sign)
{
    const bool zeros = o->in->n_null + o->zeros > 0 && x < 0;
    const double all = disjoint_beyond(o, x, sign);
    double most = all;

    for (size_t p = 0; p < o->in->probes; p++) {
        double count = zeros ? all - disjoint_beyond(o, 0, sign) : 0;

        for (size_t i = 0; i < o->radau[p]->m; i++)
            count += sign * o->radau[p]->theta[i] > (zeros ? 0 : x) + o->in->h;
        most = fmax(most, count);
    }
    return most;
}

static void check_directions(const struct oracle *o, const struct ks_shares *shares)
{
    double h = o->in->h, others = (double)o->others;

    for (size_t i = 0; i < KS_DIRECTIONS; i++) {
        double inner = o->in->abs_max_lower / ks_direction_factor[i];
        double outer = o->in->abs_max_upper / ks_direction_factor[i];
        struct ks_interval in = mean_of(o, inner - h, false), out = mean_of(o, outer + h, false);
        double certain = certain_beyond(o, outer, 1) + certain_beyond(o, outer, -1);
        double lower = fmax(others - count_of(o, 0, out.upper).upper, fmax(certain, 1));
        double upper = others - fmax(count_of(o, in.lower, 1).lower, (double)o->zeros);

        assert_close(shares->directions[i].in.lower, lower, 0);
        assert_close(shares->directions[i].in.upper, upper, 0);
    }
}

/* The threshold is known exactly. */
static void check_above(const struct oracle *o, const struct ks_shares *shares)
{
    double x = o->in->count_above, h = o->in->h, others = (double)o->others;
    struct ks_interval in = mean_of(o, x - h, false), out = mean_of(o, x + h, false);
    double certain = certain_beyond(o, x, 1) + certain_beyond(o, x, -1);
    double lower = fmax(others - count_of(o, 0, out.upper).upper, fmax(certain, 1));

    assert_close(shares->above.in.lower, lower, 0);
    assert_close(shares->above.in.upper,
                 others - fmax(count_of(o, in.lower, 1).lower, (double)o->zeros), 0);
}

/* For all x on a grid, the intervals are no wider than the brute force's, and narrower by at most
 * one grid step. */
static void check_kappa(const struct oracle *o, const struct ks_shares *shares)
{
    static const double STEP = 1.03;
    double h = o->in->h;
    struct ks_interval size[KS_QUANTILES];

    for (size_t q = 0; q < KS_QUANTILES; q++)
        size[q] = (struct ks_interval){0, INFINITY};
    for (double x = h / 100; x < 2 * o->in->abs_max_upper; x *= STEP) {
        struct ks_interval mu = mean_of(o, x, false);
        double beyond = certain_beyond(o, x, 1) + certain_beyond(o, x, -1);

        for (size_t q = 0; q < KS_QUANTILES; q++) {
            size_t rank = o->in->n * ks_quantile_percent[q] / 100;
            size_t k = rank > o->in->n_null ? rank - o->in->n_null : 0;

            if (k <= o->zeros)
                continue;
            if (rules_out_below(o, k - 1, mu.lower))
                size[q].upper = fmin(size[q].upper, x + h);
            if (rules_out_above(o, k, mu.upper))
                size[q].lower = fmax(size[q].lower, x - h);
            if (beyond > (double)(o->others - k))
                size[q].lower = fmax(size[q].lower, x);
        }
    }
    for (size_t q = 0; q < KS_QUANTILES; q++) {
        double lower = fmax(1, o->in->abs_max_lower / size[q].upper);
        double upper = fmax(1, o->in->abs_max_upper / size[q].lower);
        struct ks_interval ratio = shares->kappa_q[q];

        if (o->in->n * ks_quantile_percent[q] / 100 <= o->in->n_null + o->zeros) {
            assert_true(isinf(ratio.lower) && isinf(ratio.upper));
            continue;
        }
        assert_true(ratio.lower >= lower * (1 - 1e-9) && ratio.upper <= upper * (1 + 1e-9));
        assert_true(ratio.lower <= lower * STEP * (1 + 1e-9));
        assert_true(o->in->abs_max_upper / ratio.upper + h <=
                    (size[q].lower + h) * STEP * (1 + 1e-9));
    }
}

static void check_masses(const struct oracle *o, const struct ks_shares *shares)
{
    double h = o->in->h, n = (double)o->in->n, null = (double)o->in->n_null;
    struct ks_interval zero = {mean_of(o, h, false).lower, mean_of(o, 3 * h, false).upper};
    struct ks_interval negative = {mean_of(o, -3 * h, true).lower, mean_of(o, -h, true).upper};
    double beyond = certain_beyond(o, 2 * h, 1) + certain_beyond(o, 2 * h, -1);

    zero = count_of(o, zero.lower, zero.upper);
    negative = count_of(o, negative.lower, negative.upper);
    zero.lower = fmax(zero.lower, (double)o->zeros);
    zero.upper = fmin(zero.upper, (double)o->others - beyond);
    negative.lower = fmax(negative.lower, certain_beyond(o, 2 * h, -1));
    negative.upper = fmin(negative.upper,
                          (double)(o->others - o->zeros) - certain_beyond(o, -2 * h, 1));
    assert_close(shares->zero_mass.in.lower * n, null + zero.lower, 1e-9);
    assert_close(shares->zero_mass.in.upper * n, null + zero.upper, 1e-9);
    assert_close(shares->negative_mass.in.lower * n, negative.lower, 1e-9);
    assert_close(shares->negative_mass.in.upper * n, negative.upper, 1e-9);
}

/* With h = 0, and with an h that changes every bound. */
TEST(test_brute_force)
{
    for (size_t kind = 0; kind < SPECTRA; kind++)
        for (size_t probes = 1; probes <= 3; probes++) {
            struct spectrum s = {.null = 0};
            struct ks_shares shares;
            struct oracle o;
            struct trial t;

            spectra[kind].fill(&s);
            make_trial(&s, probes, 7, 0, &t);
            if (probes == 2)
                t.in.h = t.in.abs_max_lower * (kind == 1 ? 1e-5 : 2e-3);
            t.in.count_above = 0.02 * t.in.abs_max_lower;
            assert_ok(ks_shares(&t.in, &shares));
            o = oracle_new(&t.in);
            check_directions(&o, &shares);
            check_above(&o, &shares);
            check_kappa(&o, &shares);
            check_masses(&o, &shares);
            oracle_free(&o);
        }
}

/* Means of probes whose norms and components along the null space differ much. */
TEST(test_means)
{
    struct spectrum s = {.null = 0};
    struct ks_share_bounds *b;
    struct oracle o;
    struct trial t;

    fill_all_zeros_known(&s);
    make_trial(&s, 3, 5, 0, &t);
    t.probe[1].null_weight = 0.1;
    t.probe[2].null_weight = 0.99;
    t.probe[2].start_norm2 *= 10;
    assert_ok(ks_share_bounds_new(&t.in, &b));
    o = oracle_new(&t.in);
    for (double x = 1e-6; x < 2; x *= 1.5) {
        struct ks_interval mu, expected = mean_of(&o, x, false);

        assert_ok(ks_share_bounds_within(b, x, &mu));
        assert_close(mu.lower, expected.lower, 1e-14);
        assert_close(mu.upper, expected.upper, 1e-14);
    }
    oracle_free(&o);
    ks_share_bounds_free(b);
}

/* Known zeros count from x = 0 on; for the operator with rounding they lie in [-h, h]. */
static void check_band_at(const struct oracle *o, double x, double lower, double upper)
{
    double h = o->in->h, n = (double)o->in->n, null = x >= 0 ? (double)o->in->n_null : 0;
    double certain = certain_beyond(o, -x, -1) + (x >= 0 ? (double)o->zeros : 0);
    double beyond = certain_beyond(o, x, 1) + (x < 0 ? (double)o->zeros : 0);
    struct ks_interval count = count_of(o, mean_with(o, x - h, true, x > 0).lower,
                                        mean_with(o, x + h, true, x >= 0).upper);

    assert_true(lower * n <= null + fmax(count.lower, certain) + 1e-9);
    assert_true(lower * n >= null + fmax(count.lower == 1 ? 0 : count.lower, certain) - 1 - 1e-9);
    assert_close(upper * n, null + fmin(count.upper, (double)o->others - beyond), 1e-9);
}

/* At eigenvalues of both signs, at zero, and between them. */
TEST(test_band)
{
    enum { POINTS = 60 };
    size_t missed = 0, points = 0;

    for (size_t kind = 0; kind < SPECTRA; kind++) {
        struct spectrum s = {.null = 0};
        double x[POINTS], lower[POINTS], upper[POINTS];
        struct oracle o;
        struct trial t;

        spectra[kind].fill(&s);
        make_trial(&s, 1 + kind % 3, 11, 0, &t);
        for (size_t i = 0; i < POINTS; i++)
            x[i] = i == 0 ? 0 : s.value[i * 17] * (i % 4 == 0 ? -1 : 1);
        x[1] = t.in.h / 2;
        x[2] = -t.in.h / 2;
        assert_ok(ks_shares_band(&t.in, POINTS, x, lower, upper));
        o = oracle_new(&t.in);
        for (size_t i = 0; i < POINTS; i++, points++) {
            double truth = 0;

            for (size_t j = 0; j < N; j++)
                truth += s.value[j] <= x[i];
            missed += !(lower[i] * N <= truth + 1e-9 && upper[i] * N >= truth - 1e-9);
            check_band_at(&o, x[i], lower[i], upper[i]);
        }
        oracle_free(&o);
    }
    assert_true(missed <= points / 100);
}
