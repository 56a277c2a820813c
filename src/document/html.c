#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "document/document.h"
#include "io/file.h"

/* --- text and drawings --- */

static const char *reference(unsigned char c)
{
    static const char special[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    const char *at = c ? strchr(special, c) : NULL;

    return at                                                  ? names[at - special]
           : (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f ? "&#xFFFD;"
                                                               : NULL;
}

static void print_text(FILE *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *escaped = reference((unsigned char)text[i]);

        if (escaped)
            fputs(escaped, out);
        else
            putc(text[i], out);
    }
}

/* Prints a text between two pieces of HTML. */
static void print_between(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    print_text(out, text, strlen(text));
    fputs(after, out);
}

/* Prints a text with its marks as tags. */
static void print_marked(const char *text, FILE *out)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, KS_MARKS);
        print_text(out, text, n);
        if (text[n])
            fputs(ks_document_tags[text[n++] - KS_MARK], out);
    }
}

/* Prints an SVG file from its <svg> on, as a page has no XML declaration in its middle. In front of
 * every name of an element, and every reference to one, stands `id`-, so that several drawings can
 * stand in one page. */
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

/* --- documents --- */

/* The value by which a script sorts the column. */
static void print_key(double key, FILE *out)
{
    if (isinf(key))
        fprintf(out, " data-value=\"%sInfinity\"", key < 0 ? "-" : "");
    else if (!isnan(key))
        fprintf(out, " data-value=\"%.10g\"", key);
}

/* Each line of small print in an element of its own. */
static void print_note(const char *note, const char *element, FILE *out)
{
    for (size_t length; *note; note += length + (note[length] == '\n')) {
        length = strcspn(note, "\n");
        fprintf(out, "<%s>", element);
        print_text(out, note, length);
        fprintf(out, "</%.*s>", (int)strcspn(element, " "), element);
    }
}

static void print_cell(const struct ks_cell *cell, enum ks_block_kind kind, FILE *out)
{
    static const char *const classes[] = {[KS_CELL_TEXT] = " class=\"text\"",
                                          [KS_CELL_NAME] = " class=\"name\"",
                                          [KS_CELL_YES] = " class=\"text yes\"",
                                          [KS_CELL_NO] = " class=\"text no\"",
                                          [KS_CELL_NONE] = " class=\"none\""};
    const bool heading = kind == KS_BLOCK_TABLE || kind == KS_BLOCK_HEADS,
               line = kind == KS_BLOCK_HEADS || kind == KS_BLOCK_OPENS;
    const char *tag = line ? "span" : heading ? "th" : "td";

    fprintf(out, "<%s", tag);
    if (cell->look != KS_CELL_NUMBER && !(heading && cell->look == KS_CELL_NAME))
        fputs(classes[cell->look], out);
    else if (!heading)
        print_key(cell->key, out);
    if (cell->link)
        print_between(out, line ? " data-by=\"" : "><a href=\"", cell->link, "\"");
    putc('>', out);
    print_between(out, "", cell->text, cell->link && !line ? "</a>" : "");
    if (cell->note)
        print_note(cell->note, heading ? "span class=\"kind\"" : "small", out);
    fprintf(out, "</%s>", tag);
}

static void print_cells(const struct ks_block *b, FILE *out)
{
    for (size_t k = 0; k < b->n; k++)
        if (b->cell[k].look != KS_CELL_FILTER)
            print_cell(&b->cell[k], b->kind, out);
}

static void print_row(const struct ks_block *b, FILE *out)
{
    fputs("<tr", out);
    for (size_t k = 0; k < b->n; k++)
        if (b->cell[k].look == KS_CELL_FILTER) {
            print_between(out, " data-", b->cell[k].link, "=\"");
            print_between(out, "", b->cell[k].text, "\"");
        }
    putc('>', out);
    print_cells(b, out);
    fputs("</tr>\n", out);
}

static void print_headings(const struct ks_block *b, FILE *out)
{
    fputs("<div class=\"scroll\" tabindex=\"0\">\n<table", out);
    if (*b->text)
        print_between(out, " class=\"sortable\" id=\"", b->text, "\"");
    fputs(">\n<thead>\n<tr>", out);
    print_cells(b, out);
    fputs("</tr>\n</thead>\n<tbody>\n", out);
}

static ks_status print_figure(const struct ks_block *b, const char *id, FILE *out)
{
    const struct ks_cell *about = b->n > 0 ? b->cell : NULL;
    KS_OWNED char *text = NULL;
    const char *svg;

    if (about && !*b->text) {
        print_between(out, "<p class=\"note\" id=\"", about->link, "\">");
        print_between(out, "", about->note, ": ");
        print_between(out, "", about->text, "</p>\n");
        return KS_OK;
    }
    KS_TRY(ks_text_read(b->text, &text, NULL));
    svg = strstr(text, "<svg");
    if (!svg)
        return ks_fail(KS_FORMAT, "%s: expected an <svg> element, found none", b->text);
    print_between(out, "<figure id=\"", about ? about->link : id, "\">\n");
    if (about)
        print_between(out, "<h3>", about->note, "</h3>\n");
    fputs("<div class=\"plot\" role=\"img\"", out);
    if (about)
        print_between(out, " aria-label=\"", about->note, "\"");
    fputs(" tabindex=\"0\">", out);
    print_svg(svg, id, out);
    fputs("</div>\n", out);
    if (about) {
        fputs("<figcaption>", out);
        print_marked(about->text, out);
        fputs("</figcaption>\n", out);
    }
    fputs("</figure>\n", out);
    return KS_OK;
}

/* In front of a list of such blocks and behind it; of a block, and behind its text. */
static const struct {
    const char *open, *close, *before, *after, *end;
} tags[] = {[KS_BLOCK_SECTION] = {"", "", "<h2>", "", "</h2>\n"},
            [KS_BLOCK_SUBSECTION] = {"", "", "<h3>", "", "</h3>\n"},
            [KS_BLOCK_TEXT] = {"", "", "<p>", "", "</p>\n"},
            [KS_BLOCK_WORDS] = {"", "", "", "", ""},
            [KS_BLOCK_NOTE] = {"", "", "<p class=\"note\">", "", "</p>\n"},
            [KS_BLOCK_ITEM] = {"<ul>\n", "</ul>\n", "<li>", "", "</li>\n"},
            [KS_BLOCK_LINE] = {"<dl>\n", "</dl>\n", "<dt>", "</dt>\n<dd>", "</dd>\n"},
            [KS_BLOCK_HEADS] = {"", "", "<p class=\"heads\" aria-hidden=\"true\"><span>", "</span>",
                                "</p>\n"},
            [KS_BLOCK_OPENS] = {"", "",
                                "<details class=\"line\">\n<summary><span class=\"sentence\">",
                                "</span>", "</summary>\n"}};

static void print_paragraph(const struct ks_block *b, bool first, bool last, FILE *out)
{
    fputs(first ? tags[b->kind].open : "", out);
    fputs(tags[b->kind].before, out);
    print_marked(b->text, out);
    fputs(tags[b->kind].after, out);
    if (b->kind == KS_BLOCK_LINE)
        print_marked(b->cell[0].text, out);
    else
        print_cells(b, out);
    fputs(tags[b->kind].end, out);
    fputs(last ? tags[b->kind].close : "", out);
}

/* `before`, `next`: the blocks beside it, or NULL. */
static ks_status print_block(const struct ks_block *b, const struct ks_block *before,
                             const struct ks_block *next, const char *id, FILE *out)
{
    if (b->kind == KS_BLOCK_FIGURE)
        return print_figure(b, id, out);
    if (b->kind == KS_BLOCK_TABLE)
        print_headings(b, out);
    else if (b->kind == KS_BLOCK_ROW)
        print_row(b, out);
    else
        print_paragraph(b, !before || before->kind != b->kind, !next || next->kind != b->kind, out);
    if ((b->kind == KS_BLOCK_TABLE || b->kind == KS_BLOCK_ROW) &&
        !(next && next->kind == KS_BLOCK_ROW))
        fputs("</tbody>\n</table>\n</div>\n", out);
    return KS_OK;
}

ks_status ks_document_html(const struct ks_document *d, const char *id, FILE *out)
{
    size_t sections = 0;
    bool opened = false; /* by a KS_BLOCK_OPENS */

    KS_TRY(d->status);
    for (size_t i = 0; i < d->n; i++) {
        const struct ks_block *b = &d->block[i];
        char own[64]; /* what the ids of a figure start with */

        if (b->kind <= KS_BLOCK_SUBSECTION || b->kind == KS_BLOCK_OPENS) {
            fputs(opened ? "</details>\n" : "", out);
            opened = b->kind == KS_BLOCK_OPENS;
        }
        if (b->kind == KS_BLOCK_SECTION) {
            fputs(sections > 0 ? "</section>\n" : "", out);
            fprintf(out, "<section id=\"%s-%zu\">\n", id, ++sections);
        }
        snprintf(own, sizeof own, "%s-%zu-%zu", id, sections, i);
        KS_TRY(print_block(b, i > 0 ? b - 1 : NULL, i + 1 < d->n ? b + 1 : NULL, own, out));
    }
    fputs(opened ? "</details>\n" : "", out);
    fputs(sections > 0 ? "</section>\n" : "", out);
    return KS_OK;
}
