/* The findings: sentences with the number behind each. Numbers in "at least" are rounded down and
 * numbers in "at most" up, so that the sentences stay true. */
#include <math.h>

#include "audit/audit.h"
#include "core/interval.h"
#include "io/attribute.h"
#include "statistics/catalogue.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"

/* Beyond this ratio to the Gauss-Newton matrix, the residual is called large: a judgement. */
static const double LARGE_RESIDUAL = 0.5;

static double hessian(const struct ks_audit *a, enum ks_statistic_id id)
{
    return ks_statistic_value(a->spectrum[KS_AUDIT_HESSIAN], id);
}

static void find_references(const struct ks_audit *a, struct ks_document *d)
{
    if (a->summary.references == 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "A wrong export would stay unnoticed: the file has no reference results "
                        "(/batch/output, /batch/loss, /batch/gradient_norm) of the program that "
                        "made it.");
    else
        ks_document_add(
            d, KS_BLOCK_ITEM,
            "The file has %zu of the 3 kinds of reference results of the program that made it. "
            "They agree with what is computed here.",
            a->summary.references);
}

/* For a dead coordinate the curvature is zero, but the loss may still change linearly. */
static void find_condition(const struct ks_audit *a, struct ks_document *d)
{
    const double bound = hessian(a, KS_STAT_KAPPA_EFFECTIVE_BOUND);
    const double null = hessian(a, KS_STAT_NULL_DIMENSION),
                 dead = hessian(a, KS_STAT_DEAD_DIMENSION);
    const char *subject = null + dead > 0 ? "Off these directions the" : "The";

    if (ks_audit_is_zero(a->spectrum[KS_AUDIT_HESSIAN])) {
        ks_document_add(d, KS_BLOCK_ITEM,
                        "All products with the Hessian are zero, so it has no condition number.");
        return;
    }
    if (null + dead > 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The curvature is exactly zero along at least %.0f direction%s (%.0f by "
                        "the architecture, %.0f dead coordinate%s), so the condition number is "
                        "infinite.",
                        null + dead, null + dead == 1 ? "" : "s", null, dead, dead == 1 ? "" : "s");
    if (isinf(bound))
        ks_document_add(d, KS_BLOCK_ITEM, "%s condition number is infinite.", subject);
    else if (bound > 1)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "%s condition number is at least %.3g. This is a lower bound: the true "
                        "number may be larger.",
                        subject, ks_round_down(bound, 3));
    else
        ks_document_add(d, KS_BLOCK_ITEM, "%s condition number is not resolved.", subject);
}

static void find_gradient(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_interval k = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN],
                                                   KS_STAT_KAPPA_GRADIENT_90);
    char text[KS_INTERVAL_TEXT];

    if (hessian(a, KS_STAT_GRADIENT_NORM) == 0)
        ks_document_add(d, KS_BLOCK_ITEM, "The gradient is zero, so it lies on no eigenvectors.");
    else if (isnan(k.lower) && isnan(k.upper))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "It is not resolved how small the eigenvalues are on whose eigenvectors "
                        "the gradient lies.");
    else
        ks_document_add(d, KS_BLOCK_ITEM,
                        "90%% of the gradient's energy (its squared norm) lies on eigenvectors "
                        "whose absolute eigenvalues are within a factor K of the largest one. "
                        "The interval of K, which holds with 99%%: %s.",
                        ks_interval_text(k, KS_BRACKETS_WHOLE, text));
}

/* lambda_min is a Rayleigh quotient: the smallest eigenvalue is at most that. */
static void find_negative(const struct ks_audit *a, struct ks_document *d)
{
    const double low = hessian(a, KS_STAT_LAMBDA_MIN);
    const struct ks_interval all = ks_audit_abs_max(a->spectrum[KS_AUDIT_HESSIAN]);

    if (-low > hessian(a, KS_STAT_NOISE_FLOOR) && isfinite(all.upper))
        ks_document_add(
            d, KS_BLOCK_ITEM,
            "The loss has negative curvature here: the smallest eigenvalue is at most %.3g. Its "
            "size is at least %.3g%% of the largest absolute eigenvalue.",
            ks_round_up(low, 3), ks_round_down(100 * -low / all.upper, 2));
}

/* |H - G| against |G|: how much of the curvature the Gauss-Newton matrix misses. */
static void find_residual(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *g = a->spectrum[KS_AUDIT_GGN], *r = a->spectrum[KS_AUDIT_RESIDUAL];
    const struct ks_interval ratio = ks_interval_ratio(ks_audit_abs_max(r), ks_audit_abs_max(g));
    char text[KS_INTERVAL_TEXT];

    if (ks_audit_is_zero(a->spectrum[KS_AUDIT_HESSIAN]))
        return;
    if (ks_audit_is_zero(r))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "All products with the residual H - G are zero: the Gauss-Newton matrix G "
                        "is the whole Hessian H.");
    else if (ks_audit_is_zero(g))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "All products with the Gauss-Newton matrix G are zero: the residual H - G "
                        "is the whole Hessian H.");
    else
        ks_document_add(d, KS_BLOCK_ITEM,
                        "The largest absolute eigenvalue of the residual H - G, divided by that of "
                        "the Gauss-Newton matrix G (an interval that holds with 98%%): %s.%s",
                        ks_interval_text(ratio, KS_BRACKETS_WHOLE, text),
                        ratio.lower > LARGE_RESIDUAL
                            ? " So G alone would be a poor model of the Hessian H."
                            : "");
}

/* What the largest eigenvalue, between both bounds, says of steps with the stored learning rate. */
static void find_steps(const struct ks_audit *a, struct ks_document *d)
{
    static const struct {
        enum ks_audit_spectrum which;
        const char *words;
    } rules[] = {{KS_AUDIT_PRECONDITIONED, "Adam with its current preconditioner"},
                 {KS_AUDIT_HESSIAN, "gradient descent"}};

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct ks_spectrum *s = a->spectrum[rules[i].which];
        const double ratio = s ? ks_statistic_value(s, KS_STAT_SHARPNESS_RATIO) : NAN;
        const double most = s ? ratio * ks_statistic_value(s, KS_STAT_LAMBDA_MAX_UPPER) /
                                    ks_statistic_value(s, KS_STAT_LAMBDA_MAX)
                              : NAN;
        const bool negative = s && -ks_statistic_value(s, KS_STAT_LAMBDA_MIN) >
                                       ks_statistic_value(s, KS_STAT_NOISE_FLOOR);
        char text[KS_INTERVAL_TEXT];

        if (ratio > 0)
            ks_document_add(
                d, KS_BLOCK_ITEM,
                "On a quadratic with this curvature, steps of %s with the stored "
                "learning rate of %.3g %s%s. The largest eigenvalue, divided by the "
                "largest one with stable steps: %s.",
                rules[i].words, ks_attribute_number(&s->attributes, "sharpness_learning_rate"),
                ratio > 1  ? "are unstable"
                : most < 1 ? "are stable"
                           : "may be unstable",
                negative && !(ratio > 1) ? " along the directions of positive curvature" : "",
                ks_interval_text((struct ks_interval){ratio, most}, KS_BRACKETS, text));
    }
}

/* Along the direction that Adam takes. */
static void find_adam_step(const struct ks_audit *a, struct ks_document *d)
{
    const double change = hessian(a, KS_STAT_STEP_CHANGE);
    const double rate = ks_attribute_number(&a->spectrum[KS_AUDIT_HESSIAN]->attributes,
                                            "sharpness_learning_rate");
    const struct ks_interval critical = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN],
                                                          KS_STAT_CRITICAL_SHARPNESS);
    const struct ks_interval length = {2 / (critical.upper * rate), 2 / (critical.lower * rate)};
    char text[KS_INTERVAL_TEXT];

    if (isnan(change) || isnan(rate))
        return;
    ks_document_add(d, KS_BLOCK_ITEM,
                    "Taken once more, Adam's last update would change the loss on these "
                    "minibatches by %.3g.",
                    change);
    if (rate > 0 && !isnan(length.lower))
        ks_document_more(d, " A step so many times as long would leave the loss as it is: %s.",
                         ks_interval_text(length, KS_BRACKETS, text));
}

static void find_noise(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_interval scale = ks_audit_interval(a->spectrum[KS_AUDIT_HESSIAN],
                                                       KS_STAT_NOISE_SCALE);
    char text[KS_INTERVAL_TEXT];

    if (scale.lower > 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "%sIf minibatches are independent draws, the mean gradient of so many of "
                        "them is as large as its noise (an interval that holds with 99%%): %s.",
                        scale.lower >= 1  ? "The gradient of one minibatch is mostly noise. "
                        : scale.upper < 1 ? "The gradient of one minibatch is mostly signal. "
                                          : "",
                        ks_interval_text(scale, KS_BRACKETS, text));
}

static void find_dead(const struct ks_audit *a, struct ks_document *d)
{
    size_t dead = 0, units = 0;

    for (size_t i = 0; i < a->summary.n_units; i++) {
        dead += a->summary.units[i].dead;
        units += a->summary.units[i].units;
    }
    if (units > 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "%zu of %zu units are dead: zero in all rows of the first %zu "
                        "minibatch%s.",
                        dead, units, a->summary.tried, a->summary.tried == 1 ? "" : "es");
}

static void find_products(const struct ks_audit *a, struct ks_document *d)
{
    static const char *const names[KS_AUDIT_SPECTRA] = {
        "Hessian", "Hessian on half of the minibatches", "Gauss-Newton matrix", "residual",
        "preconditioned Hessian"};

    for (size_t i = 0; i < KS_AUDIT_SPECTRA; i++) {
        const double error = a->spectrum[i]
                                 ? ks_statistic_value(a->spectrum[i], KS_STAT_PRODUCT_ERROR)
                                 : 0;

        if (error > KS_WRONG_PRODUCT)
            ks_document_add(d, KS_BLOCK_ITEM,
                            "Products with the %s are wrong by up to %.2g of its largest absolute "
                            "eigenvalue, because they are computed in float32: `kappascope analyze "
                            "--precision f64` avoids this.",
                            names[i], ks_round_up(error, 2));
    }
}

/* First what makes all of it doubtful, then the curvature, then the rest. */
void ks_audit_findings(const struct ks_audit *a, struct ks_document *d)
{
    const bool compared = a->summary.references > 0;

    find_products(a, d);
    if (!compared)
        find_references(a, d);
    find_condition(a, d);
    find_negative(a, d);
    find_residual(a, d);
    find_gradient(a, d);
    find_steps(a, d);
    find_adam_step(a, d);
    find_noise(a, d);
    find_dead(a, d);
    if (compared)
        find_references(a, d);
}

/* Intervals of statistics, and their ratios. */

/* From certificates (below) and from the outer bounds of the Jacobi matrices (above). */
struct ks_interval ks_audit_abs_max(const struct ks_spectrum *s)
{
    double high = ks_statistic_value(s, KS_STAT_LAMBDA_MAX_UPPER),
           low = ks_statistic_value(s, KS_STAT_LAMBDA_MIN_LOWER);

    return (struct ks_interval){
        ks_statistic_abs_max(s),
        isnan(high) || isnan(low) ? NAN : fmax(high, 0 - low)}; /* fmax ignores a NaN; not -0 */
}

struct ks_interval ks_audit_interval(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    return ks_statistic_resolved(id, ks_statistic_interval(s, id));
}

bool ks_audit_is_zero(const struct ks_spectrum *s)
{
    return ks_audit_abs_max(s).upper == 0;
}

/* An end that is not resolved could be anything. */
static double lower_of(struct ks_interval r)
{
    return isnan(r.lower) ? 0 : r.lower;
}

static double upper_of(struct ks_interval r)
{
    return isnan(r.upper) ? INFINITY : r.upper;
}

struct ks_interval ks_interval_ratio(struct ks_interval a, struct ks_interval b)
{
    double lower = lower_of(a) / upper_of(b), upper = upper_of(a) / lower_of(b);

    return (struct ks_interval){lower > 0 ? lower : NAN, isfinite(upper) ? upper : NAN};
}
