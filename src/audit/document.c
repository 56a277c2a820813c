#include "audit/document.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/say.h"

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

/* Prints text in lines of at most `width`; `first` stands before the first one, blanks before the
 * others. */
static void print_wrapped(const char *first, const char *text, size_t width, FILE *out)
{
    char escaped[LONGEST];
    const char *next = ks_escape(text, sizeof escaped, escaped);
    const size_t indent = strlen(first), room = width - indent;

    for (bool more = false; *(next += strspn(next, " ")); more = true) {
        size_t length = strlen(next);

        if (length > room) {
            for (length = room; length > 0 && next[length] != ' '; length--)
                ;
            if (length == 0)
                length = room;
        }
        fprintf(out, "%*s%.*s\n", (int)indent, more ? "" : first, (int)length, next);
        next += length;
    }
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

void ks_document_print(const struct ks_document *d, size_t width, FILE *out)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct ks_block *b = &d->block[i];
        size_t rows = 0;

        while (i + rows < d->n && is_row(b[rows].kind) &&
               (rows == 0 || b[rows].kind != KS_BLOCK_TABLE))
            rows++;
        if (rows > 0) {
            print_table(b, rows, out);
            i += rows - 1;
        } else if (b->kind == KS_BLOCK_SECTION) {
            print_wrapped("\n", b->text, width, out);
        } else if (b->kind != KS_BLOCK_PLOT) {
            print_wrapped(b->kind == KS_BLOCK_ITEM ? "  - " : "  ", b->text, width, out);
        }
    }
}
