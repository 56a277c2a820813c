/* The page of an audit: a template, with the style and script of the report. */
#include <stdlib.h>

#include "audit/audit.h"
#include "config.h"
#include "core/memory.h"
#include "core/process.h"
#include "document/template.h"

static void add_version(void *data, struct ks_document *d)
{
    (void)data;
    ks_document_add(d, KS_BLOCK_WORDS, "%s", KS_VERSION);
}

ks_status ks_audit_page(const char *path, size_t n, const struct ks_document *documents)
{
    const struct ks_template_section sections[] = {
        {"version", .add = add_version},
        {"critic", .n = n, .documents = documents},
        {.name = NULL},
    };
    KS_OWNED char *folder = NULL, *template = NULL;

    KS_TRY(ks_installed_shared("plots", &folder));
    KS_TRY(ks_print_string(&template, "%s/audit.html", folder));
    return ks_template_write(template, sections, NULL, path);
}
