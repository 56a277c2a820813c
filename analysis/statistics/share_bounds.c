/* Means of the Gauss-Radau bounds over the probes, without the weight of the known null space. */
#include "statistics/share_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/number.h"
#include "statistics/beta_distribution.h"

static const double TAIL = 0.0025; /* probability that an end of an interval fails */

void ks_share_bounds_free(struct ks_share_bounds *b)
{
    if (!b)
        return;
    for (size_t p = 0; b->radau && p < b->in->probes; p++)
        ks_radau_free(b->radau[p]);
    ks_pool_free(&b->pool);
    free(b);
}

static int ascending_upper(const void *one, const void *two)
{
    return ks_ascending(&((const struct ks_interval *)one)->upper,
                        &((const struct ks_interval *)two)->upper);
}

static void list_ritz(struct ks_share_bounds *b)
{
    for (size_t p = 0; p < b->in->probes; p++)
        for (size_t i = 0; i < b->radau[p]->m; i++) {
            double theta = b->radau[p]->theta[i], reach = b->radau[p]->residual[i] + b->in->h;

            b->size[b->sizes++] = fabs(theta);
            b->span[b->spans++] = (struct ks_interval){theta - reach, theta + reach};
        }
    qsort(b->size, b->sizes, sizeof *b->size, ks_ascending);
    qsort(b->span, b->spans, sizeof *b->span, ascending_upper);
}

/* The weight of probe p in a mean is |g_p|^2 (1 - w0_p), its squared norm off the known null space,
 * divided by the sum over the probes. */
static void set_fractions(struct ks_share_bounds *b)
{
    double sum = 0, square = 0;

    for (size_t p = 0; p < b->in->probes; p++) {
        const struct ks_share_probe *probe = &b->in->probe[p];

        b->fraction[p] = b->others > 0 ? probe->start_norm2 * fmax(1 - probe->null_weight, 0) : 0;
        sum += b->fraction[p];
        square += b->fraction[p] > 0 ? probe->start_norm2 * probe->null_weight : 0;
    }
    for (size_t p = 0; p < b->in->probes && sum > 0; p++)
        b->fraction[p] /= sum;
    b->null_size = sum > 0 ? sqrt(square / sum) : 0;
}

ks_status ks_share_bounds_new(const struct ks_shares_input *in, struct ks_share_bounds **bounds)
{
    KS_OWNED_BY(ks_share_bounds_free) struct ks_share_bounds *b = NULL;
    size_t steps = 0;

    assert(in->probes > 0 && in->n_null <= in->n && in->least_nullity <= in->n);
    *bounds = NULL;
    for (size_t p = 0; p < in->probes; p++)
        steps += in->probe[p].steps;
    KS_TRY(ks_alloc(1, sizeof *b, &b));
    b->in = in;
    b->others = in->n - in->n_null;
    b->zeros = in->least_nullity > in->n_null ? in->least_nullity - in->n_null : 0;
    KS_TRY(ks_pool_alloc(&b->pool, in->probes, sizeof(struct ks_radau *), &b->radau));
    KS_TRY(ks_pool_alloc(&b->pool, in->probes, sizeof(double), &b->fraction));
    KS_TRY(ks_pool_alloc(&b->pool, steps, sizeof(double), &b->size));
    KS_TRY(ks_pool_alloc(&b->pool, steps, sizeof *b->span, &b->span));
    for (size_t p = 0; p < in->probes; p++)
        KS_TRY(ks_radau_new(in->probe[p].steps, in->probe[p].alpha, in->probe[p].beta,
                            in->probe[p].ended, &b->radau[p]));
    list_ritz(b);
    set_fractions(b);
    *bounds = b, b = NULL;
    return KS_OK;
}

/* The mean over the probes of the bounds of the weight of a set, which ends at x; `null`: the set
 * includes the known null space, whose weight is subtracted. */
static ks_status find_mean(const struct ks_share_bounds *b,
                           ks_status (*find)(struct ks_radau *, double, struct ks_interval *),
                           double x, bool null, struct ks_interval *mu)
{
    *mu = (struct ks_interval){0, 0};
    for (size_t p = 0; p < b->in->probes; p++) {
        const double w0 = b->in->probe[p].null_weight, fraction = b->fraction[p];
        struct ks_interval of;

        KS_TRY(find(b->radau[p], x, &of));
        if (!(fraction > 0))
            continue;
        mu->lower += fraction * fmax((of.lower - (null ? w0 : 0)) / (1 - w0), 0);
        mu->upper += fraction * fmin((of.upper - (null ? w0 : 0)) / (1 - w0), 1);
    }
    return KS_OK;
}

/* The share that the known zeros alone can appear to have after w0 was subtracted. The operator of
 * the run is A + E, |E| <= h: its null space is rotated, and w0 = |P_Z q|^2 is not exactly its
 * weight. After a rotation by an angle with sine t the weight is at most (sqrt(w0) + t sqrt(1 -
 * w0))^2. */
static double turned(const struct ks_share_bounds *b, double t)
{
    return b->null_size > 0 ? 2 * b->null_size * t + t * t : 0;
}

/* Zeros that are only known up to |A z| <= null_image are rotated by an angle with a sine of at
 * most null_image / x towards eigenvectors with |lambda| > x (Davis and Kahan, below). */
ks_status ks_share_bounds_within(const struct ks_share_bounds *b, double x, struct ks_interval *mu)
{
    double doubt;

    *mu = (struct ks_interval){0, 0};
    if (!(x >= 0))
        return KS_OK;
    KS_TRY(find_mean(b, ks_radau_within, x, true, mu));
    doubt = b->in->null_image > 0 ? turned(b, b->in->null_image / x) : 0;
    mu->lower = fmax(mu->lower - doubt, 0);
    mu->upper = fmin(mu->upper + doubt, 1);
    return KS_OK;
}

/* From bounds of weights to bounds of counts: a count is possible unless the bounds lie in a tail
 * of its beta distribution (shares.h). */

static const double SLACK = 1e-12; /* rounding of the weights: closer shares are treated as equal */
static const double DEPTH = 1e-18; /* sizes below this share of the largest are treated as equal */

/* Whether k of n' eigenvalues are excluded by a bound of their share: by an upper bound in the
 * lower tail of the distribution of the mean share, or by a lower bound in the upper tail. */
static bool is_excluded(const struct ks_share_bounds *b, size_t k, double share, bool upper)
{
    const double half = ks_shares_vectors(b->in) / 2;
    const double p = half * (double)k, q = half * (double)(b->others - k);

    return (upper ? ks_beta_lower_tail(p, q, share + SLACK)
                  : ks_beta_upper_tail(p, q, share - SLACK)) < TAIL;
}

/* The bound of the count that follows from a bound of the share: the largest count that the upper
 * bound does not exclude, or the smallest that the lower bound does not; the tails are monotone. */
static double count_of(const struct ks_share_bounds *b, double share, bool upper)
{
    size_t low = 0, high = b->others;

    while (low < high) { /* the counts below `low` and above `high` are no candidates */
        const size_t middle = (high - low) / 2, k = upper ? high - middle : low + middle;
        const bool excluded = is_excluded(b, k, share, upper);

        if (upper && excluded)
            high = k - 1;
        else if (!upper && !excluded)
            high = k;
        else
            low = excluded ? k + 1 : k;
    }
    return (double)low;
}

/* Whether the share L' of [-x, x] proves that [-x, x] contains an eigenvalue other than the known
 * zeros. Suppose that it contains none. Towards eigenvectors with |lambda| > y >= x, rounding
 * rotates the null space by an angle with a sine of at most h / y (Davis and Kahan, SIAM J. Numer.
 * Anal. 7, 1970), and the eigenvectors between x and y have a share of at most U'(y) - L'(x). */
static ks_status is_shown(const struct ks_share_bounds *b, double x, double share, bool *shown)
{
    double most = b->size[b->sizes - 1];

    *shown = b->null_size == 0 || b->in->h == 0;
    for (double y = x; !*shown && y > 0 && y <= most; y *= 4) {
        struct ks_interval mu = {share, share};

        if (y > x)
            KS_TRY(ks_share_bounds_within(b, y, &mu));
        *shown = share > SLACK + turned(b, sqrt(fmax(mu.upper - share, 0)) + b->in->h / y);
    }
    return KS_OK;
}

/* The number of eigenvalues other than known zeros that are certain to be in [low, high]: the
 * largest number of disjoint spans in it. Spans that contain zero are skipped if zeros are known,
 * as these are counted separately; and what null_image can make of a zero. */
static size_t certain(const struct ks_share_bounds *b, double low, double high)
{
    const bool zeros = b->in->n_null + b->zeros > 0;
    const double image = b->in->null_image;
    double last = -INFINITY;
    size_t count = 0;

    for (size_t i = 0; i < b->spans && b->span[i].upper <= high; i++) {
        const struct ks_interval *s = &b->span[i];

        if (s->lower < low || s->lower <= last ||
            (zeros && s->lower <= image && s->upper >= -image))
            continue;
        last = s->upper;
        count++;
    }
    return count;
}

/* The next larger double. */
static double above(double x)
{
    return nextafter(x, INFINITY);
}

/* The number of eigenvalues other than known zeros that are certain to be at least x (sign 1), or
 * at most -x (sign -1). Beside the spans there is Cauchy's interlacing theorem: the Lanczos vectors
 * V of a probe are orthonormal and V' (A + E) V = T with |E| <= h, so A + E has at least as many
 * eigenvalues from x + h on as T, and A at least as many from x on. h includes what rounding and
 * V'V - I move the Ritz values (test_cauchy_in_float32). Known zeros may be among these eigenvalues
 * if x is not positive: then the theorem counts the positive ones and spans the others. (Where
 * null_image is not 0, it stands in place of this 0.) */
static size_t certain_beyond(const struct ks_share_bounds *b, double x, int sign)
{
    const double image = b->in->null_image;
    const bool zeros = b->in->n_null + b->zeros > 0 && x <= image;
    const double from = zeros ? above(image) : x;
    size_t most = sign > 0 ? certain(b, x, INFINITY) : certain(b, -INFINITY, -x), rest = 0;

    if (zeros)
        rest = sign > 0 ? certain(b, x, image) : certain(b, -image, -x);
    for (size_t p = 0; p < b->in->probes; p++) {
        const struct ks_radau *r = b->radau[p];
        size_t count = rest;

        for (size_t i = 0; i < r->m; i++)
            count += sign * r->theta[i] - b->in->h >= from;
        most = count > most ? count : most;
    }
    return most;
}

/* Certain bounds: at least `least`, and all but `beyond`. */
static struct ks_interval certain_bounds(const struct ks_share_bounds *b, size_t least,
                                         size_t beyond)
{
    const double most = fmax((double)b->others - (double)beyond, 0);

    return (struct ks_interval){fmin((double)least, most), most};
}

/* Intersects bounds with the certain ones; if they contradict each other, the certain ones alone.
 */
static struct ks_interval narrow(struct ks_interval likely, struct ks_interval certain)
{
    struct ks_interval count = {fmax(likely.lower, certain.lower),
                                fmin(likely.upper, certain.upper)};

    return count.lower <= count.upper ? count : certain;
}

struct ks_interval ks_share_bounds_certain_within(const struct ks_share_bounds *b, double inner,
                                                  double outer)
{
    const double beyond = above(outer);

    return certain_bounds(b, b->zeros + certain(b, -inner, inner),
                          certain_beyond(b, beyond, 1) + certain_beyond(b, beyond, -1));
}

ks_status ks_share_bounds_count_within(const struct ks_share_bounds *b, double inner, double outer,
                                       struct ks_interval *count)
{
    struct ks_interval in, out;
    bool shown;

    KS_TRY(ks_share_bounds_within(b, inner - b->in->h, &in));
    KS_TRY(ks_share_bounds_within(b, outer + b->in->h, &out));
    *count = (struct ks_interval){count_of(b, in.lower, false), count_of(b, out.upper, true)};
    if (count->lower == 1) {
        KS_TRY(is_shown(b, inner - b->in->h, in.lower, &shown));
        count->lower = shown ? 1 : 0;
    }
    *count = narrow(*count, ks_share_bounds_certain_within(b, inner, outer));
    return KS_OK;
}

/* In the operator of the run the known zeros can be anywhere in [-h, h]. Their weight is subtracted
 * from the lower bound if any of them may be below x - h, from the upper bound if all of them are
 * below x + h. */
ks_status ks_share_bounds_count_below(const struct ks_share_bounds *b, double x,
                                      struct ks_interval *count)
{
    double h = b->in->h;
    struct ks_interval low, high;
    size_t least = certain_beyond(b, -x, -1) + (x >= 0 ? b->zeros : 0);
    size_t beyond = certain_beyond(b, above(x), 1) + (x < 0 ? b->zeros : 0);

    KS_TRY(find_mean(b, ks_radau_below, x - h, x > 0, &low));
    KS_TRY(find_mean(b, ks_radau_below, x + h, x >= 0, &high));
    *count = (struct ks_interval){count_of(b, low.lower, false), count_of(b, high.upper, true)};
    if (count->lower == 1 && x > 0 && !(low.lower > SLACK + turned(b, h / fmax(x - h, h))))
        count->lower = 0;
    *count = narrow(*count, certain_bounds(b, least, beyond));
    if (x >= 0)
        count->lower += (double)b->in->n_null, count->upper += (double)b->in->n_null;
    return KS_OK;
}

/* An end of the bounds of ks_share_bounds_within, as a function of x. */
struct end {
    const struct ks_share_bounds *b;
    bool upper;
};

static ks_status end_within(const void *context, double x, double *value)
{
    const struct end *end = context;
    struct ks_interval mu;

    KS_TRY(ks_share_bounds_within(end->b, x, &mu));
    *value = end->upper ? mu.upper : mu.lower;
    return KS_OK;
}

/* If the level is not reached up to `most`, the bound is `most` itself. */
ks_status ks_share_bounds_reach(const struct ks_share_bounds *b, double reached, double missed,
                                double most, struct ks_interval *size)
{
    struct end end = {b, false};
    struct ks_monotone f = {end_within, &end, b->sizes, b->size};
    double h = b->in->h, top = most + h;
    struct ks_crossing upper, lower;

    *size = (struct ks_interval){0, 0};
    if (!(top > 0))
        return KS_OK;
    KS_TRY(ks_monotone_root(&f, reached, fmax(DEPTH * top, 1e-9 * h), top, &upper));
    end.upper = true;
    KS_TRY(ks_monotone_root(&f, missed, fmax(DEPTH * top, h), top, &lower));
    size->upper = fmin(upper.after + h, most);
    size->lower = fmax(lower.before - h, 0);
    return KS_OK;
}

/* The certain bounds of the k-th smallest size: [-x, x] contains k eigenvalues if it contains k
 * disjoint spans, and x_k >= x if more than n' - k are at least x or at most -x, which changes
 * where a span begins or where a Ritz value is h away. */
static struct ks_interval certain_size(const struct ks_share_bounds *b, size_t k)
{
    struct ks_interval size = {0, INFINITY};

    for (size_t i = 0; i < b->spans; i++) {
        const struct ks_interval *s = &b->span[i];
        const double outer = fmax(fabs(s->lower), fabs(s->upper));
        const double inner[] = {fmin(fabs(s->lower), fabs(s->upper)), b->size[i] - b->in->h};

        if (outer < size.upper && b->zeros + certain(b, -outer, outer) >= k)
            size.upper = outer;
        for (size_t j = 0; j < 2; j++)
            if (inner[j] > size.lower &&
                certain_beyond(b, inner[j], 1) + certain_beyond(b, inner[j], -1) > b->others - k)
                size.lower = inner[j];
    }
    return size;
}

/* x_k <= x if [-x, x] contains more than k - 1 eigenvalues, x_k > x if it contains fewer than k. If
 * known zeros may be rotated (is_shown), a share that only suffices for one eigenvalue proves
 * nothing, so k = 1 requires the share of two. */
ks_status ks_share_bounds_size(const struct ks_share_bounds *b, size_t k, double most,
                               struct ks_interval *size)
{
    double half = ks_shares_vectors(b->in) / 2, n = (double)b->others;
    double low = k == 1 && b->null_size > 0 ? 1 : (double)(k - 1), high = (double)k;
    double reached = ks_beta_upper_point(half * low, half * (n - low), TAIL) + SLACK;
    double missed = ks_beta_lower_point(half * high, half * (n - high), TAIL) - SLACK;

    struct ks_interval certain = certain_size(b, k), likely;

    assert(k > b->zeros && k <= b->others);
    KS_TRY(ks_share_bounds_reach(b, reached, missed, most, &likely));
    size->lower = fmax(likely.lower, certain.lower);
    size->upper = fmin(likely.upper, certain.upper);
    if (size->lower > size->upper)
        *size = certain;
    return KS_OK;
}
