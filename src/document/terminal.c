/* Documents on a terminal. */
#include <stdbool.h>
#include <string.h>

#include "core/memory.h"
#include "document/document.h"

enum { CELLS = 32, NAME = 20 };

static bool is_row(const struct ks_block *b)
{
    return b->kind == KS_BLOCK_TABLE || b->kind == KS_BLOCK_ROW;
}

/* What is shown of a text and, in parentheses, of its small print (NULL: none). The caller frees.
 */
static ks_status show(const char *text, const char *note, char **shown)
{
    enum { ESCAPED = 4 }; /* bytes of an escaped byte */
    KS_OWNED char *both = NULL;
    size_t size;

    KS_TRY(note ? ks_print_string(&both, "%s (%s)", text, note) : ks_copy_string(text, &both));
    size = ESCAPED * strlen(both) + 1;
    KS_TRY(ks_alloc(size, 1, shown));
    ks_escape(both, size, *shown);
    return KS_OK;
}

/* Likewise, of a text without its marks and the addresses of its links. */
static ks_status show_marked(const char *text, char **shown)
{
    KS_OWNED char *plain = NULL;
    bool address = false;
    char *to;

    KS_TRY(ks_copy_string(text, &plain));
    to = plain;
    for (; *text; text++)
        if (strchr(KS_MARKS, *text))
            address = *text == KS_MARK_ADDRESS;
        else if (!address)
            *to++ = *text;
    *to = '\0';
    return show(plain, NULL, shown);
}

/* --- tables --- */

/* Filters are the last cells of a row. */
static size_t count_shown(const struct ks_block *b)
{
    size_t n = b->n < CELLS ? b->n : CELLS;

    while (n > 0 && b->cell[n - 1].look == KS_CELL_FILTER)
        n--;
    return n;
}

/* The widths that the rows first..last need. */
static ks_status find_widths(const struct ks_document *d, size_t first, size_t last,
                             size_t width[CELLS])
{
    for (size_t i = first; i <= last; i++)
        for (size_t k = 0; k < count_shown(&d->block[i]); k++) {
            const struct ks_cell *cell = &d->block[i].cell[k];
            KS_OWNED char *text = NULL;
            size_t length;

            KS_TRY(show(cell->text, cell->note, &text));
            length = strlen(text);
            width[k] = cell->width > width[k] ? cell->width : width[k];
            width[k] = length > width[k] ? length : width[k];
        }
    return KS_OK;
}

/* Cells stand below the headings, to the side on which those stand. */
static ks_status print_row(const struct ks_block *b, const struct ks_block *headings,
                           const size_t width[CELLS], FILE *out)
{
    const size_t n = count_shown(b);

    for (size_t k = 0; k < n; k++) {
        const bool right = k < headings->n && headings->cell[k].look == KS_CELL_NUMBER;
        const int room = right ? (int)width[k] : k + 1 < n ? -(int)width[k] : 0;
        KS_OWNED char *text = NULL;

        KS_TRY(show(b->cell[k].text, b->cell[k].note, &text));
        fprintf(out, "  %*s", room, text);
    }
    fputs("\n", out);
    return KS_OK;
}

/* Prints the rows that are next, of a table that may have started before. */
static ks_status print_rows(struct ks_document *d, FILE *out)
{
    size_t width[CELLS] = {0}, start = d->printed, end = d->printed + 1;

    while (d->block[start].kind != KS_BLOCK_TABLE && start > 0)
        start--;
    while (end < d->n && is_row(&d->block[end]) && d->block[end].kind != KS_BLOCK_TABLE)
        end++;
    KS_TRY(find_widths(d, start, end - 1, width));
    for (; d->printed < end; d->printed++)
        KS_TRY(print_row(&d->block[d->printed], &d->block[start], width, out));
    return KS_OK;
}

/* --- lines and paragraphs --- */

static ks_status print_line(const struct ks_block *b, FILE *out)
{
    KS_OWNED char *name = NULL, *value = NULL;

    KS_TRY(show_marked(b->text, &name));
    KS_TRY(show_marked(b->cell[0].text, &value));
    fprintf(out, "  %-*s %s\n", NAME, name, value);
    return KS_OK;
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
static void print_wrapped(const char *first, const char *next, size_t width, FILE *out)
{
    const size_t indent = strlen(first);

    for (bool more = false; *(next += strspn(next, " ")); more = true) {
        const size_t length = line_length(next, width - indent);

        fprintf(out, "%*s%.*s\n", (int)indent, more ? "" : first, (int)length, next);
        next += length;
    }
}

static ks_status print_paragraph(const struct ks_block *b, size_t width, FILE *out)
{
    const bool title = b->kind <= KS_BLOCK_SUBSECTION;
    KS_OWNED char *text = NULL;

    fputs(title ? "\n" : "", out);
    KS_TRY(show_marked(b->text, &text));
    print_wrapped(title                        ? ""
                  : b->kind == KS_BLOCK_ITEM   ? "  - "
                  : b->kind == KS_BLOCK_FIGURE ? "  Plot: "
                                               : "  ",
                  text, width, out);
    return KS_OK;
}

ks_status ks_document_print(struct ks_document *d, size_t width, FILE *out)
{
    KS_TRY(d->status);
    while (d->printed < d->n) {
        const struct ks_block *b = &d->block[d->printed];

        if (is_row(b)) {
            KS_TRY(print_rows(d, out));
            continue;
        }
        KS_TRY(b->kind == KS_BLOCK_LINE ? print_line(b, out) : print_paragraph(b, width, out));
        d->printed++;
    }
    return KS_OK;
}
