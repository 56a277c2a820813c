/* The answer of an audit: whether the critic is well conditioned, compared with what, and what one
 * could try. */
#ifndef KS_AUDIT_ANSWER_H
#define KS_AUDIT_ANSWER_H

#include "audit/audit.h"
#include "audit/measured.h"

/* Adds three paragraphs: how the critic stands among `measured`, by counts; the layer that its
 * curvature comes from; what limits the statement. Then a section of what one could try, with the
 * evidence from `trained`, critics at the end of their training. */
void ks_audit_answer(const struct ks_audit *audit, const struct ks_measured *measured,
                     const struct ks_measured *trained, struct ks_document *document);
/* Adds the table of the critics that were measured, with this one at its place. KS_MEMORY. */
ks_status ks_audit_place(const struct ks_audit *audit, const struct ks_measured *measured,
                         struct ks_document *document);

#endif
