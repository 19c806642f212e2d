// What the load tool and the sink share: time, bytes, AMQP 0-9-1 frames, sockets, and the frame walker.
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#define METHOD_ID(class_id, method_id) ((uint32_t)(class_id) << 16 | (method_id))

enum {
    CONNECTION_START = METHOD_ID(10, 10),
    CONNECTION_START_OK = METHOD_ID(10, 11),
    CONNECTION_TUNE = METHOD_ID(10, 30),
    CONNECTION_TUNE_OK = METHOD_ID(10, 31),
    CONNECTION_OPEN = METHOD_ID(10, 40),
    CONNECTION_OPEN_OK = METHOD_ID(10, 41),
    CONNECTION_CLOSE = METHOD_ID(10, 50),
    CONNECTION_CLOSE_OK = METHOD_ID(10, 51),
    CONNECTION_CLOSE_0_8 = METHOD_ID(10, 60),
    CONNECTION_CLOSE_OK_0_8 = METHOD_ID(10, 61),
    CHANNEL_OPEN = METHOD_ID(20, 10),
    CHANNEL_OPEN_OK = METHOD_ID(20, 11),
    CHANNEL_CLOSE = METHOD_ID(20, 40),
    CHANNEL_CLOSE_OK = METHOD_ID(20, 41),
    EXCHANGE_DECLARE = METHOD_ID(40, 10),
    EXCHANGE_DECLARE_OK = METHOD_ID(40, 11),
    QUEUE_DECLARE = METHOD_ID(50, 10),
    QUEUE_DECLARE_OK = METHOD_ID(50, 11),
    QUEUE_BIND = METHOD_ID(50, 20),
    QUEUE_BIND_OK = METHOD_ID(50, 21),
    BASIC_QOS = METHOD_ID(60, 10),
    BASIC_QOS_OK = METHOD_ID(60, 11),
    BASIC_CONSUME = METHOD_ID(60, 20),
    BASIC_CONSUME_OK = METHOD_ID(60, 21),
    BASIC_CANCEL = METHOD_ID(60, 30),
    BASIC_CANCEL_OK = METHOD_ID(60, 31),
    BASIC_PUBLISH = METHOD_ID(60, 40),
    BASIC_DELIVER = METHOD_ID(60, 60),
    BASIC_ACK = METHOD_ID(60, 80),
    BASIC_NACK = METHOD_ID(60, 120),
    CONFIRM_SELECT = METHOD_ID(85, 10),
    CONFIRM_SELECT_OK = METHOD_ID(85, 11),
};

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_HEARTBEAT = 8, FRAME_END = 0xCE };

enum {
    FRAME_MAX = 131072, // what RabbitMQ proposes
    CHANNEL_MAX = 2047,
    HEARTBEAT = 60,                // seconds
    HEARTBEAT_EVERY = HEARTBEAT / 3, // seconds between two that are sent
    SCRATCH = 256 << 10,           // octets per receive, for all connections together
    CHUNK = 256 << 10,             // octets of prebuilt messages per send, at least one message
};

#define PROTOCOL_HEADER "AMQP\0\0\x09\x01"
#define PROTOCOL_HEADER_0_8 "AMQP\x01\x01\x08\0"
#define HEARTBEAT_FRAME "\x08\0\0\0\0\0\0\xCE"
#define EXCHANGE "bench.exchange"
#define KEY_PREFIX "bench.key."

noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *take(size_t size); // zeroed memory, or die

// Monotonic time in nanoseconds.
uint64_t now_ns(void);
// CPU time of this process in nanoseconds.
uint64_t own_cpu_ns(void);

static inline uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static inline uint32_t get32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline uint64_t get64(const uint8_t *at) { return (uint64_t)get32(at) << 32 | get32(at + 4); }
static inline void set64(uint8_t *at, uint64_t value) {
    value = __builtin_bswap64(value);
    __builtin_memcpy(at, &value, 8);
}

// A growing string of octets.
struct bytes {
    uint8_t *at;
    size_t len, room;
};

void put_raw(struct bytes *to, const void *from, size_t len);
void put8(struct bytes *to, unsigned value);
void put16(struct bytes *to, unsigned value);
void put32(struct bytes *to, uint32_t value);
void put64(struct bytes *to, uint64_t value);
void put_short(struct bytes *to, const char *text); // shortstr
void put_long(struct bytes *to, const void *text, size_t len); // longstr

// A method frame: begin, put the arguments, end. `begin` gives what `end` needs.
size_t method_begin(struct bytes *to, unsigned channel, uint32_t id);
void frame_end(struct bytes *to, size_t mark);

// Messages of one length, one after the other, as they go over the wire.
struct chunk {
    struct bytes bytes;
    size_t stride; // octets of one message with all its frames
    size_t count;  // messages
    size_t tag_at; // where the delivery tag stands in each (deliveries only)
};

// `keys` different routing keys in turn; at least `keys` messages and about CHUNK octets.
extern const char *consumer_tag; // of the deliveries in chunks that are made
extern bool with_headers;        // whether messages in chunks that are made have some
struct chunk make_chunk(uint32_t method, unsigned channel, size_t body, unsigned keys);

// What a message looked like whose body was one frame: the next is likely to look the same.
struct shape {
    uint64_t method_head, header_head, body_head; // type, channel and size of its frames
    uint64_t body;                                // as its content header has it
    uint32_t method_len, body_at, stride;         // octets, frame heads and ends included; 0: not known yet
    uint32_t id;                                  // of the method
};

// Follows one direction of one connection, frame by frame, and counts its messages.
struct walker {
    struct shape shape;
    uint64_t messages, octets; // complete messages, octets of bodies
    uint64_t body_left;        // of the message under way
    uint32_t skip;             // octets left of the body frame under way, its end octet included
    uint16_t channel;          // of the message under way
    uint8_t expects;           // 0, or the type of the frame that must come next
    const char *error;
};

// Called for every method but publish and deliver. Returns false to stop the walk (walk returns -1).
typedef bool on_method(void *context, unsigned channel, uint32_t id, const uint8_t *arguments, size_t len);

// Walks the complete frames of `buf`, and body frames even if incomplete. Octets taken, or -1 (see `error`).
ssize_t walk(struct walker *walker, const uint8_t *buf, size_t len, on_method *method, void *context);

// TCP, without Nagle's delay.
int connect_to(const char *host, const char *port);
// Begins to connect, without waiting, from 127.1.0.`source` where that is not 0. -1 if it is refused at once.
int connect_begin(const char *host, const char *port, unsigned source);
int listen_on(const char *host, const char *port);
void set_nonblocking(int fd);
void no_delay(int fd);
// As many open files as the system lets us have.
void raise_file_limit(void);

#endif
