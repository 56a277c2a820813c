/* --fail-if: a limit on a statistic, for continuous integration. */
#ifndef KS_AUDIT_GATE_H
#define KS_AUDIT_GATE_H

#include <stdbool.h>

#include "audit/document.h"
#include "core/error.h"
#include "io/attribute.h"
#include "io/spectrum.h"

struct ks_gate {
    char name[KS_ATTRIBUTE_NAME];
    bool above, equal; /* > or >=, else < or <=; equality is included */
    double limit;
    bool upper; /* the statistic bounds its number from above, else from below */
};

/* Parses "NAME OP NUMBER", OP one of > >= < <=, with or without blanks. KS_USAGE if it is malformed
 * or the statistic is no bound: a point estimate depends on the start vector. */
ks_status ks_gate_read(const char *expression, struct ks_gate *gate);

/* Whether the limit is met, and a sentence on what that shows. An upper bound that is not resolved
 * counts as infinite, a lower bound as no bound at all. KS_USAGE if the spectrum does not have the
 * statistic. */
ks_status ks_gate_judge(const struct ks_gate *gate, const struct ks_spectrum *spectrum, bool *met,
                        struct ks_document *document);

#endif
