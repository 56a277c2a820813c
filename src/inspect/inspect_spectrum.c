#include "inspect/inspect.h"

#include <string.h>

#include "inspect/lines.h"
#include "io/attribute.h"
#include "io/spectrum.h"
#include "statistics/statistic_text.h"

/* Attributes that are printed elsewhere, or say no more than the first line. */
static bool is_left_out(const char *name)
{
    return strcmp(name, "claim") == 0 || strcmp(name, "format") == 0 ||
           strcmp(name, "version") == 0;
}

static void print_settings(const struct ks_spectrum *s, FILE *out)
{
    ks_title_print(out, "What was computed");
    for (size_t i = 0; i < s->attributes.n; i++)
        if (!is_left_out(s->attributes.list[i].name))
            ks_attribute_print(out, &s->attributes.list[i]);
    for (size_t p = 0; p < s->probes && s->steps; p++)
        ks_line_print(out, p ? "" : "probes' steps", "%lld, from %s", (long long)s->steps[p],
                      s->gradient && p + 1 == s->probes ? "the gradient" : "a random vector");
}

static void print_statistics(const struct ks_spectrum *s, FILE *out)
{
    char text[KS_STATISTIC_TEXT];

    ks_title_print(out,
                   "Statistics (intervals in brackets hold with 99%; /summary has all of them)");
    for (const struct ks_statistic_row *row = ks_statistic_rows; row->name; row++) {
        if (!ks_statistic_present(s, row->name))
            continue;
        ks_statistic_text(s, row->name, text);
        fprintf(out, "  %-21s %-22s %s\n", row->name, text, row->words);
    }
}

/* The vectors behind the bounds: y'Ay/y'y and |A y|/|y| in float64, and their error in the run. */
static void print_certificates(const struct ks_spectrum *s, FILE *out)
{
    static const char *const vectors[] = {"largest", "smallest", "flat"};
    char name[KS_ATTRIBUTE_NAME];

    ks_title_print(out, "Certificates");
    if (s->certificate.n == 0) {
        ks_paragraph_print(out, "None: bounds and intervals are uncertified.");
        return;
    }
    fprintf(out, "  %-9s %12s %12s %12s %15s\n", "vector", "y'Ay/y'y", "|Ay|/|y|", "residual",
            "product error");
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        static const char *const parts[] = {"quotient", "size", "residual", "product_error"};

        snprintf(name, sizeof name, "%s_quotient", vectors[i]);
        if (!ks_attribute_find(&s->certificate, name))
            continue;
        fprintf(out, "  %-9s", vectors[i]);
        for (size_t k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "%s_%s", vectors[i], parts[k]);
            fprintf(out, " %*.4g", k < 3 ? 12 : 15, ks_attribute_number(&s->certificate, name));
        }
        fputc('\n', out);
    }
}

ks_status ks_inspect_spectrum(const char *path, FILE *out)
{
    const struct ks_attribute *claim;
    struct ks_spectrum *s;

    KS_TRY(ks_spectrum_read(path, &s));
    ks_line_print(out, "spectrum", "%s", path);
    print_settings(s, out);
    print_statistics(s, out);
    print_certificates(s, out);
    claim = ks_attribute_find(&s->attributes, "claim");
    if (claim && claim->type == KS_ATTRIBUTE_STRING) {
        ks_title_print(out, "Claim");
        ks_paragraph_print(out, claim->string);
    }
    ks_spectrum_free(s);
    return KS_OK;
}
