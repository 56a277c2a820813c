/* --fail-if: a limit on a statistic, for continuous integration. */
#ifndef KS_AUDIT_LIMIT_H
#define KS_AUDIT_LIMIT_H

#include <stdbool.h>

#include "audit/document.h"
#include "core/error.h"
#include "io/attribute.h"
#include "io/spectrum.h"

struct ks_limit {
    char name[KS_ATTRIBUTE_NAME];
    bool above, equal; /* > or >=, else < or <=; equality is included */
    double value;
    bool upper; /* the statistic bounds its number from above, else from below */
};

/* Parses "NAME OP NUMBER", OP one of > >= < <=, with or without blanks. KS_USAGE if it is malformed
 * or NAME is not a bound: a point estimate depends on the start vector. */
ks_status ks_limit_read(const char *expression, struct ks_limit *limit);

/* *met: whether the limit is met. Adds a sentence that says what that shows. An upper bound that is
 * not resolved counts as infinite, a lower bound as minus infinity. KS_USAGE, with `path` in the
 * message, if the spectrum does not have the statistic or lacks the learning rate for it. */
ks_status ks_limit_judge(const struct ks_limit *limit, const char *path,
                         const struct ks_spectrum *spectrum, bool *met,
                         struct ks_document *document);

#endif
