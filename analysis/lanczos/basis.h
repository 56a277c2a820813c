/* A Lanczos process on disk, so that it can be stopped at any moment and extended later. */
#ifndef KS_LANCZOS_BASIS_H
#define KS_LANCZOS_BASIS_H

#include "core/error.h"
#include "lanczos/lanczos.h"

/* The file of one probe, "STEM.probeK.basis"; in a team each process has one with its slice of the
 * vectors, "STEM.probeK.IofN.basis". K is "-gradient" for the probe that starts at the gradient. */
struct ks_basis;

/* Opens the file of a process that has just been started, or makes it, and takes the steps that it
 * holds, up to the process's order. `key` says all that the numbers depend on beside the probe, one
 * "NAME VALUE" per line. Refused are a file with another key (KS_USAGE, with the first line that
 * differs), what is no such file (KS_FORMAT), and one that another process has open (KS_IO). The
 * steps end before the first that is cut off or damaged, and the next one overwrites that. The
 * caller ends with ks_basis_close, also after a failure. In a team all processes call it, fail
 * together, and take the same number of steps. */
ks_status ks_basis_open(const char *stem, const char *key, struct ks_lanczos *lanczos,
                        struct ks_basis **basis);
/* Appends the process's last step. Fails with KS_FULL (a full disk); the steps before stay. */
ks_status ks_basis_append(struct ks_basis *basis, const struct ks_lanczos *lanczos);
void ks_basis_close(struct ks_basis *basis); /* NULL is fine */

#endif
