/* A Lanczos process on disk, so that it can be stopped at any moment and extended later. */
#ifndef KS_BASIS_H
#define KS_BASIS_H

#include "ks/error.h"
#include "ks/lanczos.h"

/* The file of one probe, "STEM.probeK.basis"; in a team each process has one with its slice of the
 * vectors, "STEM.probeK.IofN.basis". */
struct ks_basis;

/* Opens the file of the process, which has just been started, and takes the steps that it holds, at
 * most as many as the process may take; makes it where it is missing. `key` says all that the
 * numbers depend on beside the probe, a "NAME VALUE" a line; a file of another key is refused, and
 * its first line that differs named (KS_USAGE), and so is what is no such file (KS_FORMAT). What
 * was cut off or damaged ends the steps that count, and the next one is written over it. Fails with
 * KS_IO also where another process has the file open. The caller ends with ks_basis_close, also
 * after a failure. In a team all processes call it, fail together, and take as many steps. */
ks_status ks_basis_open(const char *stem, const char *key, struct ks_lanczos *lanczos,
                        struct ks_basis **basis);
/* Appends the process's last step. Fails with KS_FULL (a full disk); the steps before stay. */
ks_status ks_basis_append(struct ks_basis *basis, const struct ks_lanczos *lanczos);
void ks_basis_close(struct ks_basis *basis); /* NULL is fine */

#endif
