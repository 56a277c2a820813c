#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/file.h"

static size_t count(const char *text, char what, const char *stop)
{
    size_t n = 0;

    for (; *text && !strchr(stop, *text); text++)
        n += *text == what;
    return n;
}

/* Splits the line at *text into `columns` cells and moves *text to the next line. */
static ks_status split_line(struct ks_csv *csv, size_t line, char **text, const char **cell)
{
    size_t found = 1 + count(*text, ',', "\n");

    if (found != csv->columns)
        return ks_fail(KS_FORMAT, "%s:%zu: expected %zu columns, found %zu", csv->path, line,
                       csv->columns, found);
    for (size_t j = 0; j < csv->columns; j++) {
        size_t length = strcspn(*text, ",\r\n");

        cell[j] = *text;
        *text += length;
        if (**text == '\r')
            *(*text)++ = '\0';
        if (**text && !strchr(",\n", **text))
            return ks_fail(KS_FORMAT, "%s:%zu: a carriage return within the line", csv->path, line);
        if (**text)
            *(*text)++ = '\0';
    }
    return KS_OK;
}

static ks_status parse(struct ks_csv *csv, bool growing)
{
    static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf"; /* spreadsheets write it before UTF-8 */
    char *next = csv->text;

    if (strncmp(next, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        next += strlen(BYTE_ORDER_MARK);
    if (growing && strrchr(next, '\n')) {
        char *last = strrchr(next, '\n') + 1;

        csv->cut = *last != '\0';
        *last = '\0';
    }
    if (!*next)
        return ks_fail(KS_FORMAT, "%s: expected a header line, found nothing", csv->path);
    csv->columns = 1 + count(next, ',', "\n");
    csv->rows = count(next, '\n', "");
    if (next[strlen(next) - 1] == '\n')
        csv->rows--;
    KS_TRY(ks_alloc(csv->columns, sizeof *csv->name, &csv->name));
    KS_TRY(ks_alloc(csv->rows * csv->columns, sizeof *csv->cell, &csv->cell));
    KS_TRY(split_line(csv, 1, &next, csv->name));
    for (size_t i = 0; i < csv->rows; i++)
        KS_TRY(split_line(csv, i + 2, &next, csv->cell + i * csv->columns));
    return KS_OK;
}

ks_status ks_csv_read(const char *path, bool growing, struct ks_csv **out)
{
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *csv, &csv));
    KS_TRY(ks_copy_string(path, &csv->path));
    KS_TRY(ks_text_read(path, &csv->text, NULL));
    KS_TRY(parse(csv, growing));
    *out = csv, csv = NULL;
    return KS_OK;
}

void ks_csv_free(struct ks_csv *csv)
{
    if (!csv)
        return;
    free(csv->path);
    free(csv->text);
    free(csv->name);
    free(csv->cell);
    free(csv);
}

ks_status ks_csv_column(const struct ks_csv *csv, const char *name, size_t *column)
{
    size_t found = 0;

    for (size_t j = 0; j < csv->columns; j++)
        if (strcmp(csv->name[j], name) == 0 && found++ == 0)
            *column = j;
    if (found == 1)
        return KS_OK;
    return found == 0
               ? ks_fail(KS_FORMAT, "%s: expected a column '%s', found none", csv->path, name)
               : ks_fail(KS_FORMAT, "%s: expected one column '%s', found %zu", csv->path, name,
                         found);
}

const char *ks_csv_cell(const struct ks_csv *csv, size_t row, size_t column)
{
    return csv->cell[row * csv->columns + column];
}

ks_status ks_csv_number(const struct ks_csv *csv, size_t row, size_t column, double *value)
{
    const char *cell = ks_csv_cell(csv, row, column);
    char *end;

    *value = strtod(cell, &end);
    if (end == cell || *end)
        return ks_fail(KS_FORMAT, "%s:%zu: %s: expected a number, found '%s'", csv->path, row + 2,
                       csv->name[column], cell);
    return KS_OK;
}

const char *ks_csv_text(const struct ks_csv *csv, size_t row, const char *column)
{
    for (size_t j = 0; j < csv->columns; j++)
        if (strcmp(csv->name[j], column) == 0)
            return ks_csv_cell(csv, row, j);
    return "-";
}

double ks_csv_value(const struct ks_csv *csv, size_t row, const char *column)
{
    const char *cell = ks_csv_text(csv, row, column);
    char *end;
    double value = strtod(cell, &end);

    return end == cell || *end ? NAN : value;
}
