/* An example checkpoint as the files of another program, with a map and a description, and its
 * import. */
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

/* What is exported: the arrays of w.npz and of b.npz. */
static struct foreign_list critic, batch;
static const struct export torch64 = {.text = MSE, .type = "<f8", .torch = true};

/* Prints "q1.00_dense.kernel" for critic number "1", or "q.00_dense.kernel" for number "". */
static inline void source_name(const struct ks_object *o, const char *number, char *name)
{
    snprintf(name, FOREIGN_NAME, "q%s.%s", number, o->name);
    *strchr(name, '/') = '.';
}

/* Copies the array of critic e, transposed if it is a matrix in PyTorch's layout. */
static inline void export_values(const struct ks_checkpoint *c, const struct ks_object *o,
                                 bool torch, size_t e, double *out)
{
    const struct KS(arch) *arch = c->critic.arch;
    const bool frozen = !o->state && o->offset >= arch->parameters;
    const double *from = o->state ? c->critic.state + e * arch->states
                         : frozen ? c->critic.frozen + e * arch->frozen
                                  : c->critic.w + e * arch->parameters;
    const size_t at = o->offset - (frozen ? arch->parameters : 0);
    const size_t rows = o->n_dims == 2 ? o->dims[0] : 1, columns = o->dims[o->n_dims - 1];

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            out[torch && o->n_dims == 2 ? j * rows + i : i * columns + j] =
                from[at + i * columns + j];
}

static inline void export_object(const struct ks_checkpoint *c, const struct ks_object *o,
                                 const struct export *e)
{
    const bool swap = e->torch && o->n_dims == 2;
    const size_t dims[3] = {c->critic.ensemble, swap ? o->dims[1] : o->dims[0],
                            swap ? o->dims[0] : o->dims[1]};
    const size_t size = o->dims[0] * (o->n_dims == 2 ? o->dims[1] : 1);
    char name[FOREIGN_NAME], number[8];
    struct foreign *a;

    if (e->stacked) {
        source_name(o, "", name);
        a = foreign_add(&critic, name, e->type, o->n_dims + 1, dims);
        for (size_t k = 0; k < c->critic.ensemble; k++)
            export_values(c, o, e->torch, k, a->values + k * size);
        return;
    }
    for (size_t k = c->critic.ensemble; k-- > 0;) { /* in the file's order, the last comes first */
        snprintf(number, sizeof number, "%zu", k + 9); /* q9, q10 */
        source_name(o, number, name);
        a = foreign_add(&critic, name, e->type, o->n_dims, dims + 1);
        export_values(c, o, e->torch, k, a->values);
    }
}

static inline void export_batch(const struct ks_checkpoint *c, const char *type)
{
    const size_t k = c->critic.arch->loss.targets;
    const size_t input[3] = {c->minibatches, c->rows, c->critic.arch->in};
    const size_t target[3] = {c->minibatches, c->loss_rows, k};
    struct foreign *a;

    a = foreign_add(&batch, "input", type, 3, input);
    memcpy(a->values, c->input, foreign_count(a) * sizeof *a->values);
    a = foreign_add(&batch, "target", type, k == 1 ? 2 : 3, target);
    memcpy(a->values, c->target, foreign_count(a) * sizeof *a->values);
}

/* Fills the lists of arrays. */
static inline void export_arrays(const struct ks_checkpoint *c, const struct export *e)
{
    struct ks_objects objects;

    foreign_clear(&critic);
    foreign_clear(&batch);
    assert_ok(ks_objects_of(c->critic.arch, &objects));
    for (size_t i = 0; i < objects.n; i++)
        export_object(c, &objects.list[i], e);
    export_batch(c, e->type);
    free(objects.list);
}

/* Writes a.arch and m.map. */
static inline void export_texts(const struct ks_checkpoint *c, const struct export *e)
{
    char map[8192], name[FOREIGN_NAME];
    struct ks_objects objects;

    assert_ok(ks_objects_of(c->critic.arch, &objects));
    snprintf(map, sizeof map, "# an example\nlayout = %s\n", e->torch ? "torch" : "flax");
    for (size_t i = 0; i < objects.n; i++) {
        source_name(&objects.list[i], e->stacked ? "" : "*", name);
        snprintf(map + strlen(map), sizeof map - strlen(map), "%s = %s\n", objects.list[i].name,
                 name);
    }
    free(objects.list);
    write_text("a.arch", e->text);
    write_text("m.map", map);
}

/* Writes w.npz and b.npz. */
static inline void write_files(void)
{
    write_npz(scratch("w.npz"), &critic, ZIP_CM_DEFLATE);
    write_npz(scratch("b.npz"), &batch, ZIP_CM_STORE);
}

/* Fills the lists and writes all files. Returns the checkpoint; the test ends with clear_files. */
static inline struct ks_checkpoint *export_example(const struct export *e)
{
    struct ks_checkpoint *c = make_plain(e->text);

    export_arrays(c, e);
    export_texts(c, e);
    write_files();
    return c;
}

static inline void clear_files(struct ks_checkpoint *c)
{
    foreign_clear(&critic);
    foreign_clear(&batch);
    ks_checkpoint_free(c);
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

/* c.h5 has the same bytes as the checkpoint if that is written directly. */
static inline void assert_imported(const struct ks_checkpoint *c, bool single)
{
    assert_ok(ks_checkpoint_write(scratch("expected.h5"), c, single));
    assert_same_files(scratch("c.h5"), scratch("expected.h5"));
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
