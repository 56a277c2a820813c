/* Documents on a terminal. */
#include <stdbool.h>
#include <string.h>

#include "document/document.h"

enum { CELLS = 32, NAME = 20, LONGEST = 8192 };

static bool is_row(const struct ks_block *b)
{
    return b->kind == KS_BLOCK_TABLE || b->kind == KS_BLOCK_ROW || b->kind == KS_BLOCK_SHADED;
}

/* --- tables --- */

/* What is shown of a cell: its text and, in parentheses, its small print. */
static const char *shown(const struct ks_cell *cell, char text[LONGEST])
{
    char both[LONGEST];

    if (!cell->note)
        return ks_escape(cell->text, LONGEST, text);
    snprintf(both, sizeof both, "%s (%s)", cell->text, cell->note);
    return ks_escape(both, LONGEST, text);
}

/* Filters are the last cells of a row. */
static size_t count_shown(const struct ks_block *b)
{
    size_t n = b->n < CELLS ? b->n : CELLS;

    while (n > 0 && b->cell[n - 1].look == KS_CELL_FILTER)
        n--;
    return n;
}

/* The widths that the rows first..last need. */
static void find_widths(const struct ks_document *d, size_t first, size_t last, size_t width[CELLS])
{
    char text[LONGEST];

    for (size_t i = first; i <= last; i++)
        for (size_t k = 0; k < count_shown(&d->block[i]); k++) {
            const struct ks_cell *cell = &d->block[i].cell[k];
            const size_t length = strlen(shown(cell, text));

            width[k] = cell->width > width[k] ? cell->width : width[k];
            width[k] = length > width[k] ? length : width[k];
        }
}

/* Cells stand below the headings, to the side on which those stand. */
static void print_row(const struct ks_block *b, const struct ks_block *headings,
                      const size_t width[CELLS], FILE *out)
{
    const bool shaded = b->kind == KS_BLOCK_SHADED;
    const size_t n = count_shown(b);
    char text[LONGEST];

    fputs(shaded ? " (" : "  ", out);
    for (size_t k = 0; k < n; k++) {
        const bool right = k < headings->n && headings->cell[k].look == KS_CELL_NUMBER;
        const int room = right ? (int)width[k] : k + 1 < n ? -(int)width[k] : 0;

        fprintf(out, "%s%*s", k > 0 ? "  " : "", room, shown(&b->cell[k], text));
    }
    fputs(shaded ? ")\n" : "\n", out);
}

/* Prints the rows from `at` on, of a table that may have started before; returns the block behind
 * them. */
static size_t print_rows(const struct ks_document *d, size_t at, FILE *out)
{
    size_t width[CELLS] = {0}, start = at, end = at + 1;

    while (d->block[start].kind != KS_BLOCK_TABLE && start > 0)
        start--;
    while (end < d->n && is_row(&d->block[end]) && d->block[end].kind != KS_BLOCK_TABLE)
        end++;
    find_widths(d, start, end - 1, width);
    for (; at < end; at++)
        print_row(&d->block[at], &d->block[start], width, out);
    return end;
}

/* --- lines and paragraphs --- */

static void print_line(const struct ks_block *b, FILE *out)
{
    char name[LONGEST], value[LONGEST];

    fprintf(out, "  %-*s %s\n", NAME, ks_escape(b->text, sizeof name, name),
            shown(&b->cell[0], value));
}

static bool continues_character(char byte) /* in UTF-8 */
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* How many bytes of the text fill a line. A longer word is cut between two characters. */
static size_t line_length(const char *text, size_t room)
{
    size_t length = strlen(text);

    if (length <= room)
        return length;
    for (length = room; length > 0 && text[length] != ' '; length--)
        ;
    if (length > 0)
        return length;
    for (length = room; length > 1 && continues_character(text[length]); length--)
        ;
    return length;
}

/* `first` stands in front of the first line, blanks of its width in front of the others. */
static void print_wrapped(const char *first, const char *text, size_t width, FILE *out)
{
    char escaped[LONGEST];
    const char *next = ks_escape(text, sizeof escaped, escaped);
    const size_t indent = strlen(first);

    for (bool more = false; *(next += strspn(next, " ")); more = true) {
        const size_t length = line_length(next, width - indent);

        fprintf(out, "%*s%.*s\n", (int)indent, more ? "" : first, (int)length, next);
        next += length;
    }
}

static void print_paragraph(const struct ks_block *b, size_t width, FILE *out)
{
    static const char *const first[] = {[KS_BLOCK_SECTION] = "",
                                        [KS_BLOCK_TEXT] = "  ",
                                        [KS_BLOCK_NOTE] = "  ",
                                        [KS_BLOCK_ITEM] = "  - ",
                                        [KS_BLOCK_FIGURE] = "  Plot: "};

    fputs(b->kind == KS_BLOCK_SECTION ? "\n" : "", out);
    print_wrapped(first[b->kind], b->text, width, out);
}

ks_status ks_document_print(struct ks_document *d, size_t width, FILE *out)
{
    KS_TRY(d->status);
    while (d->printed < d->n) {
        const struct ks_block *b = &d->block[d->printed];

        if (is_row(b)) {
            d->printed = print_rows(d, d->printed, out);
            continue;
        }
        if (b->kind == KS_BLOCK_LINE)
            print_line(b, out);
        else
            print_paragraph(b, width, out);
        d->printed++;
    }
    return KS_OK;
}
