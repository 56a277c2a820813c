/* One step of the published code's Lanczos recurrence. */
#ifndef KS_LANCZOS_LANCZOS_XQC_H
#define KS_LANCZOS_LANCZOS_XQC_H

#include "lanczos/lanczos.h"

/* From `product`, this rank's slice of A q_j (j = steps), to alpha_j, beta_j and q_{j+1} by the
 * published code's recurrence. alpha_j or beta_j is not finite if float32 overflows. */
void ks_lanczos_xqc_step(struct ks_lanczos *lanczos, const double *product);

#endif
