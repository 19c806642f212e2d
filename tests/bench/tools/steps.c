// The modes that do one thing after the other: idle, churn, denied.
#define _GNU_SOURCE
#include "load.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void publish_one(struct conn *conn, const struct chunk *one) { link_send(conn, one->bytes.at, one->stride); }

void keep_alive(struct conn *conns, unsigned count) {
    static uint64_t last;
    if (now_ns() < last + HEARTBEAT_EVERY * 1000000000ull)
        return;
    last = now_ns();
    for (unsigned i = 0; i < count; i++) {
        if (conns[i].fd <= 0 || conns[i].may_end)
            continue;
        while (link_receive(&conns[i]))
            continue;
        link_send(&conns[i], HEARTBEAT_FRAME, 8);
    }
}

// Connections with one open channel each. Standard input says what to do with them, line by line:
//   open N     open more, until there are N
//   storm N    the same, all at once
//   publish    one message on each, which has arrived when this is answered
//   close      close them
//   (end)      close them
void steps_idle(void) {
    struct chunk one = make_chunk(BASIC_PUBLISH, 1, options.size, 1);
    struct conn *conns = take(options.connections * sizeof *conns);
    unsigned count = 0;
    char line[64];
    say_ready();
    for (;;) {
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (poll(&input, 1, 1000) == 0) {
            keep_alive(conns, count);
            continue;
        }
        if (!next_line(line, sizeof line))
            break;
        uint64_t begin = now_ns(), again = 0;
        histogram_reset();
        if (!strncmp(line, "open ", 5)) {
            for (unsigned wanted = (unsigned)atoi(line + 5); count < wanted && count < options.connections;) {
                link_open(&conns[count++]);
                keep_alive(conns, count);
            }
        } else if (!strncmp(line, "storm ", 6)) {
            unsigned wanted = (unsigned)atoi(line + 6);
            wanted = wanted < options.connections ? wanted : options.connections;
            again = storm_open(conns + count, wanted - count);
            count = wanted;
        } else if (!strcmp(line, "close")) {
            while (count)
                link_close(&conns[--count]);
        } else if (!strcmp(line, "publish")) {
            for (unsigned i = 0; i < count; i++) {
                publish_one(&conns[i], &one);
                say_fence(&conns[i]);
                link_await(&conns[i], BASIC_QOS_OK);
            }
        } else {
            die("what is '%s'?", line);
        }
        printf("{\"mode\": \"idle\", \"connections\": %u, \"seconds\": %.6f, \"again\": %llu, \"latency\": ", count,
               (double)(now_ns() - begin) / 1e9, (unsigned long long)again);
        histogram_print();
        printf("}\n");
        fflush(stdout);
    }
    for (unsigned i = 0; i < count; i++)
        link_close(&conns[i]);
}

// Connect, log in, open a channel, publish one message, close; one after the other. Latency is of the whole.
void steps_churn(void) {
    struct chunk one = make_chunk(BASIC_PUBLISH, 1, options.size, 1);
    uint64_t done = 0, start = 0, cpu = 0, resumed = 0;
    const char *tls = "";
    for (int measured = 0; measured < 2; measured++) {
        if (measured)
            say_ready();
        histogram_reset();
        resumed = 0;
        cpu = own_cpu_ns();
        start = now_ns();
        uint64_t until = start + (uint64_t)((measured ? options.seconds : options.warmup) * 1e9), now = start;
        uint64_t most = measured && options.messages ? options.messages : UINT64_MAX;
        for (done = 0; done < most && now < until; done++) {
            struct conn conn = {0};
            uint64_t begin = now;
            link_open(&conn);
            publish_one(&conn, &one);
            resumed += link_resumed(&conn);
            tls = link_tls_name(&conn);
            link_close(&conn);
            now = now_ns();
            histogram_add(now - begin);
        }
    }
    printf("{\"mode\": \"churn\", \"messages\": %llu, \"seconds\": %.6f, \"cpu_ns\": %llu, \"tls\": \"%s\", "
           "\"resumed\": %llu, \"latency\": ",
           (unsigned long long)done, (double)(now_ns() - start) / 1e9, (unsigned long long)(own_cpu_ns() - cpu), tls,
           (unsigned long long)resumed);
    histogram_print();
    printf("}\n");
    fflush(stdout);
    char line[64];
    if (options.wait)
        next_line(line, sizeof line);
}

static void print_refusal(unsigned code, const char *text) {
    printf("{\"mode\": \"denied\", \"code\": %u, \"text\": \"%s\"}\n", code, text);
    exit(0);
}

// Declares the queue that is given, and prints how that was refused; {"code": 0} if it was not.
void steps_denied(void) {
    struct conn conn = {0};
    on_refusal = print_refusal;
    link_open(&conn);
    ask_topology(&conn, true);
    printf("{\"mode\": \"denied\", \"code\": 0, \"text\": \"\"}\n");
    link_close(&conn);
}
