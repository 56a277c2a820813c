#include "claims/paper_claims.h"

#include <stdio.h>
#include <string.h>

#include "core/line.h"

const char *const ks_claim_statistic_names[KS_CLAIM_STATISTICS] = {"paper", "sound", "second",
                                                                   "control", "revised"};

const char *const ks_claim_family_dates[KS_CLAIM_FAMILIES] = {"2026-11-22", "2026-11-26"};
const char ks_claim_revised_date[] = "2026-11-27", ks_claim_revised_from[] = "2026-11-28";

/* Thresholds: factors of 100, 10, 5, 4, sqrt 10, 2, 1.25 and 1.1, in decades. */
#define HUNDREDFOLD 2
#define TENFOLD     1
#define FIVEFOLD    0.699
#define FOURFOLD    0.602
#define ROOT_OF_TEN 0.5
#define TWOFOLD     0.301
#define FOURTH      0.097
#define TENTH       0.0414
#define SAME(theta)                                                                                \
    {                                                                                              \
        theta, theta, theta                                                                        \
    }

/* Matched pairs of a LEVEL, RANGE or GROWTH. */
#define PAIRS(how, what, of, high, low)                                                            \
    .kind = KS_CLAIM_PAIRS, .quantity = KS_CLAIM_##what, .summary = KS_CLAIM_##how,                \
    .factor = KS_FACTOR_##of, .larger = (high), .smaller = (low)
#define CELL_OF(normalization, weight_normalization, loss)                                         \
    .has_cell = true, .cell = KS_TWELVE_OF(normalization, weight_normalization, loss)

const struct ks_paper_claim ks_paper_claims[KS_CLAIMS] = {
    {"bn-below-ln", "the condition number with BN is an order of magnitude below that with LN",
     PAIRS(LEVEL, KAPPA, NORMALIZATION, KS_LN, KS_BN), .theta = {TENFOLD, TENFOLD, TWOFOLD},
     .figure = 3},
    {"bn-below-none",
     "the condition number with BN is an order of magnitude below that without normalization",
     PAIRS(LEVEL, KAPPA, NORMALIZATION, KS_DENSE, KS_BN), .theta = {TENFOLD, TENFOLD, TWOFOLD},
     .figure = 3},
    {"bn-steadier-than-ln", "with BN the condition number moves less over training than with LN",
     PAIRS(RANGE, KAPPA, NORMALIZATION, KS_LN, KS_BN), .theta = SAME(TWOFOLD), .figure = 3},
    {"bn-steadier-than-none",
     "with BN the condition number moves less over training than without normalization",
     PAIRS(RANGE, KAPPA, NORMALIZATION, KS_DENSE, KS_BN), .theta = SAME(TWOFOLD), .figure = 3},
    {"ln-outliers-large", "LN has larger outlying eigenvalues than BN",
     PAIRS(LEVEL, LAMBDA_MAX, NORMALIZATION, KS_LN, KS_BN), .theta = SAME(TWOFOLD), .figure = 3},
    {"ln-outliers-grow", "LN's outlying eigenvalues grow over training, and more than BN's",
     PAIRS(GROWTH, LAMBDA_MAX, NORMALIZATION, KS_LN, KS_BN), .effect = KS_AND_LARGER,
     .theta = SAME(TWOFOLD), .figure = 3},
    {"ce-below-mse", "the condition number with cross-entropy is below that with MSE",
     PAIRS(LEVEL, KAPPA, LOSS, KS_MSE, KS_CE), .theta = {TWOFOLD, FOURTH, FOURTH}, .figure = 4},
    {"bn-by-itself", "BN lowers the condition number by itself",
     PAIRS(LEVEL, KAPPA, NORMALIZATION, KS_DENSE, KS_BN), CELL_OF(KS_DENSE, 0, KS_MSE),
     .theta = {TWOFOLD, FOURTH, FOURTH}, .figure = 4},
    {"wn-by-itself", "WN lowers the condition number by itself",
     PAIRS(LEVEL, KAPPA, WEIGHT_NORMALIZATION, 0, 1), CELL_OF(KS_DENSE, 0, KS_MSE),
     .theta = {TWOFOLD, FOURTH, FOURTH}, .figure = 4},
    {"ce-by-itself", "cross-entropy lowers the condition number by itself",
     PAIRS(LEVEL, KAPPA, LOSS, KS_MSE, KS_CE), CELL_OF(KS_DENSE, 0, KS_MSE),
     .theta = {TWOFOLD, FOURTH, FOURTH}, .figure = 4},
    {"all-three-lowest", "BN + WN + CE together have the lowest condition number of the twelve",
     .kind = KS_CLAIM_LOWEST, .quantity = KS_CLAIM_KAPPA, .summary = KS_CLAIM_LEVEL,
     .theta = SAME(TWOFOLD), .figure = 4},
    {"kappa-and-return", "architectures with a lower condition number have higher returns",
     .kind = KS_CLAIM_CORRELATION, .quantity = KS_CLAIM_KAPPA, .theta = SAME(-0.5), .figure = 4},
    {"lambda-max-and-return", "architectures with a lower largest eigenvalue have higher returns",
     .kind = KS_CLAIM_CORRELATION, .quantity = KS_CLAIM_LAMBDA_MAX, .theta = SAME(-0.5),
     .figure = 4},
    {"bn-kurtosis-below-ln", "the spectrum with BN has a lower kurtosis than with LN",
     PAIRS(LEVEL, KURTOSIS, NORMALIZATION, KS_LN, KS_BN), .theta = SAME(FOURTH), .figure = 4},
    {"norm-grows-without-wn", "without WN the norm of the parameters grows, and more than with it",
     PAIRS(GROWTH, PARAM_NORM, WEIGHT_NORMALIZATION, 0, 1), .effect = KS_AND_LARGER,
     .theta = SAME(TENTH), .figure = 8},
    {"mse-gradient-grows", "with MSE the norm of the gradient grows, and more than with CE",
     PAIRS(GROWTH, GRAD_NORM, LOSS, KS_MSE, KS_CE), .effect = KS_AND_LARGER, .theta = SAME(TWOFOLD),
     .figure = 8},
    {"gradient-constant", "BN + WN + CE keeps the norm of the gradient constant",
     .kind = KS_CLAIM_CONSTANT, .quantity = KS_CLAIM_GRAD_NORM, .summary = KS_CLAIM_GROWTH,
     .theta = SAME(TWOFOLD), .figure = 8},
    {"effective-lr-constant", "BN + WN + CE keeps the effective learning rate constant",
     .kind = KS_CLAIM_CONSTANT, .quantity = KS_CLAIM_EFFECTIVE_LR, .summary = KS_CLAIM_GROWTH,
     .theta = SAME(TWOFOLD), .figure = 8},
    {"all-three-highest", "BN + WN + CE together have the highest return of the twelve",
     .family = KS_CLAIMS_FURTHER, .kind = KS_CLAIM_LOWEST, .quantity = KS_CLAIM_RETURN,
     .theta = SAME(FOURTH), .figure = 4},
    {"all-three-far-below",
     "BN + WN + CE has a condition number orders of magnitude below that of the baselines",
     .family = KS_CLAIMS_FURTHER, .kind = KS_CLAIM_FAR_BELOW, .quantity = KS_CLAIM_KAPPA,
     .summary = KS_CLAIM_LEVEL, .theta = {HUNDREDFOLD, HUNDREDFOLD, FOURFOLD}, .figure = 4},
    {"simba-v2-near", "SimBa-V2 has a condition number about as low as BN + WN + CE",
     .family = KS_CLAIMS_FURTHER, .kind = KS_CLAIM_NEAR, .quantity = KS_CLAIM_KAPPA,
     .summary = KS_CLAIM_LEVEL, .theta = SAME(ROOT_OF_TEN), .figure = 4},
    {"negative-eigenvalues", "the Hessian is not always positive definite",
     .family = KS_CLAIMS_FURTHER, .kind = KS_CLAIM_EXISTS, .quantity = KS_CLAIM_NEGATIVE,
     .summary = KS_CLAIM_MEAN, .theta = SAME(0), .figure = 3},
    {"effective-lr-falls-without-wn",
     "without WN the effective learning rate falls, and more than with it",
     .family = KS_CLAIMS_FURTHER, PAIRS(GROWTH, EFFECTIVE_LR, WEIGHT_NORMALIZATION, 1, 0),
     .effect = KS_AND_FALL, CELL_OF(KS_BN, 1, KS_CE), .theta = SAME(TWOFOLD), .figure = 8},
    {"mse-gradient-tenfold",
     "with MSE the norm of the gradient grows about tenfold, and more than with CE",
     .family = KS_CLAIMS_FURTHER, PAIRS(GROWTH, GRAD_NORM, LOSS, KS_MSE, KS_CE),
     .effect = KS_AND_LARGER, CELL_OF(KS_BN, 1, KS_MSE), .theta = SAME(FIVEFOLD), .figure = 8},
    {"mse-effective-lr-tenfold",
     "with MSE the effective learning rate grows about tenfold, and more than with CE",
     .family = KS_CLAIMS_FURTHER, PAIRS(GROWTH, EFFECTIVE_LR, LOSS, KS_MSE, KS_CE),
     .effect = KS_AND_LARGER, CELL_OF(KS_BN, 1, KS_MSE), .theta = SAME(FIVEFOLD), .figure = 8},
    {"ce-gradient-far-below",
     "with CE the norm of the gradient is many orders of magnitude below that with MSE",
     .family = KS_CLAIMS_FURTHER, PAIRS(LEVEL, GRAD_NORM, LOSS, KS_MSE, KS_CE),
     CELL_OF(KS_BN, 1, KS_MSE), .theta = SAME(HUNDREDFOLD), .figure = 8},
    {"norm-constant-with-wn", "with WN the norm of the parameters is constant",
     .family = KS_CLAIMS_FURTHER, PAIRS(GROWTH, PARAM_NORM, WEIGHT_NORMALIZATION, 1, 0),
     .effect = KS_MINUS_ABSOLUTE, CELL_OF(KS_BN, 1, KS_CE), .theta = SAME(-TENTH), .figure = 8},
    {"ln-larger-effective-lr", "LN has a larger effective learning rate than BN",
     .family = KS_CLAIMS_FURTHER, PAIRS(LEVEL, EFFECTIVE_LR, NORMALIZATION, KS_LN, KS_BN),
     CELL_OF(KS_LN, 1, KS_CE), .theta = SAME(TWOFOLD), .figure = 8},
};

const char *ks_paper_claim_plot(const struct ks_paper_claim *claim)
{
    return claim->figure == 3 ? "spectra" : claim->figure == 4 ? "kappa_return" : "norms";
}

bool ks_claim_is_number(enum ks_claim_quantity quantity)
{
    return quantity >= KS_CLAIM_PARAM_NORM;
}

bool ks_paper_claim_has(const struct ks_paper_claim *claim, enum ks_claim_statistic statistic)
{
    bool number = ks_claim_is_number(claim->quantity);

    if (statistic == KS_CLAIM_CONTROL)
        return claim->kind == KS_CLAIM_PAIRS && claim->factor == KS_FACTOR_NORMALIZATION && !number;
    if (statistic == KS_CLAIM_REVISED)
        return claim->quantity == KS_CLAIM_KAPPA || (number && claim->summary == KS_CLAIM_GROWTH);
    return statistic != KS_CLAIM_SECOND || claim->quantity == KS_CLAIM_KAPPA || number;
}

enum ks_claim_statistic ks_claim_statistic_base(enum ks_claim_statistic statistic)
{
    return statistic == KS_CLAIM_CONTROL   ? KS_CLAIM_SOUND
           : statistic == KS_CLAIM_REVISED ? KS_CLAIM_PAPER
                                           : statistic;
}

/* --- the twelve --- */

static const char *const normalizations[] = {"bn", "ln", "dense"}, *const losses[] = {"ce", "mse"};
static const char simba_v2[] = "simba-v2";

static void take_apart(size_t number, size_t level[3])
{
    level[KS_FACTOR_NORMALIZATION] = number / 4;
    level[KS_FACTOR_WEIGHT_NORMALIZATION] = number / 2 % 2;
    level[KS_FACTOR_LOSS] = number % 2;
}

/* The one architecture of that name; n_architectures if there is none, or more than one. */
static size_t find_simba_v2(const struct ks_study *study)
{
    size_t n = 0, found = study->n_architectures;

    for (size_t a = 0; a < study->n_architectures; a++)
        if (!study->architecture[a].elsewhere &&
            strncmp(study->architecture[a].name, simba_v2, strlen(simba_v2)) == 0) {
            found = a;
            n++;
        }
    return n == 1 ? found : study->n_architectures;
}

size_t ks_twelve_find(const struct ks_study *study, size_t architecture[KS_JUDGED])
{
    size_t found = 0;

    architecture[KS_SIMBA_V2] = find_simba_v2(study);
    for (size_t k = 0; k < KS_TWELVE; k++)
        architecture[k] = study->n_architectures;
    for (size_t a = 0; a < study->n_architectures; a++) {
        const struct ks_study_architecture *is = &study->architecture[a];
        const size_t norm = ks_word_index(is->normalization, 3, normalizations),
                     loss = ks_word_index(is->loss, 2, losses);

        if (is->line == 0 && norm < 3 && loss < 2)
            architecture[KS_TWELVE_OF(norm, is->weight_normalization, loss)] = a;
    }
    for (size_t k = 0; k < KS_TWELVE; k++)
        found += architecture[k] < study->n_architectures;
    return found;
}

void ks_twelve_name(size_t number, char text[16])
{
    size_t level[3];

    if (number == KS_SIMBA_V2) {
        snprintf(text, 16, "%s", simba_v2);
        return;
    }
    take_apart(number, level);
    snprintf(text, 16, "%s%s+%s", normalizations[level[KS_FACTOR_NORMALIZATION]],
             level[KS_FACTOR_WEIGHT_NORMALIZATION] ? "+wn" : "", losses[level[KS_FACTOR_LOSS]]);
}

size_t ks_paper_claim_cells(const struct ks_paper_claim *claim, size_t larger[KS_CLAIM_CELLS],
                            size_t smaller[KS_CLAIM_CELLS])
{
    size_t n = 0;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        size_t level[3];

        take_apart(k, level);
        if (level[claim->factor] != claim->larger)
            continue;
        level[claim->factor] = claim->smaller;
        larger[n] = k;
        smaller[n++] = KS_TWELVE_OF(level[KS_FACTOR_NORMALIZATION],
                                    level[KS_FACTOR_WEIGHT_NORMALIZATION], level[KS_FACTOR_LOSS]);
    }
    return n;
}

void ks_paper_claim_needs(const struct ks_paper_claim *claim, bool needed[KS_JUDGED])
{
    size_t larger[KS_CLAIM_CELLS], smaller[KS_CLAIM_CELLS], cells;

    for (size_t k = 0; k < KS_TWELVE; k++)
        needed[k] = claim->kind == KS_CLAIM_FAR_BELOW ? k == KS_BEST || k / 4 != KS_BN
                                                      : claim->kind != KS_CLAIM_PAIRS;
    needed[KS_SIMBA_V2] = claim->kind == KS_CLAIM_NEAR;
    if (claim->kind != KS_CLAIM_PAIRS)
        return;
    cells = ks_paper_claim_cells(claim, larger, smaller);
    for (size_t c = 0; c < cells; c++) {
        needed[larger[c]] = true;
        if (claim->effect != KS_MINUS_ABSOLUTE) /* which is of one run alone */
            needed[smaller[c]] = true;
    }
}
