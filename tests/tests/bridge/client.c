/* A client of the proof of concept's socket, written against the bytes of its messages alone.
 *
 * usage: client SOCKET MESSAGE_SIZE, with one command per line on stdin, each answered by one line on stdout:
 *
 *   send TYPE DEVICE SIZE BUFFER_TYPE ID    sends a message
 *   ask TYPE DEVICE                         sends a question and prints the fields of its answer, - for none
 *   many COUNT SEED                         sends that many reports, and prints what it holds after them
 *   part BYTES                              sends the beginning of a report
 *   bytes CODE COUNT                        sends that many bytes of one value
 *   child                                   starts a process that has the connection and does nothing
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ALLOC = 1, FREE = 2, CB_ALLOC = 8, CB_FREE = 9, KERNEL_LOAD = 10, KERNEL_UNLOAD = 11 };
enum { DEVICES = 4, BUFFER_TYPES = 5, CLASSES = 9, SLOTS = 2048, FULL = 144 };

static int socket_fd;
static size_t message_size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

static void send_all(const unsigned char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(socket_fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) fail("send");
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void encode(unsigned char *bytes, int type, int device, uint64_t size, int buffer_type, uint64_t id) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    memset(bytes, 0, FULL);
    put(bytes, (uint64_t)type, 1);
    put(bytes + 4, (uint32_t)device, 4);
    put(bytes + 8, size, 8);
    put(bytes + 16, (uint64_t)buffer_type, 1);
    put(bytes + 20, (uint32_t)getpid(), 4);
    put(bytes + 24, id, 8);
    put(bytes + 32, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, 8);
}

static void report(int type, int device, uint64_t size, int buffer_type, uint64_t id) {
    unsigned char bytes[FULL];
    encode(bytes, type, device, size, buffer_type, id);
    send_all(bytes, message_size);
}

/* Fields behind the head: offset and length in the forms of 112 and 144 bytes; -1 where a form has none. */
static const struct { const char *name; int in_112, in_144, bytes; } FIELDS[] = {
    {"cb", -1, 72, 8},           {"kernel", -1, 80, 8},       {"total_dram", 72, 88, 8},  {"total_l1", 80, 96, 8},
    {"arch", 88, 104, 4},        {"channels", 92, 108, 4},    {"channel_bytes", 96, 112, 4},
    {"l1_per_core", 100, 116, 4}, {"available", 104, 120, 4}, {"devices", 108, 124, 4},   {"ring_total", -1, 128, 4},
    {"ring_used", -1, 132, 4},   {"ring_programs", -1, 136, 4},
};

static void ask(int type, int device) {
    unsigned char bytes[FULL];
    encode(bytes, type, device, 0, 0, 0);
    send_all(bytes, message_size);
    for (size_t filled = 0; filled < message_size;) {
        ssize_t got = recv(socket_fd, bytes + filled, message_size - filled, 0);
        if (got <= 0) fail("recv");
        filled += (size_t)got;
    }
    printf("type=%d device=%d dram=%" PRIu64 " l1=%" PRIu64 " l1_small=%" PRIu64 " trace=%" PRIu64, bytes[0],
           (int)(int32_t)get(bytes + 4, 4), get(bytes + 40, 8), get(bytes + 48, 8), get(bytes + 56, 8),
           get(bytes + 64, 8));
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        int at = message_size == 144 ? FIELDS[i].in_144 : message_size == 112 ? FIELDS[i].in_112 : -1;
        if (at < 0) printf(" %s=-", FIELDS[i].name);
        else printf(" %s=%" PRIu64, FIELDS[i].name, get(bytes + at, FIELDS[i].bytes));
    }
    printf("\n");
}

/* One allocation that may be live: classes 0 to 4 are the buffer types, 5 is CB, 6 to 8 are kernels. */
struct slot { uint64_t size; unsigned references; };
static struct slot slots[SLOTS];
static uint64_t random_state;

static uint64_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static int class_of(unsigned slot) { return (int)(slot / DEVICES % CLASSES); }

static void change(unsigned slot) {
    int class = class_of(slot), device = (int)(slot % DEVICES);
    struct slot *it = &slots[slot];
    int is_new = it->references == 0;
    if (is_new) it->size = 1 + next_random() % 65536;
    if (class < BUFFER_TYPES) {
        /* A second reference to what is live, now and then. */
        int more = is_new || (it->references < 3 && next_random() % 4 == 0);
        report(more ? ALLOC : FREE, device, more ? it->size : 0, more ? class : 0, slot);
        it->references += more ? 1 : -1u;
    } else if (class == BUFFER_TYPES) {
        report(is_new ? CB_ALLOC : CB_FREE, device, it->size, 0, slot);
        it->references = (unsigned)is_new;
    } else {
        report(is_new ? KERNEL_LOAD : KERNEL_UNLOAD, device, it->size, class - BUFFER_TYPES - 1, slot);
        it->references = (unsigned)is_new;
    }
}

static void many(unsigned count, uint64_t seed) {
    random_state = seed;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (unsigned i = 0; i < count; i++) change((unsigned)(next_random() % SLOTS));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    fprintf(stderr, "client: %u messages of %zu bytes in %.3f s: %.0f per second\n", count, message_size, seconds,
            count / seconds);
    for (int device = 0; device < DEVICES; device++) {
        for (int class = 0; class < CLASSES; class++) {
            uint64_t bytes = 0, live = 0;
            for (unsigned slot = 0; slot < SLOTS; slot++) {
                if ((int)(slot % DEVICES) != device || class_of(slot) != class || slots[slot].references == 0) continue;
                bytes += slots[slot].size;
                live++;
            }
            printf("%" PRIu64 " %" PRIu64 " ", bytes, live);
        }
    }
    printf("\n");
}

static void run(const char *line) {
    int type, device, buffer_type, code;
    unsigned count;
    uint64_t size, id, seed;
    if (sscanf(line, "send %d %d %" SCNu64 " %d %" SCNu64, &type, &device, &size, &buffer_type, &id) == 5) {
        report(type, device, size, buffer_type, id);
        printf("sent\n");
    } else if (sscanf(line, "ask %d %d", &type, &device) == 2) {
        ask(type, device);
    } else if (sscanf(line, "many %u %" SCNu64, &count, &seed) == 2) {
        many(count, seed);
    } else if (sscanf(line, "part %u", &count) == 1 && count < message_size) {
        unsigned char bytes[FULL];
        encode(bytes, ALLOC, 0, 4096, 0, 99);
        send_all(bytes, count);
        printf("sent\n");
    } else if (sscanf(line, "bytes %d %u", &code, &count) == 2 && count <= FULL) {
        unsigned char bytes[FULL];
        memset(bytes, code, FULL);
        send_all(bytes, count);
        printf("sent\n");
    } else if (strcmp(line, "child\n") == 0) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            /* Until the bridge closes the connection. */
            char byte;
            fclose(stdin);
            close(1);
            while (recv(socket_fd, &byte, 1, 0) > 0) {}
            _exit(0);
        }
        printf("%d\n", (int)child);
    } else {
        fprintf(stderr, "client: not understood: %s", line);
        exit(2);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path) return 2;
    strcpy(address.sun_path, argv[1]);
    message_size = strtoul(argv[2], NULL, 10);
    if (message_size < 72 || message_size > FULL) return 2;
    socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0 || connect(socket_fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    char line[256];
    while (fgets(line, sizeof line, stdin)) run(line);
    return 0;
}
