/* The page of an audit: plots/audit.html, a template, with the style and script of the report. */
#ifndef KS_AUDIT_PAGE_H
#define KS_AUDIT_PAGE_H

#include <stddef.h>

#include "audit/document.h"
#include "core/error.h"

/* Writes one self-contained page with n documents. KS_MISSING without the template; KS_IO,
 * KS_FULL, KS_FORMAT. */
ks_status ks_audit_page(const char *path, size_t n, const struct ks_document *documents);

#endif
