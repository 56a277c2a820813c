/* Text in HTML, and the templates of the report. */
#include "scratch.h"
#include "test.h"

#include "document/html.h"
#include "document/template.h"

/* What a function prints, in a static buffer. */
static char printed[4096];

static FILE *start_print(void)
{
    FILE *out = fmemopen(printed, sizeof printed, "w");

    memset(printed, 0, sizeof printed);
    assert_non_null(out);
    return out;
}

static const char *escaped(const char *text)
{
    FILE *out = start_print();

    ks_html_text(out, text);
    fclose(out);
    return printed;
}

TEST(test_text_in_html)
{
    assert_string_equal(escaped("bn+wn+ce, kappa 1e+06"), "bn+wn+ce, kappa 1e+06");
    assert_string_equal(escaped("</pre><script>x</script>"),
                        "&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;");
    assert_string_equal(escaped("\" onload='x' &amp;"), "&quot; onload=&#39;x&#39; &amp;amp;");
    assert_string_equal(escaped("κ\ta\nb\x1b[0m\x7f"), "κ\ta\nb&#xFFFD;[0m&#xFFFD;");
}

static ks_status print_word(void *data, const char *argument, FILE *out)
{
    fprintf(out, "<%s|%s>", (const char *)data, argument);
    return KS_OK;
}

static ks_status print_failure(void *data, const char *argument, FILE *out)
{
    (void)data;
    (void)out;
    return ks_fail(KS_FULL, "no %s", argument);
}

static void add_words(void *data, struct ks_document *document)
{
    ks_document_add(document, KS_BLOCK_TEXT, "%s", (const char *)data);
}

static bool never(const void *data)
{
    (void)data;
    return false;
}

static const struct ks_template_section sections[] = {
    {"word", .print_named = print_word},
    {"absent", .present = never, .print_named = print_failure},
    {"failure", .print_named = print_failure},
    {"document", .add = add_words},
    {.name = NULL},
};

static ks_status fill(const char *text)
{
    FILE *out = start_print();
    ks_status status;
    char data[] = "data";

    write_text("template", text);
    status = ks_template_print(scratch("template"), sections, data, out);
    fclose(out);
    return status;
}

TEST_IN_FOLDER(test_template)
{
    assert_ok(fill("a {{word}} b {{word two words}}\n{ {c} }"));
    assert_string_equal(printed, "a <data|> b <data|two words>\n{ {c} }");
    assert_ok(fill("a{{if absent}} b {{absent}} c{{end}} d{{if word}} e {{word}}{{end}}"));
    assert_string_equal(printed, "a d e <data|>");
    assert_ok(fill("a{{document}}"));
    assert_string_equal(printed, "a<p>data</p>\n");
    write_text("part", "{{as it is}}");
    assert_ok(fill("a {{include part}} b{{if absent}}{{include part}}{{end}}"));
    assert_string_equal(printed, "a {{as it is}} b");
}

TEST_IN_FOLDER(test_malformed_template)
{
    assert_fails(fill("a\n{{wrod}}"), KS_FORMAT, "template:2: 'wrod': the report has no section");
    assert_fails(fill("\n\n{{if wrod}}{{end}}"), KS_FORMAT, "template:3: 'wrod'");
    assert_fails(fill("{{if absent}}{{wrod}}{{end}}"), KS_FORMAT, "'wrod'");
    assert_fails(fill("a {{word"), KS_FORMAT, "template:1: '{{' without '}}'");
    assert_fails(fill("{{if word}} a"), KS_FORMAT, "template: 'if' without 'end'");
    assert_fails(fill("a {{end}}"), KS_FORMAT, "template:1: 'end' without 'if'");
    assert_fails(fill("{{if word}}{{if word}}{{end}}{{end}}"), KS_FORMAT, "within another 'if'");
    assert_fails(fill("{{include nothing}}"), KS_IO, "/nothing");
    assert_fails(fill("{{failure paper}}"), KS_FULL, "no paper");
}
