/* Tests of arenas: one block for all arrays of an object. */
#include "test.h"

#include "core/memory.h"

/* Two arrays, and lines with two arrays each. */
struct line {
    double *value;
    char *name;
};
struct table {
    size_t rows, columns, weights;
    size_t runs; /* of the layout function */
    struct line *line;
    double *weight;
};

static void lay_out_line(struct ks_arena *arena, size_t columns, struct line *line)
{
    line->value = KS_TAKE(arena, columns, double);
    line->name = KS_TAKE(arena, columns, char);
}

static void lay_out(struct ks_arena *arena, void *object)
{
    struct table *t = object;

    t->runs++;
    t->line = KS_TAKE(arena, t->rows, struct line);
    for (size_t i = 0; i < t->rows; i++)
        lay_out_line(arena, t->columns, KS_TAKEN(t->line, i, struct line));
    t->weight = KS_TAKE(arena, t->weights, double);
}

/* The arrays are aligned, zeroed and apart, and the count is what is allocated. */
TEST(test_arrays)
{
    struct table t = {.rows = 3, .columns = 5, .weights = 9};
    size_t counted = ks_arena_count(lay_out, &t), before = ks_alloc_total();
    struct ks_arena arena;

    assert_null(t.line);
    assert_null(t.weight);
    assert_ok(ks_arena_make(&arena, lay_out, &t));
    assert_int_equal(t.runs, 3);
    assert_int_equal(arena.bytes, counted);
    assert_int_equal(ks_alloc_total() - before, counted);
    for (size_t i = 0; i < t.rows; i++) {
        assert_int_equal((uintptr_t)t.line[i].value % 64, 0);
        assert_int_equal((uintptr_t)t.line[i].name % 64, 0);
        for (size_t j = 0; j < t.columns; j++) {
            assert_true(t.line[i].value[j] == 0 && t.line[i].name[j] == 0);
            t.line[i].value[j] = (double)(10 * i + j);
            t.line[i].name[j] = (char)('a' + i);
        }
    }
    for (size_t k = 0; k < t.weights; k++)
        t.weight[k] = -1;
    for (size_t i = 0; i < t.rows; i++)
        for (size_t j = 0; j < t.columns; j++) {
            assert_close(t.line[i].value[j], (double)(10 * i + j), 0);
            assert_int_equal(t.line[i].name[j], 'a' + i);
        }
    ks_arena_free(&arena);
    assert_null(arena.block);
    ks_arena_free(&arena);
}

/* Sizes that cannot be counted, of one array or of all together, and a failed allocation. */
TEST(test_failures)
{
    const struct table refused[] = {
        {.weights = SIZE_MAX / 4},
        {.rows = 3, .columns = 5, .weights = SIZE_MAX / sizeof(double)},
        {.rows = 4, .columns = SIZE_MAX / 4 / sizeof(double)},
    };
    struct ks_arena arena;
    struct table t = {.rows = 1, .columns = 1};

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct table r = refused[i];

        assert_true(ks_arena_count(lay_out, &r) == SIZE_MAX);
        assert_fails(ks_arena_make(&arena, lay_out, &r), KS_MEMORY, "out of memory");
        assert_null(arena.block);
        assert_null(r.weight);
    }
    ks_alloc_fail_at(1);
    assert_fails(ks_arena_make(&arena, lay_out, &t), KS_MEMORY, "out of memory");
    assert_null(t.line);
    assert_ok(ks_arena_make(&arena, lay_out, &t));
    ks_arena_free(&arena);
}
