#include "audit/document.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/memory.h"
#include "core/path.h"
#include "core/say.h"
#include "inspect/lines.h"
#include "io/text.h"
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
    switch (b->kind) {
    case KS_BLOCK_SECTION:
        fputc('\n', out);
        ks_wrapped_print(out, "", b->text, width);
        break;
    case KS_BLOCK_ITEM:
        ks_wrapped_print(out, "  - ", b->text, width);
        break;
    case KS_BLOCK_PLOT:
        ks_wrapped_print(out, "  Plot: ", b->text, width);
        break;
    default:
        ks_wrapped_print(out, "  ", b->text, width);
    }
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

/* Prints SVG with `id`- in front of every name of an element and every reference to one: the plots
 * of all critics have the same names, and they stand in one page. */
static void print_svg(const char *svg, const char *id, FILE *out)
{
    static const char *const before[] = {" id=\"", " id='", "url(#", "href=\"#", "href='#"};

    for (; *svg; svg++) {
        putc(*svg, out);
        for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
            const size_t length = strlen(before[k]);

            if (strncmp(svg, before[k], length) == 0) {
                fprintf(out, "%s%s-", before[k] + 1, id);
                svg += length - 1;
                break;
            }
        }
    }
}

/* From <svg> on: a page has no XML declaration in its middle. */
static ks_status print_plot(const char *path, const char *id, FILE *out)
{
    char *text = NULL, *start;
    ks_status status = KS_OK;

    KS_TRY(ks_text_read(path, &text, NULL));
    start = strstr(text, "<svg");
    if (start) {
        fputs("<figure><div class=\"plot\" role=\"img\" tabindex=\"0\">", out);
        print_svg(start, id, out);
        fputs("</div></figure>\n", out);
    } else {
        status = ks_fail(KS_FORMAT, "%s: expected an <svg> element, found none", path);
    }
    free(text);
    return status;
}

/* The cells of a row. All are marked as text, because most of them are intervals. */
static void print_cells(const char *row, const char *tag, FILE *out)
{
    char cell[1024];

    for (;;) {
        size_t length = strcspn(row, KS_CELL);

        snprintf(cell, sizeof cell, "%.*s", (int)length, row);
        fprintf(out, "<%s class=\"text\">", tag);
        ks_html_text(out, cell);
        fprintf(out, "</%s>", tag);
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

static void print_text(const char *before, const char *text, const char *after, FILE *out)
{
    fputs(before, out);
    ks_html_text(out, text);
    fputs(after, out);
}

/* Closes the table or the list that ends with block b. `next`: the block after it, or NULL. */
static void close_block(const struct ks_block *b, const struct ks_block *next, FILE *out)
{
    const bool row = b->kind == KS_BLOCK_TABLE || b->kind == KS_BLOCK_ROW ||
                     b->kind == KS_BLOCK_SHADED;
    const bool more = next && (next->kind == KS_BLOCK_ROW || next->kind == KS_BLOCK_SHADED);

    if (row && !more)
        fputs("</tbody>\n</table>\n</div>\n", out);
    if (b->kind == KS_BLOCK_ITEM && !(next && next->kind == KS_BLOCK_ITEM))
        fputs("</ul>\n", out);
}

static ks_status print_element(const struct ks_block *b, bool first_item, const char *id, FILE *out)
{
    switch (b->kind) {
    case KS_BLOCK_SECTION:
        print_text("<h2>", b->text, "</h2>\n", out);
        break;
    case KS_BLOCK_TEXT:
        print_text("<p>", b->text, "</p>\n", out);
        break;
    case KS_BLOCK_NOTE:
        print_text("<p class=\"note\">", b->text, "</p>\n", out);
        break;
    case KS_BLOCK_ITEM:
        print_text(first_item ? "<ul>\n<li>" : "<li>", b->text, "</li>\n", out);
        break;
    case KS_BLOCK_PLOT:
        return print_plot(b->text, id, out);
    default:
        print_row(b, out);
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
        KS_TRY(print_html(&page->document[i], id, out));
    }
    return KS_OK;
}

static const struct ks_template_part parts[] = {
    {"version", part_version, NULL}, {"audits", part_audits, NULL}, {NULL, NULL, NULL}};

ks_status ks_document_page(const char *path, size_t n, const struct ks_document *documents)
{
    struct page page = {n, documents};
    char *folder = NULL, *template = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_installed_shared("plots", &folder));
    KS_GO(ks_print_string(&template, "%s/audit.html", folder));
    status = ks_template_write(template, parts, &page, path);
done:
    free(folder);
    free(template);
    return status;
}
