/* ks_memory_available, with the /proc and /sys of imaginary machines. */
#include "scratch.h"

#include "core/memory.h"

/* 8,192,000 bytes. */
static const char MEMINFO[] = "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    8000 kB\n";

static void assert_free(size_t expected)
{
    assert_int_equal(ks_memory_available(scratch_folder, 1), expected);
}

TEST_IN_FOLDER(test_machine)
{
    assert_true(ks_memory_available("", 1) > 1000000);
    assert_true(ks_memory_available(scratch_folder, 1) > 1000000); /* no /proc: sysconf's number */
    write_text("proc/meminfo", MEMINFO);
    assert_free(8192000);
    write_text("proc/self/cgroup", "0::/\n");
    assert_free(8192000);
}

/* The minimum over the group and its parents; reclaimable file cache counts as free. */
TEST_IN_FOLDER(test_v2)
{
    write_text("proc/meminfo", MEMINFO);
    write_text("proc/self/cgroup", "0::/slurm/job/step\n");
    write_text("sys/fs/cgroup/slurm/job/step/memory.max", "max\n");
    write_text("sys/fs/cgroup/slurm/job/step/memory.current", "300000\n");
    assert_free(8192000);
    write_text("sys/fs/cgroup/slurm/job/memory.max", "500000\n");
    write_text("sys/fs/cgroup/slurm/job/memory.current", "300000\n");
    assert_free(200000);
    write_text("sys/fs/cgroup/slurm/job/memory.stat",
               "anon 9\ninactive_file 50000\nactive_file 7\n");
    assert_free(250000);
    write_text("sys/fs/cgroup/memory.max",
               "400000\n"); /* as in a container, the root group has a limit */
    write_text("sys/fs/cgroup/memory.current", "399000\n");
    assert_free(1000);
    write_text("sys/fs/cgroup/memory.current", "400000\n");
    assert_free(1); /* nothing left; 0 would mean unknown */
}

TEST_IN_FOLDER(test_v1)
{
    write_text("proc/meminfo", MEMINFO);
    write_text("proc/self/cgroup", "9:name=systemd:/a\n4:cpu,memory:/job\n2:cpuset:/b\n0::/\n");
    write_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    assert_free(8192000);
    write_text("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "600000\n");
    write_text("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");
    write_text("sys/fs/cgroup/memory/job/memory.stat",
               "inactive_file 3\ntotal_inactive_file 70000\n");
    assert_free(170000);
}

/* The process's own limits: all mapped memory counts, and the rest is not divided among processes.
 */
TEST_IN_FOLDER(test_own_limits)
{
    write_text("proc/meminfo", MEMINFO);
    write_text("proc/self/status", "VmPeak: 9000 kB\nVmSize:     2000 kB\nVmData:\t    500 kB\n");
    write_text("proc/self/limits", "Limit        Soft Limit  Hard Limit  Units\n"
                                   "Max data size          unlimited   unlimited   bytes\n"
                                   "Max address space      unlimited   unlimited   bytes\n");
    assert_free(8192000);
    assert_true(isinf(ks_memory_left_by_limits(scratch_folder)));
    write_text("proc/self/limits", "Max data size          unlimited   unlimited   bytes\n"
                                   "Max address space      5120000   unlimited   bytes\n");
    assert_free(3072000);
    assert_int_equal(ks_memory_available(scratch_folder, 2), 3072000);
    assert_int_equal(ks_memory_available(scratch_folder, 4), 2048000);
    write_text("proc/self/limits", "Max data size          1000000     unlimited   bytes\n"
                                   "Max address space      5120000   unlimited   bytes\n");
    assert_free(488000);
    write_text("proc/self/limits", "Max data size          500000     unlimited   bytes\n");
    assert_free(1); /* nothing left; 0 would mean unknown */
}
