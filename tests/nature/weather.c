/* What the kernel says of the clock, and how long a rename takes, as a file says that all processes map: see weather.py.
   Preloaded, it comes before the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct weather {
    volatile int64_t ahead;  /* nanoseconds that the clock of the day is ahead */
    volatile int64_t slow;   /* nanoseconds that a rename takes */
};

static struct weather calm, *now_is = &calm;

__attribute__((constructor)) static void look(void) {
    const char *path = getenv("NATURE_WEATHER");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof calm, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) now_is = mapped;
    close(file);
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

static int (*real_clock)(clockid_t, struct timespec *);

static int read_clock(clockid_t which, struct timespec *found) {
    if (!real_clock) real_clock = (int (*)(clockid_t, struct timespec *))next("clock_gettime");
    return real_clock(which, found);
}

int clock_gettime(clockid_t which, struct timespec *found) {
    int said = read_clock(which, found);
    if (said == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) && now_is->ahead) {
        int64_t at = found->tv_sec * INT64_C(1000000000) + found->tv_nsec + now_is->ahead;
        found->tv_sec = at / INT64_C(1000000000);
        found->tv_nsec = at % INT64_C(1000000000);
    }
    return said;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec at;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    found->tv_sec = at.tv_sec;
    found->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (found) *found = at.tv_sec;
    return at.tv_sec;
}

static void dawdle(void) {
    int64_t slow = now_is->slow;
    struct timespec wait = {slow / INT64_C(1000000000), slow % INT64_C(1000000000)};
    if (slow) nanosleep(&wait, NULL);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real) real = (int (*)(const char *, const char *))next("rename");
    dawdle();
    return real(from, to);
}

int renameat(int there, const char *from, int here, const char *to) {
    static int (*real)(int, const char *, int, const char *);
    if (!real) real = (int (*)(int, const char *, int, const char *))next("renameat");
    dawdle();
    return real(there, from, here, to);
}

int renameat2(int there, const char *from, int here, const char *to, unsigned how) {
    static int (*real)(int, const char *, int, const char *, unsigned);
    if (!real) real = (int (*)(int, const char *, int, const char *, unsigned))next("renameat2");
    dawdle();
    return real(there, from, here, to, how);
}
