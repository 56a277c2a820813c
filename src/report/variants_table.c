/* variants.csv: what the variants of a study change, beside the architectures that they change. */
#include "report/plot_tables.h"

static const int columns[] = {KS_RETURN, KS_KAPPA, KS_LAMBDA_MAX};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* The row of an architecture in the standard analysis, NULL if it is left out. */
static const struct ks_row *find_row(const struct ks_tables *t, size_t architecture)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        if (t->table->row[i].architecture == architecture)
            return &t->table->row[i];
    return NULL;
}

static void print_row(const struct ks_study *study, const struct ks_row *variant,
                      const struct ks_row *base, FILE *out)
{
    const struct ks_study_architecture *a = &study->architecture[variant->architecture];

    fprintf(out, "%s,%s,", a->name, study->architecture[base->architecture].name);
    for (size_t i = 0; i < a->n_own; i++)
        fprintf(out, "%s%s = %s", i ? "; " : "", a->own[i].key, a->own[i].value);
    for (size_t k = 0; k < COLUMNS; k++) {
        ks_table_number(out, variant->value[columns[k]].value);
        ks_table_number(out, base->value[columns[k]].value);
    }
    putc('\n', out);
}

ks_status ks_variants_write(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++) {
        const struct ks_row *variant = &t->table->row[i];
        const struct ks_row *base = find_row(t, ks_study_base(t->r->study, variant->architecture));

        if (base)
            print_row(t->r->study, variant, base, out);
    }
    return KS_OK;
}
