#include "audit/page.h"

#include <stdlib.h>

#include "core/memory.h"
#include "io/text.h"
#include "report/template.h"
#include "study/locate.h"

struct page {
    size_t n;
    const struct ks_document *document;
    char *scripts; /* the folder of the template; owned */
};

static ks_status print_file(const struct page *page, const char *name, FILE *out)
{
    char *path = NULL, *text = NULL;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/%s", page->scripts, name));
    status = ks_text_read(path, &text, NULL);
    if (status == KS_OK)
        fputs(text, out);
    free(path);
    free(text);
    return status;
}

static ks_status part_style(void *data, const char *argument, FILE *out)
{
    (void)argument;
    return print_file(data, "report.css", out);
}

static ks_status part_script(void *data, const char *argument, FILE *out)
{
    (void)argument;
    return print_file(data, "report.js", out);
}

static ks_status part_version(void *data, const char *argument, FILE *out)
{
    (void)data;
    (void)argument;
    fputs(KS_VERSION, out);
    return KS_OK;
}

static ks_status part_audits(void *data, const char *argument, FILE *out)
{
    const struct page *page = data;

    (void)argument;
    for (size_t i = 0; i < page->n; i++) {
        char id[32];

        snprintf(id, sizeof id, "critic-%zu", i + 1);
        KS_TRY(ks_document_html(&page->document[i], id, out));
    }
    return KS_OK;
}

static const struct ks_template_part parts[] = {{"style", part_style, NULL},
                                                {"script", part_script, NULL},
                                                {"version", part_version, NULL},
                                                {"audits", part_audits, NULL},
                                                {NULL, NULL, NULL}};

ks_status ks_audit_page(const char *path, size_t n, const struct ks_document *documents)
{
    struct page page = {.n = n, .document = documents};
    struct ks_text text = {0};
    char *template = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_locate_shared("plots", &page.scripts));
    KS_GO(ks_print_string(&template, "%s/audit.html", page.scripts));
    status = ks_text_open(path, &text);
    if (status == KS_OK)
        status = ks_template_print(template, parts, &page, text.stream);
    status = ks_text_close(&text, status);
done:
    free(template);
    free(page.scripts);
    return status;
}
