/* An example checkpoint as another program's files, with map and description, and its import. */
#ifndef KS_IMPORTING_H
#define KS_IMPORTING_H

#include "example_checkpoint.h"
#include "foreign_files.h"
#include "import/import.h"
#include "import/objects.h"
#include "scratch.h"

/* How the files are to be written. */
struct export
{
    const char *text; /* the description                                       */
    const char *type; /* of all numbers, as in struct foreign                  */
    bool torch;
    bool stacked; /* one array with an axis of critics in front; else one array for each critic */
};

static inline void write_text(const char *name, const char *text)
{
    write_bytes(scratch(name), text, strlen(text));
}

/* "q1.00_dense.kernel"; of all critics "q.00_dense.kernel" */
static inline void source_name(const struct ks_object *o, const char *critic, char *name)
{
    snprintf(name, FOREIGN_NAME, "q%s.%s", critic, o->name);
    *strchr(name, '/') = '.';
}

/* One critic's array, transposed in PyTorch's layout. */
static inline void export_values(const struct ks_checkpoint *c, const struct ks_object *o,
                                 bool torch, size_t critic, double *out)
{
    const struct ks_arch *arch = c->critic.arch;
    const bool frozen = !o->state && o->offset >= arch->parameters;
    const double *from = o->state ? c->critic.state + critic * arch->states
                         : frozen ? c->critic.frozen + critic * arch->frozen
                                  : c->critic.w + critic * arch->parameters;
    const size_t at = o->offset - (frozen ? arch->parameters : 0);
    const size_t rows = o->n_dims == 2 ? o->dims[0] : 1, columns = o->dims[o->n_dims - 1];

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            out[torch && o->n_dims == 2 ? j * rows + i : i * columns + j] =
                from[at + i * columns + j];
}

static inline void export_object(const struct ks_checkpoint *c, const struct ks_object *o,
                                 const struct export *e, struct foreign_list *files)
{
    const bool swap = e->torch && o->n_dims == 2;
    const size_t dims[3] = {c->critic.ensemble, swap ? o->dims[1] : o->dims[0],
                            swap ? o->dims[0] : o->dims[1]};
    const size_t size = o->dims[0] * (o->n_dims == 2 ? o->dims[1] : 1);
    char name[FOREIGN_NAME], number[8];
    struct foreign *a;

    if (e->stacked) {
        source_name(o, "", name);
        a = foreign_add(files, name, e->type, o->n_dims + 1, dims);
        for (size_t k = 0; k < c->critic.ensemble; k++)
            export_values(c, o, e->torch, k, a->values + k * size);
        return;
    }
    for (size_t k = c->critic.ensemble; k-- > 0;) { /* in the file's order, the last comes first */
        snprintf(number, sizeof number, "%zu", k + 9); /* q9, q10 */
        source_name(o, number, name);
        a = foreign_add(files, name, e->type, o->n_dims, dims + 1);
        export_values(c, o, e->torch, k, a->values);
    }
}

static inline void export_batch(const struct ks_checkpoint *c, const char *type,
                                struct foreign_list *files)
{
    const size_t k = c->critic.arch->loss.targets;
    const size_t input[3] = {c->minibatches, c->rows, c->critic.arch->in};
    const size_t target[3] = {c->minibatches, c->loss_rows, k};
    struct foreign *a;

    a = foreign_add(files, "input", type, 3, input);
    memcpy(a->values, c->input, foreign_count(a) * sizeof *a->values);
    a = foreign_add(files, "target", type, k == 1 ? 2 : 3, target);
    memcpy(a->values, c->target, foreign_count(a) * sizeof *a->values);
}

/* Fills the lists of arrays; writes a.arch and m.map; returns the checkpoint, which the caller
 * frees. */
static inline struct ks_checkpoint *
export_example(const struct export *e, struct foreign_list *critic, struct foreign_list *batch)
{
    struct ks_checkpoint *c = make_plain(e->text);
    struct ks_objects objects;
    char map[8192], name[FOREIGN_NAME];

    assert_ok(ks_objects_of(c->critic.arch, &objects));
    critic->n = batch->n = 0;
    snprintf(map, sizeof map, "# an example\nlayout = %s\n", e->torch ? "torch" : "flax");
    for (size_t i = 0; i < objects.n; i++) {
        export_object(c, &objects.list[i], e, critic);
        source_name(&objects.list[i], e->stacked ? "" : "*", name);
        snprintf(map + strlen(map), sizeof map - strlen(map), "%s = %s\n", objects.list[i].name,
                 name);
    }
    free(objects.list);
    export_batch(c, e->type, batch);
    write_text("a.arch", e->text);
    write_text("m.map", map);
    return c;
}

/* Appends a line to m.map. */
static inline void extend_map(const char *line)
{
    FILE *file = fopen(scratch("m.map"), "a");

    assert_non_null(file);
    assert_true(fprintf(file, "%s\n", line) > 0);
    assert_int_equal(fclose(file), 0);
}

/* Imports `weights` of the scratch folder with its a.arch, m.map and b.npz to c.h5. */
static inline ks_status import_files(size_t n, const char *const *weights,
                                     const struct ks_axes *axes)
{
    char paths[5][512];
    const char *list[4];
    const char *const names[] = {"a.arch", "m.map", "b.npz", "c.h5"};
    char fixed[4][512];
    struct ks_import import = {.n_weights = n, .weights = list, .quiet = true};

    assert_true(n <= 4);
    for (size_t i = 0; i < 4; i++)
        snprintf(fixed[i], sizeof fixed[i], "%s", scratch(names[i]));
    for (size_t i = 0; i < n; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch(weights[i]));
        list[i] = paths[i];
    }
    import.arch = fixed[0], import.map = fixed[1], import.batch = fixed[2];
    import.output = fixed[3];
    if (axes)
        import.axes = *axes;
    return ks_import_run(&import);
}

static inline ks_status import_one(const char *weights)
{
    return import_files(1, &weights, NULL);
}

/* c.h5 has the same bytes as the checkpoint would have, written directly. */
static inline void assert_imported(const struct ks_checkpoint *c, bool single)
{
    unsigned char *found, *expected;
    size_t n, m;

    assert_ok(ks_checkpoint_write(scratch("expected.h5"), c, single));
    expected = read_bytes(scratch("expected.h5"), &n);
    found = read_bytes(scratch("c.h5"), &m);
    assert_int_equal(m, n);
    assert_memory_equal(found, expected, n);
    free(found);
    free(expected);
    remove(scratch("c.h5"));
}

/* The import fails with these words, and nothing is written. */
#define assert_refused(call, status, words)                                                        \
    do {                                                                                           \
        assert_fails(call, status, words);                                                         \
        assert_null(strchr(ks_error_text(), '\n'));                                                \
        assert_int_not_equal(access(scratch("c.h5"), F_OK), 0);                                    \
    } while (0)

#endif
