// Latencies in 128 buckets per power of two: within 0.8 % of the truth.
#include "load.h"

#include <stdio.h>
#include <string.h>

enum { LINEAR = 256, PER_OCTAVE = 128, BUCKETS = LINEAR + 56 * PER_OCTAVE };

static uint64_t buckets[BUCKETS], total, longest;

void histogram_reset(void) {
    memset(buckets, 0, sizeof buckets);
    total = longest = 0;
}

void histogram_add(uint64_t ns) {
    size_t index = ns;
    if (ns >= LINEAR) {
        unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
        index = LINEAR + (octave - 8) * PER_OCTAVE + (ns >> (octave - 7) & (PER_OCTAVE - 1));
    }
    buckets[index]++;
    total++;
    if (ns > longest)
        longest = ns;
}

// The middle of a bucket, in nanoseconds.
static double value_of(size_t index) {
    if (index < LINEAR)
        return (double)index;
    size_t octave = (index - LINEAR) / PER_OCTAVE, part = (index - LINEAR) % PER_OCTAVE;
    return ((double)(PER_OCTAVE + part) + 0.5) * (double)(1ull << (octave + 1));
}

static double quantile(double share) {
    uint64_t seen = 0;
    for (size_t index = 0; index < BUCKETS; index++) {
        seen += buckets[index];
        if ((double)seen >= share * (double)total)
            return value_of(index) / 1e3;
    }
    return (double)longest / 1e3;
}

void histogram_print(void) {
    if (!total) {
        printf("null");
        return;
    }
    printf("{\"count\": %llu, \"p50\": %.2f, \"p90\": %.2f, \"p99\": %.2f, \"p999\": %.2f, \"max\": %.2f}",
           (unsigned long long)total, quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999),
           (double)longest / 1e3);
}
