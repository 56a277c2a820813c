#include "audit/document.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/say.h"
#include "inspect/lines.h"

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
