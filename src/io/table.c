#include "io/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/file.h"

void ks_table_column(struct ks_table *t, const char *name)
{
    if (t->status == KS_OK)
        t->status = ks_list_add(&t->columns, "%s", name);
}

void ks_table_columns(struct ks_table *t, const char *names)
{
    static const struct {
        char mark;
        const char *endings[5]; /* of the columns in place of the marked one */
    } marks[] = {{'*', {"", NULL}},
                 {'~', {"", "_low", "_high", NULL}},
                 {'|', {"", "_lower", "_upper", NULL}},
                 {'%', {"_lower", "_upper", "_least", "_most", NULL}}};

    for (const char *at = names; *at && strncmp(at, "...", 3) != 0; at += *at == ',') {
        size_t length = strcspn(at, ",*~|%"), m = sizeof marks / sizeof *marks;

        while (m > 0 && at[length] != marks[m - 1].mark)
            m--;
        for (const char *const *e = marks[m ? m - 1 : 0].endings; *e; e++) {
            char name[64];

            snprintf(name, sizeof name, "%.*s%s", (int)length, at, *e);
            ks_table_column(t, name);
        }
        if (m > 0 && at[length] == '*')
            ks_table_columns(t, "normalization,weight_normalization,loss");
        at += length + (m > 0);
    }
}

void ks_table_add(struct ks_table *t, size_t n, const struct ks_table_cell *cells)
{
    for (size_t i = 0; i < n; i++) {
        struct ks_table_cell cell = cells[i];
        char *copy = NULL;

        if (t->status == KS_OK)
            t->status = ks_grow(t->n, sizeof *t->cell, &t->room, &t->cell);
        if (t->status == KS_OK && cell.text)
            t->status = ks_copy_string(cell.text, &copy);
        if (t->status != KS_OK)
            return;
        cell.text = copy;
        t->cell[t->n++] = cell;
    }
}

void ks_table_free(struct ks_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free((char *)t->cell[i].text);
    ks_list_clear(&t->columns);
    free(t->cell);
    *t = (struct ks_table){0};
}

bool ks_table_has_number(const struct ks_table *t, const char *column)
{
    size_t i = 0;

    while (i < t->columns.n && strcmp(t->columns.text[i], column) != 0)
        i++;
    assert(i < t->columns.n);
    for (; i < t->n; i += t->columns.n)
        if (!t->cell[i].text && isfinite(t->cell[i].number))
            return true;
    return false;
}

void ks_table_print(const struct ks_table *t, FILE *out)
{
    assert(t->n % t->columns.n == 0);
    for (size_t i = 0; i < t->columns.n; i++)
        fprintf(out, "%s%c", t->columns.text[i], i + 1 < t->columns.n ? ',' : '\n');
    for (size_t i = 0; i < t->n; i++) {
        const struct ks_table_cell *cell = &t->cell[i];

        if (cell->text || isnan(cell->number))
            fputs(cell->text ? cell->text : "-", out);
        else
            fprintf(out, cell->whole ? "%.0f" : "%.10g", cell->number);
        putc((i + 1) % t->columns.n > 0 ? ',' : '\n', out);
    }
}

ks_status ks_table_write(const struct ks_table *t, const char *dir, const char *name)
{
    struct ks_text text;

    KS_TRY(t->status);
    KS_TRY(ks_text_open(&text, "%s/tables/%s.csv", dir, name));
    ks_table_print(t, text.stream);
    return ks_text_close(&text, KS_OK);
}
