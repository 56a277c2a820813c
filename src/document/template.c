#include "document/template.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/file.h"

struct reading {
    const char *path; /* of the template */
    const struct ks_template_section *sections;
    void *data;
    FILE *out;
    bool inside, skipping; /* within an `if`; within one whose section is empty */
};

static ks_status find_section(const struct reading *t, const char *name,
                              const struct ks_template_section **section)
{
    for (*section = t->sections; (*section)->name; (*section)++)
        if (strcmp((*section)->name, name) == 0)
            return KS_OK;
    return ks_fail(KS_FORMAT, "%s: '%s': the report has no section of that name", t->path, name);
}

/* Prints a file of the template's folder. */
static ks_status include(const struct reading *t, const char *name)
{
    size_t folder = (size_t)(ks_path_base(t->path) - t->path);
    KS_OWNED char *path = NULL, *text = NULL;

    KS_TRY(ks_print_string(&path, "%.*s%s", (int)folder, t->path, name));
    KS_TRY(ks_text_read(path, &text, NULL));
    fputs(text, t->out);
    return KS_OK;
}

/* Adds the blocks of a section to an empty document. */
static ks_status fill(const struct reading *t, const struct ks_template_section *section,
                      const char *argument, struct ks_document *document)
{
    if (section->add)
        section->add(t->data, document);
    if (section->add_named)
        section->add_named(t->data, argument, document);
    return document->status;
}

static ks_status print_section(const struct reading *t, const struct ks_template_section *section,
                               const char *argument)
{
    KS_CLEARED_BY(ks_document_clear) struct ks_document document = {.n = 0};
    char id[64];

    KS_TRY(fill(t, section, argument, &document));
    for (size_t i = 0; i < section->n; i++) {
        snprintf(id, sizeof id, "%s-%zu", section->name, i + 1);
        KS_TRY(ks_document_html(&section->documents[i], id, t->out));
    }
    return ks_document_html(&document, *argument ? argument : section->name, t->out);
}

/* One mark; `word` is its first word, which `argument` follows. */
static ks_status apply(struct reading *t, const char *word, const char *argument)
{
    KS_CLEARED_BY(ks_document_clear) struct ks_document condition = {.n = 0};
    const struct ks_template_section *section;

    if (strcmp(word, "if") == 0) {
        assert(!t->inside);
        KS_TRY(find_section(t, argument, &section));
        KS_TRY(fill(t, section, "", &condition));
        t->inside = true;
        t->skipping = condition.n == 0;
        return KS_OK;
    }
    if (strcmp(word, "end") == 0) {
        assert(t->inside);
        t->inside = t->skipping = false;
        return KS_OK;
    }
    if (strcmp(word, "include") == 0)
        return t->skipping ? KS_OK : include(t, argument);
    KS_TRY(find_section(t, word, &section));
    return t->skipping ? KS_OK : print_section(t, section, argument);
}

/* Reads the mark at `at` and moves *next behind it. */
static ks_status read_mark(struct reading *t, const char *at, const char **next)
{
    char mark[128], *argument;
    const char *end = strstr(at, "}}");

    assert(end && (size_t)(end - at) < sizeof mark);
    snprintf(mark, sizeof mark, "%.*s", (int)(end - at) - 2, at + 2);
    argument = mark + strcspn(mark, " ");
    if (*argument)
        *argument++ = '\0';
    *next = end + 2;
    return apply(t, mark, argument);
}

ks_status ks_template_print(const char *path, const struct ks_template_section *sections,
                            void *data, FILE *out)
{
    struct reading reading = {path, sections, data, out, false, false};
    KS_OWNED char *text = NULL;
    const char *next;

    KS_TRY(ks_text_read(path, &text, NULL));
    next = text;
    for (const char *at; (at = strstr(next, "{{"));) {
        if (!reading.skipping)
            fwrite(next, 1, (size_t)(at - next), out);
        KS_TRY(read_mark(&reading, at, &next));
    }
    assert(!reading.inside);
    fputs(next, out);
    return KS_OK;
}

ks_status ks_template_write(const char *path, const struct ks_template_section *sections,
                            void *data, const char *to)
{
    struct ks_text text = {0};
    ks_status status = ks_text_open(&text, "%s", to);

    if (status == KS_OK)
        status = ks_template_print(path, sections, data, text.stream);
    return ks_text_close(&text, status);
}
