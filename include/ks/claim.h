/* What can be claimed of an operator's conditioning, in a sentence. */
#ifndef KS_CLAIM_H
#define KS_CLAIM_H

#include "ks/error.h"
#include "ks/spectrum.h"

/* One sentence for a person, from the figures and the root attributes of a spectrum that has both:
 * the condition number as far as it is known, how far most eigenvalues lie below the largest, and
 * what kappa is. The caller frees *text. */
ks_status ks_claim(const struct ks_spectrum *spectrum, char **text);

#endif
