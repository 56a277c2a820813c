#include "document/document.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* --- cells --- */

static struct ks_cell new_cell(enum ks_cell_look look, const char *text)
{
    return (struct ks_cell){.look = look, .text = text, .key = NAN};
}

struct ks_cell ks_cell_text(const char *text)
{
    return new_cell(KS_CELL_TEXT, text);
}

struct ks_cell ks_cell_name(const char *text)
{
    return new_cell(KS_CELL_NAME, text);
}

struct ks_cell ks_cell_heading(const char *text)
{
    return new_cell(KS_CELL_NUMBER, text);
}

struct ks_cell ks_cell_printed(const char *text, double key)
{
    struct ks_cell cell = new_cell(isnan(key) ? KS_CELL_NONE : KS_CELL_NUMBER, NULL);

    cell.key = key;
    snprintf(cell.printed, sizeof cell.printed, "%s", text);
    return cell;
}

struct ks_cell ks_cell_count(size_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", number);
    return ks_cell_printed(text, (double)number);
}

/* `shown`, which may be rounded, in this format with `digits`. */
static struct ks_cell number_cell(const char *format, int digits, double number, double shown)
{
    char text[KS_CELL_PRINTED];

    if (isnan(number))
        return ks_cell_printed("-", number);
    if (isinf(number))
        return ks_cell_printed(number > 0 ? "infinite" : "-infinite", number);
    snprintf(text, sizeof text, format, digits, shown);
    return ks_cell_printed(text, number);
}

struct ks_cell ks_cell_digits(int digits, double number)
{
    return number_cell("%.*g", digits, number, number);
}

struct ks_cell ks_cell_fixed(int decimals, double number)
{
    return number_cell("%.*f", decimals, number, number);
}

struct ks_cell ks_cell_at_least(int digits, double bound)
{
    return number_cell("%.*g", digits, bound, ks_round_down(bound, digits));
}

struct ks_cell ks_cell_interval(struct ks_interval i, enum ks_interval_style style)
{
    char text[KS_INTERVAL_TEXT];

    return ks_cell_printed(ks_interval_text(i, style, text), isnan(i.lower) ? i.upper : i.lower);
}

struct ks_cell ks_cell_filter(const char *name, const char *value)
{
    return ks_cell_link(new_cell(KS_CELL_FILTER, value), name);
}

struct ks_cell ks_cell_or(struct ks_cell cell, const char *word)
{
    if (cell.look == KS_CELL_NONE)
        cell.text = word;
    return cell;
}

struct ks_cell ks_cell_note(struct ks_cell cell, const char *note)
{
    cell.note = note && *note ? note : NULL;
    return cell;
}

struct ks_cell ks_cell_link(struct ks_cell cell, const char *link)
{
    cell.link = link;
    return cell;
}

struct ks_cell ks_cell_wide(struct ks_cell cell, size_t width)
{
    cell.width = width;
    return cell;
}

/* --- documents --- */

const char *const ks_document_tags[KS_TAGS] = {"<b>",     "</b>",      "<i>", "</i>", "<code>",
                                               "</code>", "<a href='", "'>",  "</a>"};

/* Puts marks in place of tags. Returns their number. */
static size_t mark(char *text)
{
    size_t n = 0;

    for (char *to = text; (*to = *text); to++) {
        size_t k = 0;

        while (k < KS_TAGS && strncmp(text, ks_document_tags[k], strlen(ks_document_tags[k])) != 0)
            k++;
        if (k < KS_TAGS) {
            *to = (char)(KS_MARK + k);
            n++;
        }
        text += k < KS_TAGS ? strlen(ks_document_tags[k]) : 1;
    }
    return n;
}

/* What the caller frees; NULL once anything has failed. If an argument contains marks, all become a
 * character that is never shown as it is. */
static __attribute__((format(printf, 2, 0))) char *print(struct ks_document *d, const char *format,
                                                         va_list values)
{
    KS_OWNED char *marked = NULL;
    char *text = NULL;
    size_t n, found = 0;

    if (d->status == KS_OK)
        d->status = ks_copy_string(format, &marked);
    if (d->status != KS_OK)
        return NULL;
    n = mark(marked);
    d->status = ks_print_values(&text, marked, values);
    for (char *c = text; c && *(c += strcspn(c, KS_MARKS)); c++)
        found++;
    for (char *c = text; found > n && *(c += strcspn(c, KS_MARKS)); c++)
        *c = '\x7f';
    return text;
}

void ks_document_add(struct ks_document *d, enum ks_block_kind kind, const char *format, ...)
{
    struct ks_block block = {.kind = kind};
    va_list values;

    if (d->status == KS_OK)
        d->status = ks_grow(d->n, sizeof *d->block, &d->room, &d->block);
    va_start(values, format);
    block.text = print(d, format, values);
    va_end(values);
    if (block.text)
        d->block[d->n++] = block;
}

void ks_document_line(struct ks_document *d, const char *name, const char *format, ...)
{
    KS_OWNED char *text = NULL;
    va_list values;

    va_start(values, format);
    text = print(d, format, values);
    va_end(values);
    ks_document_add(d, KS_BLOCK_LINE, "%s", name);
    ks_document_cell(d, ks_cell_text(text));
}

void ks_document_more(struct ks_document *d, const char *format, ...)
{
    KS_OWNED char *more = NULL, *longer = NULL;
    struct ks_block *b;
    va_list values;
    char *text;

    va_start(values, format);
    more = print(d, format, values);
    va_end(values);
    if (!more)
        return;
    assert(d->n > 0);
    b = &d->block[d->n - 1];
    text = b->n > 0 ? (char *)b->cell[0].text : b->text;
    d->status = ks_print_string(&longer, "%s%s", text, more);
    if (d->status != KS_OK)
        return;
    free(text);
    if (b->n > 0)
        b->cell[0].text = longer;
    else
        b->text = longer;
    longer = NULL;
}

void ks_document_table(struct ks_document *d, const char *id, size_t n,
                       const struct ks_cell *headings)
{
    ks_document_add(d, KS_BLOCK_TABLE, "%s", id);
    for (size_t i = 0; i < n; i++)
        ks_document_cell(d, headings[i]);
}

void ks_document_columns(struct ks_document *d, const char *id, const char *format, ...)
{
    KS_OWNED char *text = NULL;
    va_list values;

    va_start(values, format);
    text = print(d, format, values);
    va_end(values);
    ks_document_add(d, KS_BLOCK_TABLE, "%s", id);
    for (char *at = text, *next; at; at = next) {
        next = strstr(at, ", ");
        if (next) {
            *next = '\0';
            next += strlen(", ");
        }
        if (*at && at[strlen(at) - 1] == '<') {
            at[strlen(at) - 1] = '\0';
            ks_document_cell(d, ks_cell_text(at));
        } else {
            ks_document_cell(d, ks_cell_heading(at));
        }
    }
}

void ks_document_row(struct ks_document *d, size_t n, const struct ks_cell *cells)
{
    ks_document_add(d, KS_BLOCK_ROW, "%s", "");
    for (size_t i = 0; i < n; i++)
        ks_document_cell(d, cells[i]);
}

static void free_cell(struct ks_cell *cell)
{
    free((char *)cell->text);
    free((char *)cell->note);
    free((char *)cell->link);
}

/* *copy owns its texts. */
static ks_status copy_cell(const struct ks_cell *from, struct ks_cell *copy)
{
    const char *const texts[] = {from->text ? from->text : from->printed, from->note, from->link};
    char *copies[3] = {NULL};
    ks_status status = KS_OK;

    for (size_t i = 0; i < 3 && status == KS_OK; i++)
        if (texts[i])
            status = ks_copy_string(texts[i], &copies[i]);
    *copy = *from;
    copy->text = copies[0];
    copy->note = copies[1];
    copy->link = copies[2];
    if (status != KS_OK)
        free_cell(copy);
    return status;
}

void ks_document_cell(struct ks_document *d, struct ks_cell cell)
{
    struct ks_block *b;
    struct ks_cell copy;

    if (d->status != KS_OK)
        return;
    assert(d->n > 0); /* a cell belongs to the last block */
    b = &d->block[d->n - 1];
    d->status = ks_grow(b->n, sizeof *b->cell, &b->room, &b->cell);
    if (d->status == KS_OK)
        d->status = copy_cell(&cell, &copy);
    if (d->status == KS_OK)
        b->cell[b->n++] = copy;
}

void ks_document_clear(struct ks_document *d)
{
    for (size_t i = 0; i < d->n; i++) {
        for (size_t k = 0; k < d->block[i].n; k++)
            free_cell(&d->block[i].cell[k]);
        free(d->block[i].cell);
        free(d->block[i].text);
    }
    free(d->block);
    *d = (struct ks_document){.n = 0};
}
