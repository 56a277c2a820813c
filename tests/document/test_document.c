/* Documents: what is added, on a terminal and as HTML. */
#include "scratch.h"
#include "test.h"

#include "document/document.h"

static char printed[1 << 18];

static const char *on_terminal(struct ks_document *d, size_t width)
{
    FILE *out = fmemopen(printed, sizeof printed, "w");

    memset(printed, 0, sizeof printed);
    assert_ok(ks_document_print(d, width, out));
    fclose(out);
    return printed;
}

static const char *as_html(const struct ks_document *d)
{
    FILE *out = fmemopen(printed, sizeof printed, "w");

    memset(printed, 0, sizeof printed);
    assert_ok(ks_document_html(d, "x", out));
    fclose(out);
    return printed;
}

/* Every kind of cell, as text. */
TEST(test_cells)
{
    const struct {
        struct ks_cell cell;
        const char *text;
        double key;
    } cases[] = {
        {ks_cell_count(12), "12", 12},
        {ks_cell_digits(3, 1234.5), "1.23e+03", 1234.5},
        {ks_cell_digits(3, INFINITY), "infinite", INFINITY},
        {ks_cell_fixed(2, -0.125), "-0.12", -0.125},
        {ks_cell_at_least(3, 2.3456), "2.34", 2.3456},
        {ks_cell_at_least(3, -2.3456), "-2.35", -2.3456},
        {ks_cell_digits(2, 0.04567), "0.046", 0.04567},
        {ks_cell_interval((struct ks_interval){2, 3.101}, KS_BRACKETS), "[2, 3.11]", 2},
        {ks_cell_interval((struct ks_interval){NAN, 3}, KS_BRACKETS), "at most 3", 3},
        {ks_cell_or(ks_cell_digits(2, 0.5), "undefined"), "0.5", 0.5},
    };
    const struct ks_cell unknown = ks_cell_or(ks_cell_digits(2, NAN), "undefined");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(cases[i].cell.printed, cases[i].text);
        assert_true(cases[i].cell.key == cases[i].key);
    }
    assert_string_equal(unknown.text, "undefined");
    assert_int_equal(unknown.look, KS_CELL_NONE);
}

static void fill(struct ks_document *d)
{
    char name[] = "<a>\x1b";

    ks_document_add(d, KS_BLOCK_SECTION, "Title");
    ks_document_line(d, "width", "%d columns", 3);
    ks_document_table(
        d, "", KS_CELLS(ks_cell_name("name"), ks_cell_note(ks_cell_heading("value"), "at least")));
    ks_document_cells(d, ks_cell_name(name));
    ks_document_cell(d, ks_cell_at_least(2, 1.29));
    name[1] = 'b'; /* the document has a copy */
    ks_document_cells(d, ks_cell_link(ks_cell_name("c"), "c.html"), ks_cell_digits(2, NAN));
    ks_document_add(d, KS_BLOCK_ITEM, "one two three");
    ks_document_add(d, KS_BLOCK_ITEM, "four");
}

TEST(test_terminal)
{
    struct ks_document d = {.n = 0};

    fill(&d);
    assert_string_equal(on_terminal(&d, 12), "\nTitle\n"
                                             "  width                3 columns\n"
                                             "  name     value (at least)\n"
                                             "  <a>\\x1b               1.2\n"
                                             "  c                       -\n"
                                             "  - one two\n"
                                             "    three\n"
                                             "  - four\n");
    assert_string_equal(on_terminal(&d, 12), "");
    ks_document_clear(&d);
}

/* Rows that follow after their table has been printed stand below its headings. */
TEST(test_rows_one_by_one)
{
    struct ks_document d = {.n = 0};

    ks_document_columns(&d, "", "a %s one, b<", "long");
    ks_document_cells(&d, ks_cell_count(1), ks_cell_text("x"));
    assert_string_equal(on_terminal(&d, 80), "  a long one  b\n           1  x\n");
    ks_document_cells(&d, ks_cell_count(22), ks_cell_text("y"));
    assert_string_equal(on_terminal(&d, 80), "          22  y\n");
    ks_document_clear(&d);
}

TEST(test_html)
{
    struct ks_document d = {.n = 0};

    fill(&d);
    assert_string_equal(
        as_html(&d),
        "<section id=\"x-1\">\n<h2>Title</h2>\n"
        "<dl>\n<dt>width</dt>\n<dd>3 columns</dd>\n</dl>\n"
        "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead>\n"
        "<tr><th>name</th><th>value<span class=\"kind\">at least</span></th></tr>\n</thead>\n"
        "<tbody>\n<tr><td class=\"name\">&lt;a&gt;&#xFFFD;</td><td data-value=\"1.29\">1.2</td>"
        "</tr>\n<tr><td class=\"name\"><a href=\"c.html\">c</a></td>"
        "<td class=\"none\">-</td></tr>\n</tbody>\n</table>\n</div>\n"
        "<ul>\n<li>one two three</li>\n<li>four</li>\n</ul>\n</section>\n");
    ks_document_clear(&d);
}

/* A row's filters are on a page only; small print has an element for each of its lines. */
TEST(test_filters_and_lines)
{
    struct ks_document d = {.n = 0};

    ks_document_table(&d, "t", KS_CELLS(ks_cell_note(ks_cell_heading("x"), "a\nb")));
    ks_document_cells(&d, ks_cell_note(ks_cell_count(1), "c\n<d>"),
                      ks_cell_filter("loss", "\"ce\""), ks_cell_filter("wn", "1"));
    assert_string_equal(
        as_html(&d),
        "<div class=\"scroll\" tabindex=\"0\">\n<table class=\"sortable\" id=\"t\">\n<thead>\n"
        "<tr><th>x<span class=\"kind\">a</span><span class=\"kind\">b</span></th></tr>\n</thead>\n"
        "<tbody>\n<tr data-loss=\"&quot;ce&quot;\" data-wn=\"1\"><td data-value=\"1\">1"
        "<small>c</small><small>&lt;d&gt;</small></td></tr>\n</tbody>\n</table>\n</div>\n");
    ks_document_clear(&d);
    ks_document_table(&d, "t", KS_CELLS(ks_cell_text("x")));
    ks_document_cells(&d, ks_cell_text("one"), ks_cell_filter("wn", "1"));
    assert_string_equal(on_terminal(&d, 80), "  x\n  one\n");
    ks_document_clear(&d);
}

TEST(test_text_in_html)
{
    static const char *const cases[][2] = {
        {"bn+wn+ce, kappa 1e+06", "bn+wn+ce, kappa 1e+06"},
        {"</pre><script>x</script>", "&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;"},
        {"\" onload='x' &amp;", "&quot; onload=&#39;x&#39; &amp;amp;"},
        {"κ\ta\nb\x1b[0m\x7f", "κ\ta\nb&#xFFFD;[0m&#xFFFD;"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_document d = {.n = 0};

        ks_document_add(&d, KS_BLOCK_WORDS, "%s", cases[i][0]);
        assert_string_equal(as_html(&d), cases[i][1]);
        ks_document_clear(&d);
    }
}

/* A figure stands with its title, caption and id; without its file, a note in its place. */
TEST_IN_FOLDER(test_figures)
{
    struct ks_document d = {.n = 0};
    const struct ks_cell about = ks_cell_link(ks_cell_note(ks_cell_text("what"), "A \"title\""),
                                              "plot");

    write_text("a.svg", "<?xml?>\n<svg id=\"s\"/>");
    ks_document_add(&d, KS_BLOCK_FIGURE, "%s", scratch("a.svg"));
    ks_document_add(&d, KS_BLOCK_FIGURE, "%s", scratch("a.svg"));
    ks_document_cell(&d, about);
    ks_document_more(&d, " <i>%s</i>", "is it");
    ks_document_add(&d, KS_BLOCK_FIGURE, "%s", "");
    ks_document_cell(&d, about);
    assert_string_equal(
        as_html(&d),
        "<figure id=\"x-0-0\">\n<div class=\"plot\" role=\"img\" tabindex=\"0\">"
        "<svg id=\"x-0-0-s\"/></div>\n</figure>\n"
        "<figure id=\"plot\">\n<h3>A &quot;title&quot;</h3>\n<div class=\"plot\" role=\"img\" "
        "aria-label=\"A &quot;title&quot;\" tabindex=\"0\"><svg id=\"x-0-1-s\"/></div>\n"
        "<figcaption>what <i>is it</i></figcaption>\n</figure>\n"
        "<p class=\"note\" id=\"plot\">A &quot;title&quot;: what</p>\n");
    ks_document_clear(&d);
}

/* Tags of a format are emphasis; those of a text from a file, and the marks that stand for tags,
 * are shown as they are. */
TEST(test_emphasis)
{
    const char hostile[] = "<b>'>\16\24";
    struct ks_document d = {.n = 0};

    ks_document_add(&d, KS_BLOCK_TEXT, "<b>a</b> is <i>%s</i> <", "<b>");
    ks_document_more(&d, ", <a href='#%s'>see <code>c</code></a>", "x'y");
    ks_document_line(&d, "key", "<code>%d</code>", 1);
    ks_document_add(&d, KS_BLOCK_NOTE, "<i>%s</i>", hostile);
    ks_document_cells(&d, ks_cell_text(hostile));
    assert_string_equal(
        as_html(&d),
        "<p><b>a</b> is <i>&lt;b&gt;</i> &lt;, <a href='#x&#39;y'>see <code>c</code></a></p>\n"
        "<dl>\n<dt>key</dt>\n<dd><code>1</code></dd>\n</dl>\n"
        "<p class=\"note\">&#xFFFD;&lt;b&gt;&#39;&gt;&#xFFFD;&#xFFFD;&#xFFFD;</p>\n"
        "<tr><td class=\"text\">&lt;b&gt;&#39;&gt;&#xFFFD;&#xFFFD;</td></tr>\n"
        "</tbody>\n</table>\n</div>\n");
    assert_string_equal(on_terminal(&d, 80), "  a is <b> <, see c\n"
                                             "  key                  1\n"
                                             "  \\x7f<b>'>\\x7f\\x7f\\x7f\n"
                                             "  <b>'>\\x0e\\x14\n");
    ks_document_clear(&d);
}

/* A line opens to what follows, up to the next line, title or the end. */
TEST(test_lines_that_open)
{
    struct ks_cell yes = ks_cell_note(ks_cell_text("yes"), "why");
    struct ks_document d = {.n = 0};

    yes.look = KS_CELL_YES;
    ks_document_add(&d, KS_BLOCK_HEADS, "claim");
    ks_document_cell(&d, ks_cell_note(ks_cell_heading("verdict"), "by it"));
    ks_document_add(&d, KS_BLOCK_OPENS, "a");
    ks_document_cell(&d, ks_cell_link(yes, "verdict"));
    ks_document_add(&d, KS_BLOCK_NOTE, "more");
    ks_document_add(&d, KS_BLOCK_OPENS, "b");
    ks_document_add(&d, KS_BLOCK_SUBSECTION, "c");
    ks_document_add(&d, KS_BLOCK_OPENS, "d");
    assert_string_equal(
        as_html(&d),
        "<p class=\"heads\" aria-hidden=\"true\"><span>claim</span>"
        "<span>verdict<span class=\"kind\">by it</span></span></p>\n"
        "<details class=\"line\">\n<summary><span class=\"sentence\">a</span>"
        "<span class=\"text yes\" data-by=\"verdict\">yes<small>why</small></span></summary>\n"
        "<p class=\"note\">more</p>\n</details>\n"
        "<details class=\"line\">\n<summary><span class=\"sentence\">b</span></summary>\n"
        "</details>\n<h3>c</h3>\n"
        "<details class=\"line\">\n<summary><span class=\"sentence\">d</span></summary>\n"
        "</details>\n");
    ks_document_clear(&d);
}

static size_t count_of(char letter, const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == letter;
    return n;
}

/* A text is as long as it is: in a block, in a line, in a heading, in a cell, and appended. */
TEST(test_long_texts)
{
    enum { LONG = 10000, PLACES = 6 };
    char text[LONG + 1] = {0};
    struct ks_document d = {.n = 0};

    memset(text, '~', LONG);
    ks_document_add(&d, KS_BLOCK_TEXT, "%s", text);
    ks_document_more(&d, " and %s", text);
    ks_document_line(&d, "value", "%s", text);
    ks_document_more(&d, ", %s", text);
    ks_document_columns(&d, "", "%s", text);
    ks_document_cells(&d, ks_cell_text(text));
    assert_int_equal(count_of('~', on_terminal(&d, 80)), PLACES * LONG);
    assert_int_equal(count_of('~', as_html(&d)), PLACES * LONG);
    ks_document_clear(&d);
}

/* The first failure is kept, and a document with one is not printed. */
TEST(test_no_memory)
{
    struct starved s = {.least = 20};

    while (starving(&s)) {
        struct ks_document d = {.n = 0};

        fill(&d);
        s.status = ks_document_print(&d, 80, stdout);
        if (d.status != KS_OK)
            assert_int_equal(s.status, d.status);
        ks_document_clear(&d);
    }
}
