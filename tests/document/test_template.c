/* The templates of the report. */
#include "scratch.h"
#include "test.h"

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

static void add_word(void *data, const char *argument, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_WORDS, "%s|%s", (const char *)data, argument);
}

static void add_failure(void *data, const char *argument, struct ks_document *d)
{
    (void)data;
    d->status = ks_fail(KS_FULL, "no %s", argument);
}

static void add_words(void *data, struct ks_document *document)
{
    ks_document_add(document, KS_BLOCK_SECTION, "%s", (const char *)data);
}

/* Nothing without an argument, as for a condition. */
static void add_argument(void *data, const char *argument, struct ks_document *d)
{
    if (*argument)
        add_failure(data, argument, d);
}

static struct ks_document both[2];

static const struct ks_template_section sections[] = {
    {"word", .add_named = add_word},       {"absent", .add_named = add_argument},
    {"failure", .add_named = add_failure}, {"document", .add = add_words},
    {"both", .n = 2, .documents = both},   {.name = NULL},
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
    assert_string_equal(printed, "a data| b data|two words\n{ {c} }");
    assert_ok(fill("a{{if absent}} b {{absent now}} c{{end}} d{{if word}} e {{word}}{{end}}"));
    assert_string_equal(printed, "a d e data|");
    assert_ok(fill("a{{document}}"));
    assert_string_equal(printed, "a<section id=\"document-1\">\n<h2>data</h2>\n</section>\n");
    for (size_t i = 0; i < 2; i++)
        ks_document_add(&both[i], KS_BLOCK_SECTION, "%zu", i);
    assert_ok(fill("{{both}}"));
    assert_string_equal(printed, "<section id=\"both-1-1\">\n<h2>0</h2>\n</section>\n"
                                 "<section id=\"both-2-1\">\n<h2>1</h2>\n</section>\n");
    for (size_t i = 0; i < 2; i++)
        ks_document_clear(&both[i]);
    write_text("part", "{{as it is}}");
    assert_ok(fill("a {{include part}} b{{if absent}}{{include part}}{{end}}"));
    assert_string_equal(printed, "a {{as it is}} b");
}

TEST_IN_FOLDER(test_malformed_template)
{
    assert_fails(fill("a\n{{wrod}}"), KS_FORMAT, "template: 'wrod': the report has no section");
    assert_fails(fill("{{if wrod}}{{end}}"), KS_FORMAT, "template: 'wrod'");
    assert_fails(fill("{{if absent}}{{wrod}}{{end}}"), KS_FORMAT, "'wrod'");
    assert_fails(fill("{{include nothing}}"), KS_IO, "/nothing");
    assert_fails(fill("{{failure paper}}"), KS_FULL, "no paper");
}
