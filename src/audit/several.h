/* Several critics: which is better conditioned, in what, how surely and in which layers. */
#ifndef KS_AUDIT_SEVERAL_H
#define KS_AUDIT_SEVERAL_H

#include "audit/audit.h"

/* Adds a section with an answer for each pair of n >= 2 audited critics, a table of their numbers,
 * the layers in which they differ most, and, if they are checkpoints of one run, a figure over its
 * steps. A failure is kept in the document. */
void ks_audit_several(size_t n, const struct ks_audit *audit, struct ks_document *document);

#endif
