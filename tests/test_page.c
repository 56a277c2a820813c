/* The parts that the report is made of: text in HTML, templates. */
#include "tree.h"

#include "study/html.h"
#include "study/template.h"

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

static void test_text_in_html(void **state)
{
    (void)state;
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

static bool never(void *data)
{
    (void)data;
    return false;
}

static const struct ks_template_part parts[] = {
    {"word", print_word, NULL},
    {"absent", print_failure, never},
    {"failure", print_failure, NULL},
    {NULL, NULL, NULL},
};

static ks_status fill(const char *text)
{
    FILE *out = start_print();
    ks_status status;
    char data[] = "data";

    tree_write("template", text);
    status = ks_template_print(tree_path("template"), parts, data, out);
    fclose(out);
    return status;
}

static void test_template(void **state)
{
    (void)state;
    assert_ok(fill("a {{word}} b {{word two words}}\n{ {c} }"));
    assert_string_equal(printed, "a <data|> b <data|two words>\n{ {c} }");
    assert_ok(fill("a{{if absent}} b {{absent}} c{{end}} d{{if word}} e {{word}}{{end}}"));
    assert_string_equal(printed, "a d e <data|>");
}

static void test_malformed_template(void **state)
{
    (void)state;
    assert_fails(fill("a\n{{wrod}}"), KS_FORMAT, "template:2: 'wrod': the report has no part");
    assert_fails(fill("\n\n{{if wrod}}{{end}}"), KS_FORMAT, "template:3: 'wrod'");
    assert_fails(fill("{{if absent}}{{wrod}}{{end}}"), KS_FORMAT, "'wrod'");
    assert_fails(fill("a {{word"), KS_FORMAT, "template:1: '{{' without '}}'");
    assert_fails(fill("{{if word}} a"), KS_FORMAT, "template: 'if' without 'end'");
    assert_fails(fill("a {{end}}"), KS_FORMAT, "template:1: 'end' without 'if'");
    assert_fails(fill("{{if word}}{{if word}}{{end}}{{end}}"), KS_FORMAT, "within another 'if'");
    assert_fails(fill("{{failure paper}}"), KS_FULL, "no paper");
}

int main(void)
{
#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_in_html),
        IN_TREE(test_template),
        IN_TREE(test_malformed_template),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
