#include "statements.h"

struct truth truth_new(size_t n, double *value, double relative)
{
    struct truth t = {.n = n, .value = value, .size = calloc(n, sizeof(double))};

    qsort(value, n, sizeof *value, ks_ascending);
    for (size_t i = 0; i < n; i++)
        t.size[i] = fabs(value[i]);
    qsort(t.size, n, sizeof *t.size, ks_ascending);
    t.abs_max = t.size[n - 1];
    t.tolerance = relative * t.abs_max;
    return t;
}

void truth_clear(struct truth *t)
{
    free(t->value);
    free(t->size);
    free(t->energy);
}

double said(const struct judge *j, const char *name, const char *end)
{
    return ks_statistic(j->s, text_of("%s%s%s", name, end, j->suffix));
}

static double tightness_of(double low, double x, double high)
{
    double ratio = isnan(low) ? high / x : isnan(high) ? x / low : high / low;

    return isnan(ratio) ? INFINITY : fabs(ratio);
}

/* Judges the statement that a number is in `stated`, where an end that is NaN states nothing. The
 * number is known to be in `truth`: the statement is wrong if the two do not overlap. */
static void judge_between(const struct judge *j, enum statement k, struct interval stated,
                          struct interval truth)
{
    struct tally *t = j->tally;
    size_t length;

    if (t->tightness[k])
        t->tightness[k][t->made[k]] = tightness_of(
            stated.low, isnan(stated.high) ? truth.high : truth.low, stated.high);
    t->made[k]++;
    if (!(stated.low > truth.high) && !(stated.high < truth.low))
        return;
    t->missed[k]++;
    length = strlen(t->miss);
    snprintf(t->miss + length, sizeof t->miss - length,
             " %s%s: [%.10g, %.10g] misses [%.10g, %.10g]", statements[k].name, j->suffix,
             stated.low, stated.high, truth.low, truth.high);
}

static double ratio_low(const struct truth *t, double size)
{
    return fmax((t->abs_max - t->tolerance) / (size + t->tolerance), 1);
}

static double ratio_high(const struct truth *t, double size)
{
    return size > t->tolerance ? (t->abs_max + t->tolerance) / (size - t->tolerance) : INFINITY;
}

static size_t count_sizes_above(const struct truth *t, double x)
{
    size_t k = t->n;

    while (k > 0 && t->size[k - 1] > x)
        k--;
    return t->n - k;
}

static size_t count_values_below(const struct truth *t, double x)
{
    size_t k = 0;

    while (k < t->n && t->value[k] < x)
        k++;
    return k;
}

static void judge_ends(const struct judge *j)
{
    const struct truth *t = j->t;
    double high = t->value[t->n - 1], low = t->value[0];
    /* Without a certificate, a Ritz value belongs to the operator with its rounding errors. */
    double slack = t->tolerance + (j->suffix[0] || j->exact ? said(j, "noise_floor", "") / 2 : 0);

    judge_between(j, LAMBDA_MAX, (struct interval){said(j, "lambda_max", ""), NAN},
                  (struct interval){high, high + slack});
    judge_between(j, LAMBDA_MIN, (struct interval){NAN, said(j, "lambda_min", "")},
                  (struct interval){low - slack, low});
    if (j->exact)
        slack = t->tolerance + said(j, "noise_floor", "") / 2;
    judge_between(j, LAMBDA_MAX_UPPER, (struct interval){NAN, said(j, "lambda_max_upper", "")},
                  (struct interval){high - slack, high});
    judge_between(j, LAMBDA_MIN_LOWER, (struct interval){said(j, "lambda_min_lower", ""), NAN},
                  (struct interval){low, low + slack});
}

/* It is that of the operator as computed, whose eigenvalues rounding may have moved by half the
 * noise floor each. Only the full run has it. */
static void judge_trace(const struct judge *j)
{
    const struct truth *t = j->t;
    double sum = 0, slack = (double)t->n * (t->tolerance + said(j, "noise_floor", "") / 2);
    struct interval stated = {said(j, "trace", "_lower"), said(j, "trace", "_upper")};

    for (size_t i = 0; i < t->n; i++)
        sum += t->value[i];
    if (!isnan(stated.low))
        judge_between(j, TRACE, stated, (struct interval){sum - slack, sum + slack});
}

static void judge_condition(const struct judge *j)
{
    const struct truth *t = j->t;

    judge_between(j, KAPPA_LOWER_BOUND, (struct interval){said(j, "kappa_lower_bound", ""), NAN},
                  (struct interval){0, ratio_high(t, t->size[0]) * (1 + 1e-9)});
    if (j->null < t->n)
        judge_between(j, KAPPA_EFFECTIVE,
                      (struct interval){said(j, "kappa_effective_bound", ""), NAN},
                      (struct interval){0, ratio_high(t, t->size[j->null]) * (1 + 1e-9)});
}

static void judge_directions(const struct judge *j)
{
    double factor = 10;

    for (size_t k = 0; k < 4; k++, factor *= 10) {
        const char *name = statements[DIRECTIONS_1E1 + k].name;
        double x = j->t->abs_max / factor, slack = 1e-9 * x + j->t->tolerance;

        if (j->t->abs_max == 0)
            slack = 0;
        judge_between(j, DIRECTIONS_1E1 + k,
                      (struct interval){said(j, name, "_lower"), said(j, name, "_upper")},
                      (struct interval){(double)count_sizes_above(j->t, x + slack),
                                        (double)count_sizes_above(j->t, x - slack)});
    }
}

static void judge_quantiles(const struct judge *j)
{
    static const size_t percent[] = {99, 90, 50};
    const struct truth *t = j->t;

    for (size_t k = 0; k < 3 && t->abs_max > 0; k++) {
        const char *name = statements[KAPPA_Q99 + k].name;
        double x = t->size[(t->n * percent[k] + 99) / 100 - 1];

        judge_between(j, KAPPA_Q99 + k,
                      (struct interval){said(j, name, "_lower") * (1 - 1e-9),
                                        said(j, name, "_upper") * (1 + 1e-9)},
                      (struct interval){ratio_low(t, x), ratio_high(t, x)});
    }
}

static void judge_masses(const struct judge *j)
{
    const struct truth *t = j->t;
    double n = (double)t->n, floor = said(j, "noise_floor", ""),
           slack = t->tolerance + 1e-9 * floor;

    judge_between(j, ZERO_MASS,
                  (struct interval){said(j, "zero_mass", "_lower") - 1e-9,
                                    said(j, "zero_mass", "_upper") + 1e-9},
                  (struct interval){1 - (double)count_sizes_above(t, floor - slack) / n,
                                    1 - (double)count_sizes_above(t, floor + slack) / n});
    judge_between(j, NEGATIVE_MASS,
                  (struct interval){said(j, "negative_mass", "_lower") - 1e-9,
                                    said(j, "negative_mass", "_upper") + 1e-9},
                  (struct interval){(double)count_values_below(t, -floor - slack) / n,
                                    (double)count_values_below(t, -floor + slack) / n});
}

/* The number of eigenvalues that differ by more than rounding. */
static size_t distinct(const struct judge *j)
{
    const struct truth *t = j->t;
    double close = fmin(t->tolerance, said(j, "noise_floor", "") / 4);
    size_t n = 1;

    for (size_t i = 1; i < t->n; i++)
        n += t->value[i] - t->value[i - 1] > close;
    return n;
}

/* Statements that are made only for the full run, not for prefixes. */
static void judge_full_run(const struct judge *j)
{
    const struct truth *t = j->t;
    double known = said(j, "null_dimension", ""), dead = said(j, "dead_dimension", "");
    size_t nullity = 0;

    for (size_t i = 0; i < t->n; i++)
        nullity += fabs(t->value[i] - t->shift) <= t->tolerance;
    judge_between(j, NULL_DIMENSION, (struct interval){known + (isnan(dead) ? 0 : dead), NAN},
                  (struct interval){0, (double)nullity});
    if (t->energy) {
        double slack = t->tolerance + said(j, "noise_floor", "") / 2;

        judge_between(
            j, GRADIENT_CURVATURE,
            (struct interval){said(j, "gradient_curvature", ""), said(j, "gradient_curvature", "")},
            (struct interval){t->gradient_curvature - slack, t->gradient_curvature + slack});
    }
}

/* The smallest x such that [-x, x] holds the energy `rest`; with `up`, the x at which the energy
 * first exceeds it. */
static double energy_size(const struct truth *t, double rest, bool up)
{
    double best = t->abs_max;

    for (size_t i = 0; i < t->n; i++) {
        double x = t->size[i], sum = 0;

        for (size_t k = 0; k < t->n; k++)
            sum += fabs(t->value[k]) <= x + t->tolerance * (up ? 0 : 1) ? t->energy[k] : 0;
        if (up ? sum > rest + 1e-9 : sum >= rest - 1e-9) {
            best = x;
            break;
        }
    }
    return best;
}

static void judge_energy(const struct judge *j)
{
    const struct truth *t = j->t;

    for (size_t k = 0; k < 2 && t->energy && t->abs_max > 0; k++) {
        const char *name = statements[GRADIENT_90 + k].name;
        double rest = k == 0 ? 0.1 : 0.5;

        judge_between(j, GRADIENT_90 + k,
                      (struct interval){said(j, name, "_lower") * (1 - 1e-9),
                                        said(j, name, "_upper") * (1 + 1e-9)},
                      (struct interval){ratio_low(t, energy_size(t, rest, true)),
                                        ratio_high(t, energy_size(t, rest, false))});
    }
}

void judge_spectrum(const struct ks_spectrum *s, const struct truth *t, size_t null, bool prefixes,
                    struct tally *tally)
{
    struct judge j = {
        .s = s, .t = t, .suffix = "", .null = null, .exact = !s->alpha, .tally = tally};

    judge_full_run(&j);
    judge_energy(&j);
    for (size_t m = 0; m == 0 || (prefixes && s->alpha && m < s->order);
         m += KS_STATISTICS_PREFIX) {
        char suffix[32] = "";

        if (m > 0)
            snprintf(suffix, sizeof suffix, "_m%zu", m);
        j.suffix = suffix;
        judge_ends(&j);
        judge_trace(&j);
        judge_condition(&j);
        judge_directions(&j);
        judge_quantiles(&j);
        judge_masses(&j);
        if (t->abs_max > 0)
            judge_between(&j, STABLE_RANK, (struct interval){NAN, said(&j, "stable_rank", "")},
                          (struct interval){1, INFINITY});
        if (!j.exact)
            judge_between(&j, OUTLIERS, (struct interval){said(&j, "outliers", ""), NAN},
                          (struct interval){0, (double)distinct(&j)});
    }
}

size_t most_misses(size_t runs, double rate)
{
    size_t most = 0;

    /* P(more than `most` misses) = I_rate(most + 1, runs - most) */
    while (most < runs && ks_beta_lower_tail((double)most + 1, (double)(runs - most), rate) > 0.01)
        most++;
    return most;
}

enum { KEPT = 1 << 24 }; /* bytes for the activations that an operator keeps */

static ks_status analysis_operator(struct analysis *o, bool single, struct ks_operator **a)
{
    o->problem.kind = o->kind;
    o->problem.selection = o->selection;
    return ks_problem_operator(&o->problem, single, KEPT, a);
}

static ks_status analysis_finished(void *context, const struct ks_lanczos *lanczos)
{
    return ks_certificates_take(&((struct analysis *)context)->certificates, lanczos);
}

static ks_status analysis_check_exact(struct analysis *o, const struct ks_operator *a)
{
    struct ks_operator *wide = NULL;
    struct ks_null null = {.is_dead = NULL};
    ks_status status = KS_OK;

    if (!o->single)
        return KS_OK;
    KS_GO(analysis_operator(o, false, &wide));
    KS_GO(ks_exact_error(a, wide, &o->exact_error));
    KS_GO(ks_null_measure(o->space, wide, NULL, NULL, &null));
    ks_null_take_dead(&o->null, &null);
    KS_GO(ks_null_basis_update(o->space, &o->null, &o->basis));
done:
    ks_null_clear(&null);
    ks_operator_free(wide);
    return status;
}

static ks_status analysis_spectrum(struct analysis *o, const struct ks_operator *a)
{
    struct slq slq = {.order = o->order,
                      .probes = o->probes,
                      .seed = o->seed,
                      .basis_f32 = o->single_basis,
                      .products_f32 = o->single,
                      .complement = o->complement && o->order < a->n,
                      .on_finished = analysis_finished,
                      .context = o};
    const struct ks_problem *problem = &o->problem;

    if (o->exact) {
        KS_TRY(ks_exact(a, NULL, NULL, o->spectrum));
        return analysis_check_exact(o, a);
    }
    o->certificates = (struct ks_certificates){
        .n = a->n, .probes = o->probes, .prefix = KS_STATISTICS_PREFIX, .basis = o->basis};
    KS_TRY(ks_certificates_new(o->order, &o->certificates));
    if (o->gradient)
        KS_TRY(ks_gradient_start(problem, &o->start));
    slq.gradient = o->start;
    KS_TRY(slq_run(a, &slq, o->spectrum));
    o->certificates.gradient = o->start;
    return ks_certify(&o->certificates, problem, KEPT);
}

ks_status analysis_run(struct analysis *o)
{
    struct ks_operator *a = NULL;
    ks_status status = KS_OK;
    struct ks_statistics_inputs inputs;

    KS_GO(ks_alloc(1, sizeof *o->spectrum, &o->spectrum));
    KS_GO(ks_selection_new(&o->problem, o->kind->moving, &o->selection));
    KS_GO(ks_null_space_new(&o->problem, o->kind, o->selection, &o->space));
    KS_GO(analysis_operator(o, o->single, &a));
    KS_GO(ks_null_measure(o->space, a, NULL, NULL, &o->null));
    KS_GO(ks_null_basis_update(o->space, &o->null, &o->basis));
    KS_GO(analysis_spectrum(o, a));
    inputs = (struct ks_statistics_inputs){
        .n = o->selection->n,
        .epsilon = o->single ? FLT_EPSILON : DBL_EPSILON,
        .basis_epsilon = o->single_basis ? FLT_EPSILON : DBL_EPSILON,
        .shift = o->space->shift,
        .null = &o->null,
        .operator_rank = o->kind->operator_rank ? o->kind->operator_rank(&o->problem) : 0,
        .exact_error = o->exact_error,
        .certificates = o->exact ? NULL : &o->certificates};
    KS_GO(ks_statistics(o->spectrum, &inputs));
done:
    ks_operator_free(a);
    return status;
}

void analysis_clear(struct analysis *o)
{
    ks_spectrum_free(o->spectrum);
    ks_certificates_clear(&o->certificates);
    ks_null_basis_free(o->basis);
    ks_null_clear(&o->null);
    ks_null_space_free(o->space);
    ks_selection_free(o->selection);
    free(o->start);
    o->spectrum = NULL;
    o->certificates = (struct ks_certificates){.n = 0};
    o->null = (struct ks_null){.dimension = 0};
    o->basis = NULL;
    o->space = NULL;
    o->selection = NULL;
    o->start = NULL;
}

size_t analysis_null(const struct analysis *o)
{
    return o->basis && !o->certificates.refuted ? o->basis->dimension : 0;
}

ks_status analysis_matrix(struct analysis *o, bool single, double **matrix, double *asymmetry)
{
    struct ks_operator *a = NULL;
    double *unit = NULL;
    ks_status status = KS_OK;

    *matrix = NULL;
    *asymmetry = 0;
    KS_GO(analysis_operator(o, single, &a));
    KS_GO(ks_alloc(a->n, sizeof *unit, &unit));
    KS_GO(ks_alloc(a->n * a->n, sizeof **matrix, matrix));
    for (size_t j = 0; j < a->n; j++) {
        unit[j] = 1;
        KS_GO(ks_operator_apply(a, unit, *matrix + j * a->n));
        unit[j] = 0;
    }
    for (size_t j = 0; j < a->n; j++)
        for (size_t i = 0; i < j; i++) {
            double *upper = &(*matrix)[i * a->n + j], *lower = &(*matrix)[j * a->n + i];

            *asymmetry = fmax(*asymmetry, fabs(*upper - *lower));
            *upper = *lower = *upper / 2 + *lower / 2;
        }
done:
    free(unit);
    ks_operator_free(a);
    return status;
}

/* The spectral norm of the difference between the operator in float64 and in float32. */
static double float32_error(size_t n, const double *matrix, const double *rounded)
{
    double *e = malloc(n * n * sizeof *e), *value = malloc(n * sizeof *value), unit = 0;

    for (size_t i = 0; i < n * n; i++)
        unit = fmax(unit, fabs(e[i] = rounded[i] - matrix[i]));
    for (size_t i = 0; i < n * n && unit > 0; i++)
        e[i] /= unit;
    LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'U', (int)n, e, (int)n, value);
    unit *= fmax(fabs(value[0]), fabs(value[n - 1]));
    free(e);
    free(value);
    return unit;
}

ks_status truth_find(struct analysis *o, struct truth *t)
{
    size_t n = o->selection->n;
    double *matrix = NULL, *rounded = NULL, *value = malloc(n * sizeof *value), unit = 0, float32,
           asymmetry;

    KS_TRY(analysis_matrix(o, false, &matrix, &asymmetry));
    KS_TRY(analysis_matrix(o, true, &rounded, &unit));
    unit = 0;
    float32 = float32_error(n, matrix, rounded);
    free(rounded);
    for (size_t i = 0; i < n * n; i++)
        unit = fmax(unit, fabs(matrix[i]));
    for (size_t i = 0; i < n * n && unit > 0; i++)
        matrix[i] /= unit;
    if (!isfinite(unit) ||
        LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', (int)n, matrix, (int)n, value) != 0)
        return ks_fail(KS_NUMBER, "no truth");
    *t = truth_new(n, value, 1e-12);
    for (size_t i = 0; i < n; i++)
        t->value[i] *= unit, t->size[i] *= unit;
    t->abs_max *= unit;
    t->tolerance = 1e-12 * t->abs_max;
    t->tolerance = fmax(t->tolerance, 10 * asymmetry);
    if (isfinite(float32))
        t->tolerance = fmax(t->tolerance, 1e-7 * float32);
    /* Products along a normal are small remainders of much larger inputs. */
    if (o->kind->spheres && o->null.product > 0)
        t->tolerance = fmax(t->tolerance, (o->single ? 1e-7 : 10) * o->null.product);
    t->float32 = float32;
    t->shift = o->space->shift;
    if (o->start) {
        double norm = cblas_dnrm2((int)n, o->start, 1);

        t->energy = calloc(n, sizeof(double));
        for (size_t i = 0; i < n; i++) {
            t->energy[i] = pow(cblas_ddot((int)n, matrix + i * n, 1, o->start, 1) / norm, 2);
            t->gradient_curvature += t->energy[i] * t->value[i];
        }
    }
    free(matrix);
    return KS_OK;
}
