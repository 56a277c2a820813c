#include "audit/document.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/memory.h"
#include "core/process.h"
#include "inspect/inspect.h"
#include "report/template.h"

enum { CELLS = 16, LONGEST = 8192 };

void ks_document_add(struct ks_document *d, enum ks_block_kind kind, const char *format, ...)
{
    char text[LONGEST];
    struct ks_block block = {kind, NULL};
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (d->status == KS_OK)
        d->status = ks_grow(d->n, sizeof *d->block, &d->room, &d->block);
    if (d->status == KS_OK)
        d->status = ks_copy_string(text, &block.text);
    if (d->status == KS_OK)
        d->block[d->n++] = block;
}

void ks_document_clear(struct ks_document *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->block[i].text);
    free(d->block);
    *d = (struct ks_document){.n = 0};
}

/* --- on a terminal --- */

static bool is_row(enum ks_block_kind kind)
{
    return kind == KS_BLOCK_TABLE || kind == KS_BLOCK_ROW || kind == KS_BLOCK_SHADED;
}

/* Splits a row into cells; returns their number. `text` receives the escaped cells. */
static size_t split(const char *row, char text[LONGEST], char *cell[CELLS])
{
    size_t n = 0, used = 0;

    while (n < CELLS && used < LONGEST - 1) {
        size_t length = strcspn(row, KS_CELL);
        char one[1024];

        snprintf(one, sizeof one, "%.*s", (int)length, row);
        cell[n++] = ks_escape(one, LONGEST - used, text + used);
        used += strlen(text + used) + 1;
        if (!row[length])
            break;
        row += length + 1;
    }
    return n;
}

static void print_table(const struct ks_block *block, size_t n, FILE *out)
{
    size_t width[CELLS] = {0};
    char text[LONGEST], *cell[CELLS];

    for (size_t i = 0; i < n; i++)
        for (size_t k = split(block[i].text, text, cell); k-- > 0;)
            width[k] = strlen(cell[k]) > width[k] ? strlen(cell[k]) : width[k];
    for (size_t i = 0; i < n; i++) {
        const size_t cells = split(block[i].text, text, cell);

        fputs(block[i].kind == KS_BLOCK_SHADED ? " (" : "  ", out);
        for (size_t k = 0; k + 1 < cells; k++)
            fprintf(out, "%-*s  ", (int)width[k], cell[k]);
        fputs(cell[cells - 1], out);
        fputs(block[i].kind == KS_BLOCK_SHADED ? ")\n" : "\n", out);
    }
}

static void print_block(const struct ks_block *b, size_t width, FILE *out)
{
    static const char *const first[] = {[KS_BLOCK_SECTION] = "",
                                        [KS_BLOCK_TEXT] = "  ",
                                        [KS_BLOCK_NOTE] = "  ",
                                        [KS_BLOCK_ITEM] = "  - ",
                                        [KS_BLOCK_PLOT] = "  Plot: "};

    fputs(b->kind == KS_BLOCK_SECTION ? "\n" : "", out);
    ks_wrapped_print(out, first[b->kind], b->text, width);
}

/* The number of rows of the table that starts at `at`; 0 if none does. */
static size_t count_rows(const struct ks_document *d, size_t at)
{
    size_t n = 0;

    while (at + n < d->n && is_row(d->block[at + n].kind) &&
           (n == 0 || d->block[at + n].kind != KS_BLOCK_TABLE))
        n++;
    return n;
}

void ks_document_print(const struct ks_document *d, size_t width, FILE *out)
{
    for (size_t i = 0; i < d->n;) {
        const size_t rows = count_rows(d, i);

        if (rows > 0)
            print_table(&d->block[i], rows, out);
        else
            print_block(&d->block[i], width, out);
        i += rows > 0 ? rows : 1;
    }
}

/* --- as HTML --- */

/* The cells of a row. All are marked as text, because most of them are intervals. */
static void print_cells(const char *row, const char *tag, FILE *out)
{
    char cell[1024];

    for (;;) {
        size_t length = strcspn(row, KS_CELL);

        snprintf(cell, sizeof cell, "%.*s", (int)length, row);
        fprintf(out, "<%s class=\"text\"", tag);
        ks_html_between(out, ">", cell, "</");
        fprintf(out, "%s>", tag);
        if (!row[length])
            break;
        row += length + 1;
    }
}

static void print_row(const struct ks_block *b, FILE *out)
{
    if (b->kind == KS_BLOCK_TABLE)
        fputs("<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead>\n<tr>", out);
    else
        fputs(b->kind == KS_BLOCK_SHADED ? "<tr class=\"other\">" : "<tr>", out);
    print_cells(b->text, b->kind == KS_BLOCK_TABLE ? "th" : "td", out);
    fputs(b->kind == KS_BLOCK_TABLE ? "</tr>\n</thead>\n<tbody>\n" : "</tr>\n", out);
}

/* Closes the table or the list that ends with block b. `next`: the block after it, or NULL. */
static void close_block(const struct ks_block *b, const struct ks_block *next, FILE *out)
{
    if (is_row(b->kind) && !(next && next->kind != KS_BLOCK_TABLE && is_row(next->kind)))
        fputs("</tbody>\n</table>\n</div>\n", out);
    if (b->kind == KS_BLOCK_ITEM && !(next && next->kind == KS_BLOCK_ITEM))
        fputs("</ul>\n", out);
}

static ks_status print_element(const struct ks_block *b, bool first_item, const char *id, FILE *out)
{
    static const struct {
        const char *before, *after;
    } tags[] = {[KS_BLOCK_SECTION] = {"<h2>", "</h2>\n"},
                [KS_BLOCK_TEXT] = {"<p>", "</p>\n"},
                [KS_BLOCK_NOTE] = {"<p class=\"note\">", "</p>\n"},
                [KS_BLOCK_ITEM] = {"<li>", "</li>\n"}};

    if (is_row(b->kind)) {
        print_row(b, out);
    } else if (b->kind == KS_BLOCK_PLOT) {
        fputs("<figure><div class=\"plot\" role=\"img\" tabindex=\"0\">", out);
        KS_TRY(ks_html_svg(out, b->text, id));
        fputs("</div></figure>\n", out);
    } else {
        fputs(b->kind == KS_BLOCK_ITEM && first_item ? "<ul>\n" : "", out);
        ks_html_between(out, tags[b->kind].before, b->text, tags[b->kind].after);
    }
    return KS_OK;
}

/* All ids in it start with `id`, so that a page can have several documents. */
static ks_status print_html(const struct ks_document *d, const char *id, FILE *out)
{
    size_t sections = 0;

    for (size_t i = 0; i < d->n; i++) {
        const struct ks_block *b = &d->block[i];

        if (b->kind == KS_BLOCK_SECTION) {
            fputs(sections > 0 ? "</section>\n" : "", out);
            fprintf(out, "<section id=\"%s-%zu\">\n", id, ++sections);
        }
        KS_TRY(print_element(b, i == 0 || b[-1].kind != KS_BLOCK_ITEM, id, out));
        close_block(b, i + 1 < d->n ? b + 1 : NULL, out);
    }
    if (sections > 0)
        fputs("</section>\n", out);
    return KS_OK;
}

/* --- a page, from plots/audit.html: a template, with the style and script of the report --- */

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
        KS_TRY(print_html(&page->document[i], id, out));
    }
    return KS_OK;
}

static const struct ks_template_section sections[] = {
    {"version", print_version, NULL, NULL},
    {"audits", print_audits, NULL, NULL},
    {NULL, NULL, NULL, NULL},
};

ks_status ks_document_page(const char *path, size_t n, const struct ks_document *documents)
{
    struct page page = {n, documents};
    char *folder = NULL, *template = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_installed_shared("plots", &folder));
    KS_GO(ks_print_string(&template, "%s/audit.html", folder));
    status = ks_template_write(template, sections, &page, path);
done:
    free(folder);
    free(template);
    return status;
}
