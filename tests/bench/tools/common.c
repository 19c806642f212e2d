#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void *take(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        die("out of memory");
    return memory;
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t own_cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

// -- octets ------------------------------------------------------------------------------------------------

void put_raw(struct bytes *to, const void *from, size_t len) {
    if (to->len + len > to->room) {
        to->room = 2 * (to->len + len) + 64;
        to->at = realloc(to->at, to->room);
        if (!to->at)
            die("out of memory");
    }
    if (len)
        memcpy(to->at + to->len, from, len);
    to->len += len;
}

void put8(struct bytes *to, unsigned value) { put_raw(to, &(uint8_t){(uint8_t)value}, 1); }

void put16(struct bytes *to, unsigned value) {
    put8(to, value >> 8 & 0xFF);
    put8(to, value & 0xFF);
}

void put32(struct bytes *to, uint32_t value) {
    put16(to, value >> 16);
    put16(to, value & 0xFFFF);
}

void put64(struct bytes *to, uint64_t value) {
    put32(to, (uint32_t)(value >> 32));
    put32(to, (uint32_t)value);
}

void put_short(struct bytes *to, const char *text) {
    put8(to, (unsigned)strlen(text));
    put_raw(to, text, strlen(text));
}

void put_long(struct bytes *to, const void *text, size_t len) {
    put32(to, (uint32_t)len);
    put_raw(to, text, len);
}

// -- frames ------------------------------------------------------------------------------------------------

static size_t frame_begin(struct bytes *to, unsigned type, unsigned channel) {
    put8(to, type);
    put16(to, channel);
    put32(to, 0); // its size, which frame_end knows
    return to->len;
}

size_t method_begin(struct bytes *to, unsigned channel, uint32_t id) {
    size_t mark = frame_begin(to, FRAME_METHOD, channel);
    put32(to, id);
    return mark;
}

void frame_end(struct bytes *to, size_t mark) {
    size_t size = to->len - mark;
    for (unsigned i = 0; i < 4; i++)
        to->at[mark - 4 + i] = (uint8_t)(size >> (24 - 8 * i));
    put8(to, FRAME_END);
}

const char *consumer_tag = "bench";
bool with_headers;

// Three headers, as tests/bench/instructions.py has them.
static void put_headers(struct bytes *to) {
    struct bytes table = {0};
    put_short(&table, "tenant");
    put8(&table, 'S');
    put_long(&table, "acme", 4);
    put_short(&table, "order");
    put8(&table, 'I');
    put32(&table, 4711);
    put_short(&table, "region");
    put8(&table, 'S');
    put_long(&table, "eu-west-1", 9);
    put_long(to, table.at, table.len);
    free(table.at);
}

static void put_message(struct chunk *chunk, uint32_t method, unsigned channel, size_t body, unsigned key) {
    struct bytes *to = &chunk->bytes;
    size_t start = to->len, mark = method_begin(to, channel, method);
    char name[64];
    snprintf(name, sizeof name, KEY_PREFIX "%05u", key);
    if (method == BASIC_PUBLISH) {
        put16(to, 0);
        put_short(to, EXCHANGE);
        put_short(to, name);
        put8(to, 0); // neither mandatory nor immediate
    } else {
        put_short(to, consumer_tag);
        chunk->tag_at = to->len - start;
        put64(to, 0);
        put8(to, 0); // not redelivered
        put_short(to, EXCHANGE);
        put_short(to, name);
    }
    frame_end(to, mark);
    mark = frame_begin(to, FRAME_HEADER, channel);
    put16(to, 60);
    put16(to, 0);
    put64(to, body);
    put16(to, with_headers ? 0x3000 : 0x1000); // headers, delivery-mode
    if (with_headers)
        put_headers(to);
    put8(to, 1); // transient
    frame_end(to, mark);
    while (body) {
        size_t part = body < FRAME_MAX - 8 ? body : FRAME_MAX - 8;
        mark = frame_begin(to, FRAME_BODY, channel);
        for (size_t i = 0; i < part; i++)
            put8(to, (unsigned)(i * 167 + 13) & 0xFF); // all octets, 0xCE among them
        frame_end(to, mark);
        body -= part;
    }
    chunk->stride = to->len - start;
    chunk->count++;
}

struct chunk make_chunk(uint32_t method, unsigned channel, size_t body, unsigned keys) {
    struct chunk chunk = {0};
    do
        for (unsigned key = 0; key < keys; key++)
            put_message(&chunk, method, channel, body, key);
    while (chunk.bytes.len + keys * chunk.stride <= CHUNK);
    return chunk;
}

// -- walker ------------------------------------------------------------------------------------------------

static ssize_t broken(struct walker *walker, const char *why) {
    walker->error = why;
    return -1;
}

static inline void message_done(struct walker *walker) {
    walker->messages++;
    walker->expects = 0;
}

static inline uint64_t raw64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

// The seven octets of a frame's head, as they stand in memory.
static inline uint64_t head_at(const uint8_t *at) { return raw64(at) & __builtin_bswap64(~(uint64_t)0xFF); }

static inline uint32_t id_at(const uint8_t *frame) {
    uint32_t value;
    memcpy(&value, frame + 7, 4);
    return value;
}

// Takes the shape of the message whose method frame begins at `at`, if it is all there and its body is one frame.
// Nothing is checked: it is only used for messages that look the same, after this one was walked frame by frame.
static void learn(struct shape *shape, const uint8_t *at, size_t len) {
    size_t method_len = (size_t)get32(at + 3) + 8, body_at;
    if (len < method_len + 7 + 14)
        return;
    body_at = method_len + get32(at + method_len + 3) + 8;
    if (len < body_at + 8 || at[body_at] != FRAME_BODY || get32(at + body_at + 3) != get64(at + method_len + 11))
        return;
    shape->method_head = head_at(at);
    shape->header_head = head_at(at + method_len);
    shape->body_head = head_at(at + body_at);
    shape->id = id_at(at);
    shape->body = raw64(at + method_len + 11);
    shape->method_len = (uint32_t)method_len;
    shape->body_at = (uint32_t)body_at;
    shape->stride = (uint32_t)body_at + get32(at + body_at + 3) + 8;
}

// Whether the message at `at` has this shape: all heads and ends of its frames, its method and body size.
static inline bool looks_like(const struct shape *shape, const uint8_t *at) {
    uint64_t difference = head_at(at) ^ shape->method_head;
    difference |= id_at(at) ^ shape->id;
    difference |= at[shape->method_len - 1] ^ FRAME_END;
    difference |= head_at(at + shape->method_len) ^ shape->header_head;
    difference |= raw64(at + shape->method_len + 11) ^ shape->body;
    difference |= at[shape->body_at - 1] ^ FRAME_END;
    difference |= head_at(at + shape->body_at) ^ shape->body_head;
    difference |= at[shape->stride - 1] ^ FRAME_END;
    return !difference;
}

// Walks over messages of the known shape: octets taken.
static size_t stride_over(struct walker *walker, const uint8_t *at, size_t len) {
    struct shape shape = walker->shape;
    uint64_t messages = 0;
    size_t pos = 0;
    for (; shape.stride && len - pos >= shape.stride && looks_like(&shape, at + pos); pos += shape.stride)
        messages++;
    walker->messages += messages;
    walker->octets += messages * __builtin_bswap64(shape.body);
    return pos;
}

ssize_t walk(struct walker *walker, const uint8_t *buf, size_t len, on_method *method, void *context) {
    size_t pos = 0;
    while (pos < len) {
        if (walker->skip) {
            size_t part = len - pos < walker->skip ? len - pos : walker->skip;
            pos += part;
            walker->skip -= (uint32_t)part;
            if (walker->skip)
                break;
            if (buf[pos - 1] != FRAME_END)
                return broken(walker, "no frame-end after a body");
            if (!walker->body_left)
                message_done(walker);
            continue;
        }
        if (!walker->expects)
            pos += stride_over(walker, buf + pos, len - pos);
        if (len - pos < 7)
            break;
        const uint8_t *frame = buf + pos;
        unsigned type = frame[0], channel = get16(frame + 1);
        uint32_t size = get32(frame + 3);
        if (size > FRAME_MAX - 8)
            return broken(walker, "frame too large");
        // While a message is under way its channel has nothing else to say, and no other channel has content.
        bool within = walker->expects && type != FRAME_HEARTBEAT;
        if (within && (channel == walker->channel ? type != walker->expects : type != FRAME_METHOD))
            return broken(walker, "unexpected frame within a message");
        if (type == FRAME_BODY) {
            if (!walker->expects || size > walker->body_left)
                return broken(walker, "more body than announced");
            walker->body_left -= size;
            walker->octets += size;
            walker->skip = size + 1;
            pos += 7;
            continue;
        }
        if (len - pos < (size_t)size + 8)
            break;
        if (frame[7 + size] != FRAME_END)
            return broken(walker, "no frame-end");
        const uint8_t *payload = frame + 7;
        if (type == FRAME_METHOD) {
            if (size < 4)
                return broken(walker, "method frame too short");
            uint32_t id = get32(payload);
            if (id == BASIC_PUBLISH || id == BASIC_DELIVER) {
                if (walker->expects)
                    return broken(walker, "messages of two channels at once");
                learn(&walker->shape, frame, len - pos);
                walker->expects = FRAME_HEADER;
                walker->channel = (uint16_t)channel;
            } else if (!method(context, channel, id, payload + 4, size - 4)) {
                return broken(walker, walker->error ? walker->error : "refused");
            }
        } else if (type == FRAME_HEADER) {
            if (size < 14 || !walker->expects)
                return broken(walker, "unexpected header");
            walker->body_left = get64(payload + 4);
            walker->expects = FRAME_BODY;
            if (!walker->body_left)
                message_done(walker);
        } else if (type != FRAME_HEARTBEAT) {
            return broken(walker, "unknown frame type");
        }
        pos += size + 8;
    }
    return (ssize_t)pos;
}

// -- sockets -----------------------------------------------------------------------------------------------

static struct addrinfo *resolve(const char *host, const char *port, int flags) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags}, *found;
    int error = getaddrinfo(host, port, &hints, &found);
    if (error)
        die("%s:%s: %s", host, port, gai_strerror(error));
    return found;
}

void no_delay(int fd) { setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); }

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Resolved once: a tool has one peer.
static struct addrinfo *peer(const char *host, const char *port) {
    static struct addrinfo *to;
    if (!to)
        to = resolve(host, port, AI_NUMERICSERV);
    return to;
}

int connect_to(const char *host, const char *port) {
    struct addrinfo *to = peer(host, port);
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen))
        die("cannot connect to %s:%s: %s", host, port, strerror(errno));
    no_delay(fd);
    return fd;
}

int connect_begin(const char *host, const char *port, unsigned source) {
    struct addrinfo *to = peer(host, port);
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        die("socket: %s", strerror(errno));
    if (source && to->ai_family == AF_INET) {
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7F010000u + source)};
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){1}, sizeof(int));
        if (bind(fd, (struct sockaddr *)&from, sizeof from))
            die("cannot connect from 127.1.0.%u: %s", source, strerror(errno));
    }
    if (connect(fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    no_delay(fd);
    return fd;
}

int listen_on(const char *host, const char *port) {
    struct addrinfo *at = resolve(host, port, AI_NUMERICSERV | AI_PASSIVE);
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        die("socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 4096))
        die("cannot listen on %s:%s: %s", host, port, strerror(errno));
    freeaddrinfo(at);
    return fd;
}

void raise_file_limit(void) {
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
