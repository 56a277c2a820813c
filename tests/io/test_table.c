/* Tables in memory: columns, cells, what is printed, and what is read. */
#include "test.h"

#include "core/interval.h"
#include "io/table.h"

static void check_printed(const struct ks_table *table, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    ks_table_print(table, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
}

TEST(test_columns)
{
    struct ks_table table = {0};

    ks_table_columns(&table, "architecture*,a~,b|,c%,d,...");
    ks_table_column(&table, "e~");
    check_printed(&table, "architecture,normalization,weight_normalization,loss,a,a_low,a_high,"
                          "b,b_lower,b_upper,c_lower,c_upper,c_least,c_most,d,e~\n");
    assert_int_equal(ks_table_rows(&table), 0);
    ks_table_free(&table);
}

static const struct ks_estimate estimate = {0.12345678912345, {-INFINITY, NAN}};

static void fill(struct ks_table *table)
{
    ks_table_columns(table, "name,step,x~");
    ks_table_cells(table, KS_TEXT("a"), KS_COUNT(123456789012), KS_ESTIMATE(estimate));
    ks_table_cells(table, KS_TEXT("b"), KS_COUNT(0));
    ks_table_cells(table, KS_NUMBER(1e20), KS_NUMBER(1), KS_NUMBER(-0.5));
    ks_table_cells(table, KS_TEXT("a"), KS_COUNT(1), KS_NUMBER(2), KS_INTERVAL(estimate.in));
}

/* A number is read as it is printed, so that a reader of the file finds the same one. */
TEST(test_cells)
{
    struct ks_table table = {0};

    fill(&table);
    assert_int_equal(table.status, KS_OK);
    check_printed(&table, "name,step,x,x_low,x_high\na,123456789012,0.1234567891,-inf,-\n"
                          "b,0,1e+20,1,-0.5\na,1,2,-inf,-\n");
    assert_int_equal(ks_table_rows(&table), 3);
    assert_string_equal(ks_table_text(&table, 1, "name"), "b");
    assert_true(ks_table_value(&table, 0, "x") == 0.1234567891);
    assert_true(isinf(ks_table_value(&table, 0, "x_low")));
    assert_true(isnan(ks_table_value(&table, 0, "x_high")));
    assert_true(isnan(ks_table_value(&table, 0, "name")));
    assert_true(ks_table_is_first(&table, 1, "name"));
    assert_false(ks_table_is_first(&table, 2, "name"));
    ks_table_free(&table);
}

TEST(test_no_memory)
{
    struct starved s = {.least = 10};

    while (starving(&s)) {
        struct ks_table table = {0};

        fill(&table);
        s.status = table.status;
        ks_table_free(&table);
    }
}
