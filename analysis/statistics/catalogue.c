#include "statistics/catalogue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "statistics/probe.h"

/* Statistics that do not depend on a single probe. */

#define OF_BOUNDS(name)                                                                            \
    static double name(const struct ks_probe *p)                                                   \
    {                                                                                              \
        return p->bounds->name;                                                                    \
    }
OF_BOUNDS(noise_floor)
OF_BOUNDS(null_dimension)
OF_BOUNDS(null_residual)
OF_BOUNDS(dead_dimension)

static double product_error(const struct ks_probe *p)
{
    return p->bounds->abs_max > 0 ? p->bounds->error / p->bounds->abs_max : NAN;
}

#define ENDS(name) .lower = name "_lower", .upper = name "_upper"

/* Rows of a table, a few fields a line. */
/* clang-format off */
const struct ks_statistic ks_catalogue[KS_STATISTICS] = {
    [KS_STAT_LAMBDA_MAX] = {.name = "lambda_max", .kind = KS_IS_EXTREME, .lower = "lambda_max",
     .upper = "lambda_max_upper", .tolerance = KS_WIDTH_OF_SIZE, .is_lower_bound = true,
     .end = 1, .of_end = ks_probe_end, .over = KS_OVER_LARGEST, .every_prefix = true,
     .words = "largest eigenvalue, from both sides",
     .of_spectra = "largest Ritz value, from below",
     .pooled = "largest Ritz value: from below, IQM",
     .definition =
        "y'Ay / y'y of the certificate vectors, the largest: the true lambda_max is at least "
        "this number",
     .paper =
        "Definition 2, beta-smoothness: lambda_max <= beta everywhere, so it is taken as a "
        "proxy of beta"},
    [KS_STAT_LAMBDA_MAX_RESIDUAL] = {
     .name = "lambda_max_residual", .kind = KS_IS_NUMBER, .end = 1, .of_end = ks_probe_end_residual,
     .over = KS_OVER_OF_END, .every_prefix = true,
     .definition =
        "|A y - lambda y| for the vector of `lambda_max` with norm 1: an eigenvalue is at most "
        "this far from lambda. With `--exact`, half the noise floor"},
    [KS_STAT_LAMBDA_MAX_UPPER] = {
     .name = "lambda_max_upper", .kind = KS_IS_NUMBER, .end = 1, .of_end = ks_probe_end_bound,
     .over = KS_OVER_LARGEST, .every_prefix = true, .not_published = true,
     .definition =
        "no eigenvalue is above this, except with a probability of 0.25% over the start vectors "
        "(van Dorsselaer et al. 2000): the weakest of the probes' bounds, each of which may "
        "fail with probability 0.0025^(1/probes), widened by h"},
    [KS_STAT_LAMBDA_MAX_DATA_SE] = {
     .name = "lambda_max_data_se", .kind = KS_IS_NUMBER, .end = 1, .of_end = ks_probe_end_data_se,
     .over = KS_OVER_SHARED,
     .definition =
        "the standard error over the N minibatches: the standard deviation (divisor N - 1) of "
        "y'A_i y, divided by sqrt(N). Undefined for N = 1"},
    [KS_STAT_LAMBDA_MIN] = {
     .name = "lambda_min", .kind = KS_IS_EXTREME, .lower = "lambda_min_lower",
     .upper = "lambda_min", .tolerance = KS_WIDTH_OF_SIZE, .end = -1, .of_end = ks_probe_end,
     .over = KS_OVER_SMALLEST, .every_prefix = true,
     .words = "smallest eigenvalue, from both sides",
     .definition =
        "the same for the smallest eigenvalue: it is at most `lambda_min`, and at least "
        "`lambda_min_lower` except with that probability. A `lambda_min` below zero shows that "
        "the operator is not positive semidefinite"},
    [KS_STAT_LAMBDA_MIN_RESIDUAL] = {
     .name = "lambda_min_residual", .kind = KS_IS_NUMBER, .end = -1, .of_end = ks_probe_end_residual,
     .over = KS_OVER_OF_END, .every_prefix = true},
    [KS_STAT_LAMBDA_MIN_LOWER] = {
     .name = "lambda_min_lower", .kind = KS_IS_NUMBER, .end = -1, .of_end = ks_probe_end_bound,
     .over = KS_OVER_SMALLEST, .every_prefix = true, .not_published = true},
    [KS_STAT_LAMBDA_MIN_DATA_SE] = {
     .name = "lambda_min_data_se", .kind = KS_IS_NUMBER, .end = -1, .of_end = ks_probe_end_data_se,
     .over = KS_OVER_SHARED},
    [KS_STAT_KAPPA] = {
     .name = "kappa", .kind = KS_IS_QUOTIENT, .value = ks_probe_kappa, .over = KS_OVER_MEDIAN,
     .every_prefix = true, .words = "the paper's; not a condition number",
     .of_spectra = "ratio of Ritz values",
     .pooled = "ratio of Ritz values, IQM; not an estimate of the condition number",
     .definition =
        "the largest |theta| over the smallest, the median over the probes. Not an estimate of "
        "the condition number",
     .paper = "Definition 3 with Ritz values in place of eigenvalues, as in its published code"},
    [KS_STAT_KAPPA_F64] = {
     .name = "kappa_f64", .kind = KS_IS_QUOTIENT,
     .words = "kappa in float64, from the same start vector",
     .definition =
        "with `--compat xqc`, `kappa` once more, from float64 products and Lanczos vectors with "
        "the same start vector: its distance from `kappa` is what rounding does. Takes as many "
        "products again, in float64; `--no-certificates` leaves it out"},
    [KS_STAT_KAPPA_LOWER_BOUND] = {
     .name = "kappa_lower_bound", .kind = KS_IS_BOUND, .is_lower_bound = true,
     .value = ks_probe_kappa_lower_bound, .over = KS_OVER_LARGEST, .every_prefix = true,
     .not_published = true, .words = "condition number of the rounded operator",
     .of_spectra = "certain lower bound", .pooled = "lower bound with null directions, IQM",
     .definition =
        "a lower bound of the condition number of the operator as it was computed, null space "
        "included: max |theta| / (sigma_min of the Jacobi matrix with beta_m as one more row, + "
        "h), the largest over the probes"},
    [KS_STAT_KURTOSIS] = {
     .name = "kurtosis", .kind = KS_IS_NUMBER, .value = ks_probe_kurtosis, .over = KS_OVER_MEAN,
     .every_prefix = true, .words = "of the Ritz values, as in the paper",
     .of_spectra = "of Ritz values", .pooled = "of Ritz values, IQM",
     .definition = "m4 / m2^2 from central moments of the unweighted Ritz values",
     .paper = "[as we read it](#comparing-with-the-published-code)"},
    [KS_STAT_KURTOSIS_EXCESS] = {
     .name = "kurtosis_excess", .kind = KS_IS_NUMBER, .value = ks_probe_kurtosis_excess,
     .over = KS_OVER_MEAN, .every_prefix = true,
     .definition = "`kurtosis` minus 3"},
    [KS_STAT_KURTOSIS_SPECTRAL] = {
     .name = "kurtosis_spectral", .kind = KS_IS_ESTIMATE, .value = ks_probe_kurtosis_spectral,
     .over = KS_OVER_MEAN, .every_prefix = true, .not_published = true,
     .definition =
        "the same ratio as `kurtosis` for all n eigenvalues, with the weights of `trace`. "
        "Absent if the mean weight of an outlier is too large for a single eigenvalue (a test "
        "at 1%)"},
    [KS_STAT_TRACE] = {
     .name = "trace", .kind = KS_IS_ESTIMATE, ENDS("trace"), .tolerance = KS_WIDTH_OF_VALUE,
     .value = ks_probe_trace, .over = KS_OVER_MEAN, .not_published = true,
     .words = "sum of the eigenvalues",
     .definition =
        "n sum w theta. The interval is from the scatter that the weights predict for random "
        "start vectors, with a [tolerance](#tolerances) for the trace from vectors of each "
        "minibatch. If all converged outliers may be single eigenvalues, each weighs 1/n and "
        "the others share the rest; the interval then holds if they are single"},
    [KS_STAT_TRACE_SQUARE] = {
     .name = "trace_square", .kind = KS_IS_ESTIMATE, .value = ks_probe_trace_square,
     .over = KS_OVER_MEAN, .not_published = true,
     .definition = "n sum w theta^2, with the weights of `trace`"},
    [KS_STAT_STABLE_RANK] = {
     .name = "stable_rank", .kind = KS_IS_ESTIMATE, .value = ks_probe_stable_rank,
     .over = KS_OVER_MEAN, .every_prefix = true, .not_published = true,
     .words = "sum of squares over the largest one; estimate",
     .definition = "`trace_square` over lambda_abs_max^2, at least 1"},
    [KS_STAT_OUTLIERS] = {
     .name = "outliers", .kind = KS_IS_WHOLE, .value = ks_probe_outliers, .over = KS_OVER_MEAN,
     .every_prefix = true, .words = "converged Ritz values that stand apart",
     .definition =
        "from both ends inward, the number of Ritz values with r at most a thousandth of the "
        "distance to the next one, while that distance and the Ritz value's own absolute value "
        "exceed the noise floor (n with `--exact`)"},
    [KS_STAT_OUTLIER_GAP] = {
     .name = "outlier_gap", .kind = KS_IS_NUMBER, .value = ks_probe_outlier_gap,
     .over = KS_OVER_MEAN, .every_prefix = true,
     .definition = "the largest Ritz value over the fifth"},
    [KS_STAT_PRODUCT_ERROR] = {
     .name = "product_error", .kind = KS_IS_NUMBER, .value = product_error,
     .over = KS_OVER_SHARED, .words = "error of products relative to the largest",
     .definition =
        "the largest |A32 y - A64 y| / (lambda_abs_max |y|) over the certificate vectors. Above "
        "1e-3 a warning names the layer where it is largest; then use `--precision f64`"},
    [KS_STAT_NOISE_FLOOR] = {
     .name = "noise_floor", .kind = KS_IS_NUMBER, .value = noise_floor, .over = KS_OVER_SHARED,
     .every_prefix = true, .words = "smaller eigenvalues are not told from zero",
     .definition =
        "a smaller eigenvalue cannot be distinguished from zero. The largest of: 16 eps "
        "lambda_abs_max, with the larger eps of products and Lanczos basis; twice the last beta "
        "of a Krylov space that ended; four times the effect of rounding on known null "
        "directions; six times the largest product error of the certificates (with `--exact` in "
        "float32, three times the norm of that error). If a product error exceeds 1% of "
        "lambda_abs_max, counts, shares and quantiles have only the intervals that always hold, "
        "and the outer bounds of lambda_max and lambda_min are not resolved"},
    [KS_STAT_NULL_DIMENSION] = {
     .name = "null_dimension", .kind = KS_IS_WHOLE, .value = null_dimension,
     .over = KS_OVER_SHARED, .words = "null directions of the architecture",
     .definition = "[null directions](#null-directions)"},
    [KS_STAT_NULL_RESIDUAL] = {
     .name = "null_residual", .kind = KS_IS_NUMBER, .value = null_residual,
     .over = KS_OVER_SHARED, .every_prefix = true},
    [KS_STAT_DEAD_DIMENSION] = {
     .name = "dead_dimension", .kind = KS_IS_WHOLE, .value = dead_dimension,
     .over = KS_OVER_SHARED, .words = "further coordinates with products of zero"},
    [KS_STAT_LAMBDA_MAX_LOSS] = {
     .name = "lambda_max_loss", .kind = KS_IS_INTERVAL, ENDS("lambda_max_loss"),
     .definition =
        "with a [tolerance](#tolerances) for `lambda_max` or `lambda_min`, if at least four "
        "minibatches within `--batches` were not analyzed: an interval for the eigenvalue of "
        "the loss itself, the mean over all minibatches that could be drawn, if those in the "
        "file are independent draws"},
    [KS_STAT_LAMBDA_MIN_LOSS] = {
     .name = "lambda_min_loss", .kind = KS_IS_INTERVAL, ENDS("lambda_min_loss")},
    [KS_STAT_KAPPA_GRADIENT_90] = {
     .name = "kappa_gradient_90", .kind = KS_IS_RATIO, ENDS("kappa_gradient_90"),
     .words = "the same for 90% of the gradient's energy",
     .definition =
        "with `--start gradient`, lambda_abs_max over the absolute eigenvalue above which 90% "
        "(50%) of the gradient's energy, its squared norm, lies. Nothing is sampled: the "
        "upper bound of lambda_abs_max holds with 99%"},
    [KS_STAT_KAPPA_GRADIENT_50] = {
     .name = "kappa_gradient_50", .kind = KS_IS_RATIO, ENDS("kappa_gradient_50"),
     .words = "the same for 50% of the gradient's energy"},
    [KS_STAT_GRADIENT_TOP_SHARE] = {.name = "gradient_top_share", .kind = KS_IS_NUMBER,
     .definition =
        "with `--start gradient`, the share of the gradient's energy on converged outliers; "
        "g'Hg / g'g; |g|"},
    [KS_STAT_GRADIENT_CURVATURE] = {.name = "gradient_curvature", .kind = KS_IS_NUMBER},
    [KS_STAT_GRADIENT_NORM] = {
     .name = "gradient_norm", .kind = KS_IS_NUMBER, .words = "Euclidean norm of the gradient"},
    [KS_STAT_DIRECTIONS_1E1] = {
     .name = "directions_1e1", .kind = KS_IS_COUNT, ENDS("directions_1e1"),
     .tolerance = KS_WIDTH_RATIO, .words = "eigenvalues above 1/10 of the largest",
     .definition =
        "the number of eigenvalues with an absolute value above lambda_abs_max / 10, 100, "
        "1,000, 10,000; the value is the estimate by the weights"},
    [KS_STAT_DIRECTIONS_1E2] = {
     .name = "directions_1e2", .kind = KS_IS_COUNT, ENDS("directions_1e2"),
     .tolerance = KS_WIDTH_RATIO, .words = "eigenvalues above 1/100 of the largest"},
    [KS_STAT_DIRECTIONS_1E3] = {
     .name = "directions_1e3", .kind = KS_IS_COUNT, ENDS("directions_1e3"),
     .tolerance = KS_WIDTH_RATIO, .words = "eigenvalues above 1/1,000 of the largest"},
    [KS_STAT_DIRECTIONS_1E4] = {
     .name = "directions_1e4", .kind = KS_IS_COUNT, ENDS("directions_1e4"),
     .tolerance = KS_WIDTH_RATIO, .words = "eigenvalues above 1/10,000 of the largest"},
    [KS_STAT_DIRECTIONS_ABOVE] = {
     .name = "directions_above", .kind = KS_IS_COUNT, ENDS("directions_above"),
     .tolerance = KS_WIDTH_RATIO, .words = "eigenvalues above the size of --count-above",
     .definition =
        "with `--count-above X`, the number of eigenvalues with an absolute value above X, "
        "whatever the largest is"},
    [KS_STAT_KAPPA_Q99] = {
     .name = "kappa_q99", .kind = KS_IS_RATIO, ENDS("kappa_q99"), .tolerance = KS_WIDTH_RATIO,
     .words = "the largest over the 99% quantile of all",
     .definition =
        "lambda_abs_max / x, where 99% (90%, 50%) of the eigenvalues are at most x in absolute "
        "value. The upper end is not resolved if x cannot be distinguished from zero; both ends "
        "are infinite if that many eigenvalues are known to be zero"},
    [KS_STAT_KAPPA_Q90] = {
     .name = "kappa_q90", .kind = KS_IS_RATIO, ENDS("kappa_q90"), .tolerance = KS_WIDTH_RATIO,
     .words = "the largest over the 90% quantile of all"},
    [KS_STAT_KAPPA_Q50] = {
     .name = "kappa_q50", .kind = KS_IS_RATIO, ENDS("kappa_q50"), .tolerance = KS_WIDTH_RATIO,
     .words = "the largest over the median of all"},
    [KS_STAT_ZERO_MASS] = {
     .name = "zero_mass", .kind = KS_IS_SHARE, ENDS("zero_mass"), .tolerance = KS_WIDTH,
     .words = "share of eigenvalues not told from zero",
     .definition =
        "the share of the n eigenvalues within the noise floor of zero; below minus the noise "
        "floor"},
    [KS_STAT_NEGATIVE_MASS] = {
     .name = "negative_mass", .kind = KS_IS_SHARE, ENDS("negative_mass"), .tolerance = KS_WIDTH,
     .words = "share of negative eigenvalues"},
    [KS_STAT_KAPPA_EFFECTIVE_BOUND] = {
     .name = "kappa_effective_bound", .kind = KS_IS_BOUND, .is_lower_bound = true,
     .words = "condition number off known zeros; certain",
     .of_spectra = "certain lower bound", .pooled = "certain lower bound, IQM",
     .definition =
        "a lower bound of the condition number off the known null directions: max(|A y1|/|y1|, "
        "|A y2|/|y2|) / (|A y3|/|y3| + rounding), from float64 products "
        "([certificates](#certificates)). It is certain, not only likely. With a weight decay, "
        "which gives these directions the eigenvalue mu2, it is of the whole operator"},
    [KS_STAT_SHARPNESS_RATIO] = {
     .name = "sharpness_ratio", .kind = KS_IS_NUMBER, .is_lower_bound = true,
     .words = "lambda_max over the limit of stable steps", .unknown = "no learning rate",
     .definition =
        "lambda_max over the largest eigenvalue for which steps with the learning rate eta are "
        "stable on a quadratic (above 1 they are unstable): 2/eta; for `preconditioned` (2 + 2 "
        "beta1)/((1 - beta1) eta), for Adam with a fixed preconditioner (Cohen et al. "
        "2022). eta is `--learning-rate`, else the checkpoint's. Absent for operators that are not "
        "the curvature of a step (`residual`, `ntk`, `ntk-value`, `fisher`) and for `--compat "
        "xqc`; `--scale` is included"},
    [KS_STAT_LOGIT_GRADIENT_LARGEST] = {.name = "logit_gradient_largest", .kind = KS_IS_NUMBER,
     .definition =
        "of a `ce` loss, the norm of its gradient in the logits of one row, |p - t|, with p the "
        "softmax and t the target, over all rows, minibatches and critics",
     .paper = "Proposition 2: at most sqrt 2"},
    [KS_STAT_LOGIT_GRADIENT_MEDIAN] = {.name = "logit_gradient_median", .kind = KS_IS_NUMBER},
    [KS_STAT_MINIBATCH_GRADIENT_LARGEST] = {
     .name = "minibatch_gradient_largest", .kind = KS_IS_NUMBER,
     .definition = "of a `ce` loss, the norm of one critic's gradient on one minibatch"},
    [KS_STAT_MINIBATCH_GRADIENT_MEDIAN] = {
     .name = "minibatch_gradient_median", .kind = KS_IS_NUMBER},
    [KS_STAT_LOGIT_JACOBIAN_LARGEST] = {.name = "logit_jacobian_largest", .kind = KS_IS_NUMBER,
     .definition =
        "of a `ce` loss, the largest singular value of the Jacobian of one row's logits in one "
        "critic's parameters, by 5 Lanczos steps, from below; over 4 rows, spread over critics "
        "and minibatches"},
    [KS_STAT_LOGIT_JACOBIAN_MEDIAN] = {.name = "logit_jacobian_median", .kind = KS_IS_NUMBER},
    [KS_STAT_LOGIT_JACOBIAN_ROWS] = {.name = "logit_jacobian_rows", .kind = KS_IS_NUMBER},
    [KS_STAT_MINIBATCH_GRADIENT_HIDDEN_LARGEST] = {
     .name = "minibatch_gradient_hidden_largest", .kind = KS_IS_NUMBER,
     .definition =
        "the same four numbers in the parameters theta_h of the [hidden layers](#gradient-bounds) "
        "only; undefined without such layers"},
    [KS_STAT_MINIBATCH_GRADIENT_HIDDEN_MEDIAN] = {
     .name = "minibatch_gradient_hidden_median", .kind = KS_IS_NUMBER},
    [KS_STAT_LOGIT_JACOBIAN_HIDDEN_LARGEST] = {
     .name = "logit_jacobian_hidden_largest", .kind = KS_IS_NUMBER},
    [KS_STAT_LOGIT_JACOBIAN_HIDDEN_MEDIAN] = {
     .name = "logit_jacobian_hidden_median", .kind = KS_IS_NUMBER},
    [KS_STAT_HIDDEN_NORM] = {.name = "hidden_norm", .kind = KS_IS_NUMBER,
     .definition =
        "of a `ce` loss, |theta_h| of the critic in which it is smallest; the largest |theta_h' "
        "g_h| / (|theta_h| |g_h|), which is 0 if the logits do not depend on |theta_h|"},
    [KS_STAT_HIDDEN_RADIAL_LARGEST] = {.name = "hidden_radial_largest", .kind = KS_IS_NUMBER},
    [KS_STAT_PREDICTION_ERROR_LARGEST] = {.name = "prediction_error_largest", .kind = KS_IS_NUMBER,
     .definition =
        "of an `mse` loss, |f - y|, the prediction minus the target of one row, which is the "
        "norm of the gradient of (f - y)^2 / 2 in f. Weights are divided out",
     .paper = "Proposition 1: without bound"},
    [KS_STAT_PREDICTION_ERROR_MEDIAN] = {.name = "prediction_error_median", .kind = KS_IS_NUMBER},
    [KS_STAT_GRADIENT_SQUARE] = {
     .name = "gradient_square", .kind = KS_IS_ESTIMATE, ENDS("gradient_square"),
     .definition =
        "[gradient noise](#gradient-noise): |G|^2 without bias, G the gradient of which each "
        "minibatch's is a draw; tr Sigma of one minibatch's gradient; tr Sigma / |G|^2; |G|^2 / "
        "(|G|^2 + tr Sigma / N)"},
    [KS_STAT_GRADIENT_VARIANCE] = {
     .name = "gradient_variance", .kind = KS_IS_ESTIMATE, ENDS("gradient_variance")},
    [KS_STAT_NOISE_SCALE] = {
     .name = "noise_scale", .kind = KS_IS_ESTIMATE, ENDS("noise_scale"),
     .words = "minibatches until the gradient equals its noise",
     .of_spectra = "gradient noise, in minibatches"},
    [KS_STAT_SIGNAL_SHARE] = {
     .name = "signal_share", .kind = KS_IS_ESTIMATE, ENDS("signal_share"),
     .words = "the signal in the mean gradient's square",
     .of_spectra = "signal in the mean gradient's square"},
    [KS_STAT_STEP_CURVATURE] = {
     .name = "step_curvature", .kind = KS_IS_NUMBER, .words = "curvature along the step of Adam",
     .of_spectra = "curvature along the step of Adam",
     .definition =
        "[along the step of Adam](#along-the-step), u'Hu / u'u; the change of the loss by that "
        "step; the change that gradient and Hessian predict"},
    [KS_STAT_STEP_CHANGE] = {
     .name = "step_change", .kind = KS_IS_NUMBER, .words = "change of the loss by that step",
     .unknown = "no learning rate"},
    [KS_STAT_STEP_CHANGE_QUADRATIC] = {
     .name = "step_change_quadratic", .kind = KS_IS_NUMBER,
     .words = "the change that the Hessian predicts", .unknown = "no learning rate"},
    [KS_STAT_CRITICAL_SHARPNESS] = {
     .name = "critical_sharpness", .kind = KS_IS_NUMBER, ENDS("critical_sharpness"),
     .words = "2 over the length at which the loss returns", .unknown = "none found",
     .of_spectra = "2 over the step at which the loss returns",
     .definition =
        "2/eta_c, where the loss at theta - eta_c u is [again](#along-the-step) what it was at "
        "theta"},
};
/* clang-format on */

const enum ks_statistic_id ks_catalogue_for_readers[] = {KS_STAT_KAPPA_EFFECTIVE_BOUND,
                                                         KS_STAT_KAPPA_LOWER_BOUND,
                                                         KS_STAT_DIRECTIONS_1E1,
                                                         KS_STAT_DIRECTIONS_1E2,
                                                         KS_STAT_DIRECTIONS_1E3,
                                                         KS_STAT_DIRECTIONS_1E4,
                                                         KS_STAT_DIRECTIONS_ABOVE,
                                                         KS_STAT_KAPPA_Q99,
                                                         KS_STAT_KAPPA_Q90,
                                                         KS_STAT_KAPPA_Q50,
                                                         KS_STAT_KAPPA_GRADIENT_90,
                                                         KS_STAT_KAPPA_GRADIENT_50,
                                                         KS_STAT_GRADIENT_NORM,
                                                         KS_STAT_LAMBDA_MAX,
                                                         KS_STAT_LAMBDA_MIN,
                                                         KS_STAT_ZERO_MASS,
                                                         KS_STAT_NEGATIVE_MASS,
                                                         KS_STAT_NULL_DIMENSION,
                                                         KS_STAT_DEAD_DIMENSION,
                                                         KS_STAT_NOISE_FLOOR,
                                                         KS_STAT_PRODUCT_ERROR,
                                                         KS_STAT_SHARPNESS_RATIO,
                                                         KS_STAT_CRITICAL_SHARPNESS,
                                                         KS_STAT_STEP_CURVATURE,
                                                         KS_STAT_STEP_CHANGE,
                                                         KS_STAT_STEP_CHANGE_QUADRATIC,
                                                         KS_STAT_NOISE_SCALE,
                                                         KS_STAT_SIGNAL_SHARE,
                                                         KS_STAT_STABLE_RANK,
                                                         KS_STAT_TRACE,
                                                         KS_STAT_KURTOSIS,
                                                         KS_STAT_OUTLIERS,
                                                         KS_STAT_KAPPA_F64,
                                                         KS_STAT_KAPPA,
                                                         KS_STATISTICS};

enum ks_statistic_id ks_catalogue_find(const char *name)
{
    size_t i = 0;

    while (i < KS_STATISTICS && strcmp(ks_catalogue[i].name, name) != 0)
        i++;
    return (enum ks_statistic_id)i;
}

/* The one with the longest name, as kappa_lower_bound begins like kappa. */
enum ks_statistic_id ks_catalogue_of_column(const char *column)
{
    enum ks_statistic_id best = KS_STATISTICS;
    size_t longest = 0;

    for (size_t i = 0; i < KS_STATISTICS; i++) {
        const size_t n = strlen(ks_catalogue[i].name);

        if (n > longest && strncmp(column, ks_catalogue[i].name, n) == 0 &&
            (!column[n] || column[n] == '_')) {
            best = (enum ks_statistic_id)i;
            longest = n;
        }
    }
    return best;
}

bool ks_statistic_is_ratio(enum ks_statistic_id id)
{
    return id < KS_STATISTICS &&
           (ks_catalogue[id].kind == KS_IS_RATIO || ks_catalogue[id].kind == KS_IS_QUOTIENT ||
            ks_catalogue[id].kind == KS_IS_BOUND);
}

/* --- the statistics of a spectrum --- */

double ks_statistic(const struct ks_spectrum *s, const char *name)
{
    return ks_attribute_number(&s->statistics, name);
}

double ks_statistic_value(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    return ks_statistic(s, ks_catalogue[id].name);
}

struct ks_interval ks_statistic_interval(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    const struct ks_statistic *row = &ks_catalogue[id];

    return (struct ks_interval){row->lower ? ks_statistic(s, row->lower) : NAN,
                                row->upper ? ks_statistic(s, row->upper) : NAN};
}

const char *ks_statistic_column_name(struct ks_statistic_column column)
{
    const struct ks_statistic *row = &ks_catalogue[column.id];

    return column.part == KS_ITSELF      ? row->name
           : column.part == KS_LOWER_END ? row->lower
                                         : row->upper;
}

double ks_statistic_column_value(const struct ks_spectrum *s, struct ks_statistic_column column)
{
    return ks_statistic(s, ks_statistic_column_name(column));
}

struct ks_interval ks_statistic_resolved(enum ks_statistic_id id, struct ks_interval i)
{
    const bool nothing = ks_statistic_is_ratio(id) && isnan(i.upper) && !(i.lower > 1);

    return nothing ? (struct ks_interval){NAN, NAN} : i;
}

double ks_statistic_abs_max(const struct ks_spectrum *s)
{
    return fmax(fabs(ks_statistic_value(s, KS_STAT_LAMBDA_MAX)),
                fabs(ks_statistic_value(s, KS_STAT_LAMBDA_MIN)));
}

static void add_column(struct ks_spectrum *s, const char *name, const char *suffix, double value)
{
    char full[KS_ATTRIBUTE_NAME];

    snprintf(full, sizeof full, "%s%s", name, suffix);
    ks_attribute_add_number(&s->statistics, full, value);
}

void ks_statistic_add(struct ks_spectrum *s, enum ks_statistic_id id, const char *suffix,
                      double value)
{
    add_column(s, ks_catalogue[id].name, suffix, value);
}

void ks_statistic_add_interval(struct ks_spectrum *s, enum ks_statistic_id id, const char *suffix,
                               struct ks_interval interval)
{
    add_column(s, ks_catalogue[id].lower, suffix, interval.lower);
    add_column(s, ks_catalogue[id].upper, suffix, interval.upper);
}
