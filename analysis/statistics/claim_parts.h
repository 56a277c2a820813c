/* The parts of a claim: for claim.c and claim_conditions.c alone. */
#ifndef KS_STATISTICS_CLAIM_PARTS_H
#define KS_STATISTICS_CLAIM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/interval.h"
#include "statistics/claim.h"
#include "statistics/completeness.h"

struct ks_claim_parts {
    const struct ks_spectrum *s;
    const struct ks_claim_terms *terms;
    char name[128];         /* the operator's name in a sentence, such as "H"          */
    bool exact;             /* all eigenvalues were computed                           */
    bool certified;         /* the bounds are certified by float64 products            */
    double abs_max;         /* the largest |eigenvalue| that was found                 */
    size_t steps;           /* the most Lanczos steps of a probe; n for an exact spectrum */
    struct ks_nullity null; /* the known null space without the normals                */
    double lifted;          /* directions whose only curvature is the weight decay     */
    double effective;       /* lower bound of the condition number off the null space  */
    double upper;           /* upper bound of the same number, if `complete`           */
    bool complete;          /* the condition number is known from both sides           */
};

/* Prints a bound with three digits, rounded to the side on which it stays a bound, or in words. */
void ks_claim_print_number(FILE *out, double x, enum ks_side side);

/* The sentences about the null space and the condition number. */
void ks_claim_print_conditions(FILE *out, const struct ks_claim_parts *c);

#endif
