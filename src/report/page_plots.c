/* The plots of the report, and the links to files. */
#define _XOPEN_SOURCE 700 /* scandir, alphasort */
#include "report/page.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/text.h"
#include "report/html.h"
#include "report/plots.h"

static ks_status print_links(const struct ks_page *page, const char *name, FILE *out)
{
    static const char *const formats[] = {"svg", "pdf", "png"};
    const char *before = " <span class=\"links\">(";

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *path = NULL;

        KS_TRY(ks_print_string(&path, "%s/figures/%s.%s", page->results->dir, name, formats[i]));
        if (ks_path_exists(path)) {
            fprintf(out, "%s<a href=\"figures/%s.%s\">%s</a>", before, name, formats[i],
                    formats[i]);
            before = ", ";
        }
        free(path);
    }
    fprintf(out, ")</span>");
    return KS_OK;
}

/* The file from its <svg> on: a page has no XML declaration in its middle. */
static ks_status print_svg(const char *path, FILE *out)
{
    char *text = NULL, *start;
    ks_status status = KS_OK;

    KS_TRY(ks_text_read(path, &text, NULL));
    start = strstr(text, "<svg");
    if (start)
        fputs(start, out);
    else
        status = ks_fail(KS_FORMAT, "%s: expected an <svg> element, found none", path);
    free(text);
    return status;
}

/* `path`: of the SVG file. */
static ks_status print_figure(const struct ks_page *page, const struct ks_plot *plot,
                              const char *path, FILE *out)
{
    fprintf(out, "<figure id=\"plot-%s\">\n<h3>", plot->name);
    ks_html_text(out, plot->title);
    fprintf(out, "</h3>\n<div class=\"plot\" role=\"img\" aria-label=\"");
    ks_html_text(out, plot->title);
    fprintf(out, "\" tabindex=\"0\">");
    KS_TRY(print_svg(path, out));
    fprintf(out, "</div>\n<figcaption>");
    ks_html_text(out, plot->caption);
    KS_TRY(print_links(page, plot->name, out));
    fprintf(out, "</figcaption>\n</figure>\n");
    return KS_OK;
}

/* Why the study has no such plot. */
static void print_missing(const struct ks_plot *plot, FILE *out)
{
    fprintf(out, "<p class=\"note\" id=\"plot-%s\">", plot->name);
    ks_html_text(out, plot->title);
    fputs(": not drawn (", out);
    ks_html_text(out, plot->missing);
    fputs(").</p>\n", out);
}

static ks_status print_plot(struct ks_page *page, size_t i, FILE *out)
{
    const struct ks_plot *plot = &ks_plots[i];
    ks_status status = KS_OK;
    char *path = NULL;

    page->shown[i] = true;
    KS_TRY(ks_print_string(&path, "%s/figures/%s.svg", page->results->dir, plot->name));
    if (ks_path_exists(path))
        status = print_figure(page, plot, path, out);
    else
        print_missing(plot, out);
    free(path);
    return status;
}

ks_status ks_page_plot(struct ks_page *page, const char *name, FILE *out)
{
    for (size_t i = 0; i < KS_PAGE_PLOTS && ks_plots[i].name; i++)
        if (strcmp(ks_plots[i].name, name) == 0)
            return print_plot(page, i, out);
    return ks_fail(KS_FORMAT, "%s/report.html: no plot is named '%s'", page->scripts, name);
}

ks_status ks_page_other_plots(struct ks_page *page, FILE *out)
{
    for (size_t i = 0; i < KS_PAGE_PLOTS && ks_plots[i].name; i++)
        if (!page->shown[i])
            KS_TRY(print_plot(page, i, out));
    return KS_OK;
}

static int is_table(const struct dirent *entry)
{
    return ks_path_ends(entry->d_name, ".csv");
}

/* A file's name as part of a link: bytes other than letters, digits and -._~ as %XX. */
static void print_link(FILE *out, const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')
            putc(*c, out);
        else
            fprintf(out, strchr("0123456789-._~", *c) ? "%c" : "%%%02X", *c);
}

ks_status ks_page_files(const struct ks_page *page, FILE *out)
{
    struct dirent **list = NULL;
    char *folder = NULL;
    int n;

    KS_TRY(ks_print_string(&folder, "%s/tables", page->results->dir));
    n = scandir(folder, &list, is_table, alphasort);
    free(folder);
    fprintf(out, "<ul class=\"files\">\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "<li><a href=\"tables/");
        print_link(out, list[i]->d_name);
        fprintf(out, "\">");
        ks_html_text(out, list[i]->d_name);
        fprintf(out, "</a></li>\n");
        free(list[i]);
    }
    free(list);
    fprintf(out, "</ul>\n");
    return KS_OK;
}
