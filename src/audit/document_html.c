#include <stdlib.h>
#include <string.h>

#include "audit/document.h"
#include "io/text.h"
#include "report/html.h"

/* From <svg> on: a page has no XML declaration in its middle. */
static ks_status print_plot(const char *path, FILE *out)
{
    char *text = NULL, *start;
    ks_status status = KS_OK;

    KS_TRY(ks_text_read(path, &text, NULL));
    start = strstr(text, "<svg");
    if (start)
        fprintf(out, "<figure><div class=\"plot\" role=\"img\" tabindex=\"0\">%s</div></figure>\n",
                start);
    else
        status = ks_fail(KS_FORMAT, "%s: expected an <svg> element, found none", path);
    free(text);
    return status;
}

/* The cells of a row, all as texts: most of them are intervals. */
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

/* What ends between two blocks: a list, a table. */
static void end(const struct ks_block *b, const struct ks_block *next, FILE *out)
{
    const bool row = b->kind == KS_BLOCK_TABLE || b->kind == KS_BLOCK_ROW ||
                     b->kind == KS_BLOCK_SHADED;
    const bool more = next && (next->kind == KS_BLOCK_ROW || next->kind == KS_BLOCK_SHADED);

    if (row && !more)
        fputs("</tbody>\n</table>\n</div>\n", out);
    if (b->kind == KS_BLOCK_ITEM && !(next && next->kind == KS_BLOCK_ITEM))
        fputs("</ul>\n", out);
}

static ks_status print_block(const struct ks_block *b, bool first_item, FILE *out)
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
        return print_plot(b->text, out);
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
        KS_TRY(print_block(b, i == 0 || b[-1].kind != KS_BLOCK_ITEM, out));
        end(b, i + 1 < d->n ? b + 1 : NULL, out);
    }
    if (sections > 0)
        fputs("</section>\n", out);
    return KS_OK;
}
