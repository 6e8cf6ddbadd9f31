// Holds a thread inside a function of tt-metal, so that a test can do something meanwhile: to be preloaded.
//
// The functions of tt-metal's allocator take its mutex first and release it last. A thread is held right before the one or
// right after the other: it has begun a call that has done nothing yet, or it has done everything and has not returned.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Thread_local const char *before_lock, *after_unlock;
static atomic_int held, released;

// Waits if the caller is the function that this thread is to be held in.
static void wait_in(const char **function, void *caller) {
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_sname || strcmp(info.dli_sname, *function)) {
        return;
    }
    *function = NULL;
    held = 1;
    while (!released) {
        usleep(1000);
    }
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static int (*_Atomic lock)(pthread_mutex_t *);
    if (!lock) {
        lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    }
    if (before_lock) {
        wait_in(&before_lock, __builtin_return_address(0));
    }
    return lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    static int (*_Atomic unlock)(pthread_mutex_t *);
    if (!unlock) {
        unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    }
    const int result = unlock(mutex);
    if (after_unlock) {
        wait_in(&after_unlock, __builtin_return_address(0));
    }
    return result;
}

// Holds this thread the next time that it is in the function of this (mangled) name.
void hold_before_lock(const char *function) { before_lock = function; }
void hold_after_unlock(const char *function) { after_unlock = function; }

int hold_is_held(void) { return held; }
void hold_release(void) { released = 1; }
