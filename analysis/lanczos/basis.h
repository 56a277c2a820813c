/* Lanczos steps on disk (--keep-basis): a run can be stopped at any moment and resumed or extended
 * later. */
#ifndef KS_LANCZOS_BASIS_H
#define KS_LANCZOS_BASIS_H

#include "core/error.h"
#include "lanczos/lanczos.h"

/* The file of one probe, "STEM.probeK.basis". In a team of N each rank has its own file with its
 * slice of the vectors, "STEM.probeK.IofN.basis", I = rank + 1. K is "-gradient" for the probe that
 * starts at the gradient. */
struct ks_basis;

/* Opens or creates the file of `lanczos`, which is at step 0, and reads the stored steps into it,
 * at most lanczos->order. `fingerprint` lists everything that the numbers depend on besides the
 * probe, one "NAME VALUE" per line. Fails with KS_USAGE if the file has another fingerprint (the
 * message shows the first line that differs), KS_FORMAT if it is not a basis file, KS_IO if another
 * process has it open. A truncated or damaged step and all steps after it are ignored, and the next
 * ks_basis_append overwrites them. The caller ends with ks_basis_close, also after a failure. In a
 * team all ranks call it, fail together, and read the same number of steps. */
ks_status ks_basis_open(const char *stem, const char *fingerprint, struct ks_lanczos *lanczos,
                        struct ks_basis **basis);
/* Appends the last step of `lanczos`. Fails with KS_FULL (disk full) or KS_IO; the earlier steps
 * stay valid. */
ks_status ks_basis_append(struct ks_basis *basis, const struct ks_lanczos *lanczos);
void ks_basis_close(struct ks_basis *basis); /* NULL is fine */

#endif
