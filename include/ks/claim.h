/* What can be claimed of an operator's conditioning, in a sentence. */
#ifndef KS_CLAIM_H
#define KS_CLAIM_H

#include <stddef.h>

#include "ks/error.h"
#include "ks/spectrum.h"

/* One sentence for a person, from the figures and the root attributes of a spectrum that has both:
 * the condition number as far as it is known, how far most eigenvalues lie below the largest, and
 * what kappa is. `normals`: how many of the null dimension are normals of spheres, which are no
 * directions of the manifold: they make no condition number infinite. The caller frees *text. */
ks_status ks_claim(const struct ks_spectrum *spectrum, size_t normals, char **text);

#endif
