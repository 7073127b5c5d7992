/* A disk that fails: of the calls that change files below a folder, the n-th.
 *
 * Loaded before the C library (LD_PRELOAD), so that it also sees what SQLite, Arrow and others write. What it counts is
 * shared by a process and its forks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ONCE, FULL, KILL }; /* one call fails; it does half its work, and all after it fail; it does half, and kills */

static struct {
    char folder[4096];
    long count, fail_at;
    int way, error;
} *disk;

__attribute__((constructor)) static void make_disk(void) {
    disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (disk == MAP_FAILED) abort();
}

/* Count from now on, and let call `fail_at` fail; 0: none. */
void disk_arm(const char *folder, long fail_at, int way, int error) {
    strncpy(disk->folder, folder, sizeof disk->folder - 1);
    disk->fail_at = fail_at, disk->way = way, disk->error = error, disk->count = 0;
}

long disk_count(void) { return disk->count; }

static int is_below(const char *path) {
    size_t size = strlen(disk->folder);
    return size && path && !strncmp(path, disk->folder, size);
}

static int is_file_below(int descriptor) {
    char name[64], path[4096];
    if (!disk->folder[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(name, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

/* 0: the call works; 1: it fails; 2: it does half its work. */
static int fate(int removes) {
    long number = __sync_add_and_fetch(&disk->count, 1);
    if (!disk->fail_at || number < disk->fail_at || (number > disk->fail_at && disk->way != FULL)) return 0;
    if (disk->way == FULL && removes) return 0; /* a full disk lets files be removed */
    errno = disk->error;
    return number == disk->fail_at && disk->way != ONCE ? 2 : 1;
}

static void end_if_killed(void) {
    if (disk->way == KILL) kill(getpid(), SIGKILL), pause();
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A call that has no half: it is killed before it is made. */
#define WHOLE(is_ours, removes, call)                      \
    do {                                                   \
        int then = (is_ours) ? fate(removes) : 0;          \
        if (then == 2) end_if_killed();                    \
        if (then) return -1;                               \
        return call;                                       \
    } while (0)

#define WRITES(name, ...)                                                        \
    do {                                                                         \
        int then = is_file_below(descriptor) ? fate(0) : 0;                      \
        if (then == 1) return -1;                                                \
        if (then == 2) {                                                         \
            int error = errno;                                                   \
            size_t half = size / 2;                                              \
            ssize_t done = half ? real(descriptor, content, half, ##__VA_ARGS__) : -1; \
            end_if_killed();                                                     \
            errno = error;                                                       \
            return done;                                                         \
        }                                                                        \
        return real(descriptor, content, size, ##__VA_ARGS__);                   \
    } while (0)

ssize_t write(int descriptor, const void *content, size_t size) {
    REAL(write);
    WRITES(write);
}
ssize_t pwrite(int descriptor, const void *content, size_t size, off_t offset) {
    REAL(pwrite);
    WRITES(pwrite, offset);
}
ssize_t pwrite64(int descriptor, const void *content, size_t size, off64_t offset) {
    REAL(pwrite64);
    WRITES(pwrite64, offset);
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(writev);
    WHOLE(is_file_below(descriptor), 0, real(descriptor, parts, count));
}
int fsync(int descriptor) {
    REAL(fsync);
    WHOLE(is_file_below(descriptor), 0, real(descriptor));
}
int fdatasync(int descriptor) {
    REAL(fdatasync);
    WHOLE(is_file_below(descriptor), 0, real(descriptor));
}
int ftruncate(int descriptor, off_t size) {
    REAL(ftruncate);
    WHOLE(is_file_below(descriptor), 0, real(descriptor, size));
}
int ftruncate64(int descriptor, off64_t size) {
    REAL(ftruncate64);
    WHOLE(is_file_below(descriptor), 0, real(descriptor, size));
}
int rename(const char *from, const char *to) {
    REAL(rename);
    WHOLE(is_below(to), 0, real(from, to));
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(renameat);
    WHOLE(is_below(to), 0, real(from_folder, from, to_folder, to));
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    WHOLE(is_below(path), 0, real(path, mode));
}
int unlink(const char *path) {
    REAL(unlink);
    WHOLE(is_below(path), 1, real(path));
}
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    WHOLE(is_below(path), 1, real(folder, path, flags));
}

#define OPENS(name, call)                                                      \
    mode_t mode = 0;                                                           \
    if (flags & (O_CREAT | O_TMPFILE)) {                                       \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        mode = va_arg(rest, mode_t);                                           \
        va_end(rest);                                                          \
    }                                                                          \
    REAL(name);                                                                \
    int writes = flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);              \
    WHOLE(writes && is_below(path), 0, call)

int open(const char *path, int flags, ...) { OPENS(open, real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { OPENS(open64, real(path, flags, mode)); }
int openat(int folder, const char *path, int flags, ...) { OPENS(openat, real(folder, path, flags, mode)); }
int openat64(int folder, const char *path, int flags, ...) { OPENS(openat64, real(folder, path, flags, mode)); }
