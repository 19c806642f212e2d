// All clients come back at once.
#define _GNU_SOURCE
#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

// Clients are as many to each of so many hosts: a proxy may well limit what one address does.
enum { ADDRESSES = 100 };
// One that was refused or cut tries again after half to one and a half of this, doubled each time up to eight times.
static const uint64_t PAUSE = 100 * 1000000ull, PATIENCE = 100 * 1000000000ull;

static void watch_for(int epoll, struct conn *conn, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = conn};
    if (epoll_ctl(epoll, conn->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, conn->fd, &event))
        die("epoll_ctl");
    conn->events = events;
}

static void begin(int epoll, struct conn *conn, unsigned number) {
    link_begin(conn, 1 + number % ADDRESSES);
    conn->tries++;
    if (!conn->ended)
        watch_for(epoll, conn, EPOLLIN | EPOLLOUT);
}

// When it tries again. Spread without chance: two runs do the same.
static uint64_t postponed(struct conn *conn, unsigned number) {
    uint64_t pause = PAUSE << (conn->tries < 4 ? conn->tries - 1 : 3);
    unsigned tries = conn->tries;
    if (conn->fd >= 0)
        close(conn->fd);
    free(conn->kept.at);
    memset(conn, 0, sizeof *conn);
    conn->tries = tries;
    return now_ns() + pause / 2 + ((number + tries) * 0x9E3779B97F4A7C15ull >> 16) % pause;
}

uint64_t storm_open(struct conn *conns, unsigned count) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t *due = take((count + 1) * sizeof *due), again = 0, start = now_ns();
    unsigned open = 0, waiting = 0;
    for (unsigned i = 0; i < count; i++) {
        begin(epoll, &conns[i], i);
        if (conns[i].ended)
            due[i] = postponed(&conns[i], i), waiting++, again++;
    }
    while (open < count) {
        struct epoll_event events[256];
        int ready = epoll_wait(epoll, events, 256, waiting ? 10 : 1000);
        uint64_t now = now_ns();
        keep_alive(conns, count);
        if (now > start + PATIENCE)
            die("a storm of %u: %u are open after %llu tries", count, open, (unsigned long long)(count + again));
        for (int i = 0; i < ready; i++) {
            struct conn *conn = events[i].data.ptr;
            unsigned number = (unsigned)(conn - conns);
            bool opened = link_advance(conn);
            if (conn->ended) {
                due[number] = postponed(conn, number), waiting++, again++;
            } else if (opened) {
                epoll_ctl(epoll, EPOLL_CTL_DEL, conn->fd, NULL);
                conn->events = 0;
                histogram_add(now_ns() - start);
                open++;
            } else if (conn->greeted && conn->events & EPOLLOUT) {
                watch_for(epoll, conn, EPOLLIN);
            }
        }
        for (unsigned i = 0; waiting && i < count; i++)
            if (due[i] && due[i] <= now) {
                due[i] = 0;
                waiting--;
                begin(epoll, &conns[i], i);
                if (conns[i].ended)
                    due[i] = postponed(&conns[i], i), waiting++, again++;
            }
    }
    close(epoll);
    free(due);
    return again;
}
