#include <stdlib.h>
#include <string.h>

#include "audit/document.h"
#include "io/text.h"
#include "report/html.h"

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

static ks_status print_block(const struct ks_block *b, bool first_item, const char *id, FILE *out)
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

ks_status ks_document_html(const struct ks_document *d, const char *id, FILE *out)
{
    size_t sections = 0;

    for (size_t i = 0; i < d->n; i++) {
        const struct ks_block *b = &d->block[i];

        if (b->kind == KS_BLOCK_SECTION) {
            fputs(sections > 0 ? "</section>\n" : "", out);
            fprintf(out, "<section id=\"%s-%zu\">\n", id, ++sections);
        }
        KS_TRY(print_block(b, i == 0 || b[-1].kind != KS_BLOCK_ITEM, id, out));
        close_block(b, i + 1 < d->n ? b + 1 : NULL, out);
    }
    if (sections > 0)
        fputs("</section>\n", out);
    return KS_OK;
}
