/* What a web page needs of gnuplot's SVG; where the panels of architectures stand. */
#include "report/plots.h"
#include "test.h"

static void check(const char *text, const char *expected)
{
    char *clean;

    assert_ok(ks_svg_clean(text, &clean));
    assert_string_equal(clean, expected);
    free(clean);
}

/* gnuplot's handlers need its own script; its titles would be tooltips of everything. */
TEST(test_tooltips)
{
    check("\t<g onmousemove=\"gnuplot_svg.showHypertext(evt,'bn, step 4: 7')\" "
          "onmouseout=\"gnuplot_svg.hideHypertext()\"><title> </title>\n",
          "\t<g><title>bn, step 4: 7</title>\n");
    check("<g id=\"spectra_plot_1\" ><title>'tables/x.csv' using 1:2</title>\n",
          "<g id=\"spectra_plot_1\" >\n");
}

TEST(test_text_and_colours)
{
    check("<svg\n viewBox=\"0 0 9 9\"\n<text stroke='rgb(  0, 114, 178)' "
          "font-family=\"DejaVu Sans\">κ rgb(x)</text>\n",
          "<svg\n font-family=\"DejaVu Sans, Verdana, sans-serif\" viewBox=\"0 0 9 9\"\n"
          "<text stroke='#0072b2'>κ rgb(x)</text>\n");
}

/* Points have one decimal; level and upright lines are relative. What is not a point stays. */
TEST(test_paths)
{
    check("<path d='M40.95,273.00 L47.70,273.00 L47.72,2.96 M-0.04,1.06 L3.00,5.50 Z  '/>\n",
          "<path d='M41,273h6.7v-270M0,1.1L3,5.5 Z  '/>\n");
    check("<path d='M-, '/>\n", "<path d='M-, '/>\n");
    check("d='", "d='\n");
}

/* Groups without content, and filters, are left out; a group with content stays. */
TEST(test_empty_groups)
{
    check(
        "<g fill=\"none\" color=\"white\">\n</g>\n<filter id='textbox'>\n<feFlood/>\n</filter>\n\n"
        "<g fill=\"none\">\n<path/>\n</g>\n</svg>\n",
        "<g fill=\"none\">\n<path/>\n</g>\n</svg>\n");
}

/* The places as text, or "no" where the full grid of this kind does not have them; all find places
 * in ks_panels_place. */
static void check_panels(bool wide, size_t n, const struct ks_study_architecture *list,
                         const char *expected)
{
    const struct ks_study_architecture *pointer[KS_STUDY_ARCHITECTURES];
    struct ks_panels p;
    char text[256] = "no";

    for (size_t i = 0; i < n; i++)
        pointer[i] = &list[i];
    if (!wide)
        ks_panels_place(n, pointer, &p);
    if (!wide || ks_panels_fill(true, n, pointer, &p)) {
        snprintf(text, sizeof text, "%zu x %zu:", p.columns, p.rows);
        for (size_t i = 0; i < n; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), " %zu,%zu", p.x[i], p.y[i]);
    }
    assert_string_equal(text, expected);
}

static void check_places(size_t n, const struct ks_study_architecture *list, const char *expected)
{
    check_panels(false, n, list, expected);
}

static void check_wide(size_t n, const struct ks_study_architecture *list, const char *expected)
{
    check_panels(true, n, list, expected);
}

/* Columns are normalizations, rows losses with or without weight normalization; what no
 * architecture has is closed up. Others, and doubles, stand in rows of three. */
TEST(test_panels)
{
    struct ks_study_architecture list[] = {
        {.normalization = "bn", .loss = "ce"},
        {.normalization = "bn", .loss = "ce", .weight_normalization = true},
        {.normalization = "dense", .loss = "ce"},
        {.normalization = "dense", .loss = "mse", .weight_normalization = true}};

    check_places(4, list, "2 x 3: 0,0 0,1 1,0 1,2");
    check_places(1, list + 3, "1 x 1: 0,0");
    list[1].loss = "mse";
    check_places(2, list, "1 x 2: 0,0 0,1");
    list[1].normalization = "ln"; /* 2 x 2 places, but only two architectures: a row */
    check_places(2, list, "2 x 1: 0,0 1,0");
    list[1] = list[0];
    check_places(4, list, "2 x 2: 0,0 1,0 0,1 1,1");
    list[1].normalization = "other";
    check_places(2, list, "2 x 1: 0,0 1,0");
}

/* A column per normalization with and without weight normalization, a row per loss; only for
 * different ones of the twelve that fill two thirds of it. */
TEST(test_wide_panels)
{
    struct ks_study_architecture list[] = {
        {.normalization = "bn", .loss = "ce"},
        {.normalization = "bn", .loss = "ce", .weight_normalization = true},
        {.normalization = "dense", .loss = "mse", .weight_normalization = true},
        {.normalization = "bn", .loss = "mse"}};

    check_wide(4, list, "3 x 2: 0,0 1,0 2,1 0,1");
    check_wide(3, list, "no");
    list[3] = list[2];
    check_wide(4, list, "no");
}

/* The twelve as in `all`, and others: columns after the twelve, of a variant in the row of its
 * loss, else in the first one. At most two of them, and not without any of the twelve. */
TEST(test_others_in_wide_panels)
{
    static const char *const norms[] = {"bn", "ln", "dense"};
    struct ks_study_architecture list[15] = {{0}};
    const struct ks_study_architecture other = {.normalization = "other", .loss = "other"};

    for (size_t i = 0; i < 12; i++)
        list[i] = (struct ks_study_architecture){.normalization = norms[i % 6 / 2],
                                                 .weight_normalization = i % 2,
                                                 .loss = i < 6 ? "ce" : "mse"};
    list[12] = list[13] = list[14] = other;
    check_wide(13, list,
               "7 x 2: 0,0 1,0 2,0 3,0 4,0 5,0 0,1 1,1 2,1 3,1 4,1 5,1 6,0"); /* all simba-v2 */
    check_wide(7, list + 6, "7 x 1: 0,0 1,0 2,0 3,0 4,0 5,0 6,0"); /* without cross-entropy */
    list[12] = list[11];
    list[12].line = 7;
    check_wide(8, list + 6, "8 x 1: 0,0 1,0 2,0 3,0 4,0 5,0 6,0 7,0");
    check_wide(14, list, "8 x 2: 0,0 1,0 2,0 3,0 4,0 5,0 0,1 1,1 2,1 3,1 4,1 5,1 6,1 7,0");
    check_wide(3, list + 11, "3 x 1: 0,0 1,0 2,0");
    check_wide(15, list, "no");
    check_wide(2, list + 13, "no");
    check_places(13, list, "3 x 5: 0,0 1,0 2,0 0,1 1,1 2,1 0,2 1,2 2,2 0,3 1,3 2,3 0,4");
}
