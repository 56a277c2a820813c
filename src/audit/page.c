/* The page of an audit: a template, with the style and script of the report. */
#include <stdlib.h>

#include "audit/audit.h"
#include "config.h"
#include "core/memory.h"
#include "core/process.h"
#include "document/template.h"

struct page {
    size_t n;
    const struct ks_document *document;
};

static ks_status print_version(void *data, FILE *out)
{
    (void)data;
    fputs(KS_VERSION, out);
    return KS_OK;
}

static ks_status print_audits(void *data, FILE *out)
{
    const struct page *page = data;

    for (size_t i = 0; i < page->n; i++) {
        char id[32];

        snprintf(id, sizeof id, "critic-%zu", i + 1);
        KS_TRY(ks_document_html(&page->document[i], id, out));
    }
    return KS_OK;
}

static const struct ks_template_section sections[] = {
    {"version", .print = print_version},
    {"audits", .print = print_audits},
    {.name = NULL},
};

ks_status ks_audit_page(const char *path, size_t n, const struct ks_document *documents)
{
    struct page page = {n, documents};
    KS_OWNED char *folder = NULL, *template = NULL;

    KS_TRY(ks_installed_shared("plots", &folder));
    KS_TRY(ks_print_string(&template, "%s/audit.html", folder));
    return ks_template_write(template, sections, &page, path);
}
