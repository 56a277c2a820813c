#include "damaged.h"

#include "example.h"

void write_foreign(const char *path)
{
    static const double values[2] = {3, 5};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    add_dataset(file, "/own", H5T_IEEE_F64LE, &(struct stored){1, {2}, values, 0});
    H5Fclose(file);
}

void break_heap(const char *path, uint64_t size)
{
    static const char HEAP[] = "GCOL";
    enum { OBJECT_SIZE = 24 }; /* offset from the heap's start */
    unsigned char *bytes, *heap;
    size_t n;

    write_foreign(path);
    set_string(path, "/", "format", "test");
    bytes = read_bytes(path, &n);
    for (heap = bytes; memcmp(heap, HEAP, sizeof HEAP - 1) != 0; heap++)
        assert_true(heap + OBJECT_SIZE + sizeof size < bytes + n);
    memcpy(heap + OBJECT_SIZE, &size, sizeof size);
    write_bytes(path, bytes, n);
}
