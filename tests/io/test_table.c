/* Tables: columns, cells and what is printed. */
#include "test.h"

#include "core/interval.h"
#include "core/memory.h"
#include "io/table.h"

static void check_printed(const struct ks_table *table, const char *expected)
{
    KS_OWNED char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    ks_table_print(table, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
}

TEST(test_columns)
{
    struct ks_table table = {0};

    ks_table_columns(&table, "architecture*,a~,b|,c%,d,...");
    ks_table_column(&table, "e~");
    check_printed(&table, "architecture,normalization,weight_normalization,loss,a,a_low,a_high,"
                          "b,b_lower,b_upper,c_lower,c_upper,c_least,c_most,d,e~\n");
    assert_false(ks_table_has_number(&table, "a_low"));
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

TEST(test_cells)
{
    struct ks_table table = {0};

    fill(&table);
    assert_int_equal(table.status, KS_OK);
    check_printed(&table, "name,step,x,x_low,x_high\na,123456789012,0.1234567891,-inf,-\n"
                          "b,0,1e+20,1,-0.5\na,1,2,-inf,-\n");
    assert_true(ks_table_has_number(&table, "x_low"));
    assert_false(ks_table_has_number(&table, "name"));
    ks_table_free(&table);
    ks_table_columns(&table, "x~");
    ks_table_cells(&table, KS_ESTIMATE(estimate));
    assert_true(ks_table_has_number(&table, "x"));
    assert_false(ks_table_has_number(&table, "x_low") || ks_table_has_number(&table, "x_high"));
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
