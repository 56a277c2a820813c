/* The tables of the READMEs come from the tables of the code. Each stands between the lines
 * <!-- table: NAME --> and <!-- end -->; this test fails if it differs from what is printed here.
 * With KS_DOCS=write the program writes the pages instead (make docs).
 *
 *   columns           ks_progress_columns
 *   options PROGRAM   what `kappascope PROGRAM --help` prints, but for the options of all programs
 *   plots             ks_plots
 *   quantities        ks_quantities
 *   settings          ks_keys
 *   statistics        ks_catalogue
 *   tables            ks_table_files */
#define _GNU_SOURCE

#include "io/file.h"
#include "report/plots.h"
#include "report/tables.h"
#include "statistics/catalogue.h"
#include "test.h"
#include "train/metrics.h"
#include "train/settings.h"

enum { WIDTH = 120, TEXT = 1 << 20 };
static const char *const pages[] = {"analysis/README.md", "checkpoints/README.md",
                                    "configs/README.md", "plots/README.md"};

/* Prints an item of a list in lines of at most WIDTH characters, broken at blanks. */
static void print_item(FILE *out, const char *text)
{
    size_t column = 1;

    fputc('-', out);
    for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");

        if (column + 1 + length > WIDTH) {
            fprintf(out, "\n ");
            column = 1;
        }
        fprintf(out, " %.*s", (int)length, word);
        column += 1 + length;
        word += length;
    }
    fputc('\n', out);
}

/* Whether a line of --help begins with an option; else it continues the one before. */
static bool is_option(const char *line)
{
    size_t indent = strspn(line, " ");

    return line[indent] == '-' && indent < 8;
}

/* Appends a line of --help to an item: "`--out DIR`: words". The names end where two blanks or the
 * line end. */
static void add_line(char *item, const char *line)
{
    const char *text = line + strspn(line, " "), *end = strstr(text, "  ");

    if (is_option(line)) {
        size_t names = end ? (size_t)(end - text) : strlen(text);

        sprintf(item, "`%.*s`: ", (int)names, text);
        text += names + strspn(text + names, " ");
    } else {
        strcat(item, " ");
    }
    strcat(item, text);
}

/* `import` is a Python program, whose libraries may be missing. */
static bool can_run(const char *program)
{
    const char *bin = getenv("KS_BIN") ? getenv("KS_BIN") : "build/bin";

    return strcmp(program, "import") != 0 ||
           system(text_of("%s/kappascope %s --version >/dev/null", bin, program)) == 0;
}

static void print_options(FILE *out, const char *program)
{
    const char *bin = getenv("KS_BIN") ? getenv("KS_BIN") : "build/bin";
    const char *command = text_of("%s/kappascope %s --help", bin, program);
    char line[512], item[4096] = "";
    bool inside = false;
    FILE *help;

    help = popen(command, "r");
    assert_non_null(help);
    while (fgets(line, sizeof line, help)) {
        line[strcspn(line, "\n")] = '\0';
        if (inside && (is_option(line) || !*line) && *item) {
            print_item(out, item);
            *item = '\0';
        }
        if (strcasecmp(line, "options:") == 0)
            inside = true;
        else if (inside && !*line)
            break;
        else if (inside)
            add_line(item, line);
    }
    while (fgets(line, sizeof line, help))
        ;
    if (pclose(help) != 0 || !inside)
        fail_msg("%s: expected exit status 0 and a list of options", command);
}

static void print_settings(FILE *out)
{
    for (const struct ks_key *key = ks_keys; key->name; key++)
        print_item(out, text_of("`%s` (%s%s%s): %s", key->name, key->default_text,
                                key->from ? ", " : "", key->from ? key->from : "", key->help));
}

static void print_quantities(FILE *out, const struct ks_quantity *quantity)
{
    for (; quantity->name; quantity++)
        print_item(out, text_of("`%s`: %s", quantity->name, quantity->help));
}

static void print_plots(FILE *out)
{
    for (size_t i = 0; i < KS_PLOTS; i++)
        print_item(out, text_of("`%s.gp`, %s: `%s.csv`", ks_plots[i].name, ks_plots[i].title,
                                ks_plots[i].table));
}

/* "`kappa~`, `order`": the columns, each in code. */
static void print_columns(FILE *out, const char *columns)
{
    for (size_t length; *columns && *columns != '.'; columns += length) {
        columns += *columns == ',';
        length = strcspn(columns, ",");
        if (*columns != '.')
            fprintf(out, "`%.*s`%s", (int)length, columns,
                    columns[length] == ',' && columns[length + 1] != '.' ? ", " : "");
    }
}

static void print_tables(FILE *out)
{
    for (const struct ks_table_file *file = ks_table_files; file->name; file++) {
        char *item = NULL;
        size_t size;
        FILE *text = open_memstream(&item, &size);

        fprintf(text, "`%s.csv`, a row per %s: ", file->name, file->row);
        if (file->notes[0] != '[')
            print_columns(text, file->columns);
        fprintf(text, "%s%s", *file->notes && file->notes[0] != '[' ? "; " : "", file->notes);
        fclose(text);
        print_item(out, item);
        free(item);
    }
}

/* Prints the statistic `first` and those after it that have the same definition. */
static void print_statistic(FILE *out, size_t first)
{
    const struct ks_statistic *row = &ks_catalogue[first];
    bool has_interval = row->lower && row->kind != KS_IS_EXTREME;
    bool has_value = row->kind != KS_IS_INTERVAL && row->kind != KS_IS_RATIO;
    char *item = NULL;
    size_t size;
    FILE *text = open_memstream(&item, &size);

    fprintf(text, "`%s`", row->name);
    for (size_t i = first + 1; i < KS_STATISTICS && !ks_catalogue[i].definition; i++)
        fprintf(text, ", `%s`", ks_catalogue[i].name);
    fprintf(text, "%s: %s",
            !has_interval ? ""
            : has_value   ? " (with an interval)"
                          : " (an interval alone)",
            row->definition);
    if (row->paper)
        fprintf(text, " (XQC paper: %s)", row->paper);
    fclose(text);
    print_item(out, item);
    free(item);
}

/* First the statistics of tables in the order of their reliability, each followed by those whose
 * names begin with its own. */
static void print_statistics(FILE *out)
{
    bool printed[KS_STATISTICS] = {false};

    for (const enum ks_statistic_id *id = ks_catalogue_for_readers;; id++) {
        const char *name = *id < KS_STATISTICS ? ks_catalogue[*id].name : "";
        const size_t length = strlen(name);

        for (size_t i = 0; i < KS_STATISTICS; i++) {
            const struct ks_statistic *row = &ks_catalogue[i];
            bool belongs = i == *id || !*name ||
                           (strncmp(row->name, name, length) == 0 && row->name[length] == '_');

            if (!belongs || printed[i] || !row->definition)
                continue;
            print_statistic(out, i);
            printed[i] = true;
        }
        if (*id == KS_STATISTICS)
            break;
    }
}

static void print_table(FILE *out, const char *name)
{
    if (strncmp(name, "options ", 8) == 0)
        print_options(out, name + 8);
    else if (strcmp(name, "columns") == 0)
        print_quantities(out, ks_progress_columns);
    else if (strcmp(name, "quantities") == 0)
        print_quantities(out, KS(quantities));
    else if (strcmp(name, "settings") == 0)
        print_settings(out);
    else if (strcmp(name, "plots") == 0)
        print_plots(out);
    else if (strcmp(name, "tables") == 0)
        print_tables(out);
    else if (strcmp(name, "statistics") == 0)
        print_statistics(out);
    else
        fail_msg("no table '%s'", name);
}

/* The page with its tables as they should be; returns their number. */
static size_t print_page(FILE *out, char *page)
{
    static const char begin[] = "<!-- table: ", end[] = "<!-- end -->";
    size_t tables = 0;
    char *at;

    for (; (at = strstr(page, begin)); tables++) {
        char *name = at + sizeof begin - 1, *after = strstr(name, end), text[64];

        assert_non_null(after);
        snprintf(text, sizeof text, "%.*s", (int)(strstr(name, " -->") - name), name);
        fprintf(out, "%.*s", (int)(strchr(name, '\n') + 1 - page), page);
        page = strchr(name, '\n') + 1;
        if (strncmp(text, "options ", 8) != 0 || can_run(text + 8)) {
            print_table(out, text);
            page = after;
        }
    }
    fputs(page, out);
    return tables;
}

TEST(tables_are_those_of_the_code)
{
    const char *mode = getenv("KS_DOCS");
    char *page = hold(malloc(TEXT));

    assert_non_null(page);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        FILE *file = fopen(pages[i], "r"), *out;
        char *expected = NULL;
        size_t size;

        assert_non_null(file);
        page[fread(page, 1, TEXT - 1, file)] = '\0';
        fclose(file);
        out = open_memstream(&expected, &size);
        assert_true(print_page(out, page) > 0);
        fclose(out);
        if (mode && strcmp(mode, "write") == 0) {
            file = fopen(pages[i], "w");
            assert_non_null(file);
            fputs(expected, file);
            assert_int_equal(fclose(file), 0);
        } else if (strcmp(page, expected) != 0) {
            size_t same = 0;

            while (page[same] == expected[same])
                same++;
            fail_msg(
                "%s: differs from the tables of the code at '%.60s', expected '%.60s': make docs",
                pages[i], page + same, expected + same);
        }
        free(expected);
    }
}
