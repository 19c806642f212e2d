# Meters, which flows count for.

cdef class Meter:
    """See ``meters.Meter``."""

    def __init__(self, row, list book not None):
        self.row = row
        self.book = book

    def count(self, uint64_t messages, uint64_t body_bytes, double now, uint64_t largest=0):
        measure(self, messages, body_bytes, largest, now)

    def read(self):
        told = self.messages, self.body_bytes, self.first, self.last, self.largest
        self.messages = self.body_bytes = self.largest = 0
        self.is_booked = False
        return told


cdef int enter(Meter meter, double now) except -1:
    """Put it into its book."""
    meter.book.append(meter)
    meter.is_booked = True
    meter.first = now
    return 0


cdef inline int measure(
    Meter meter, uint64_t messages, uint64_t body_bytes, uint64_t largest, double now
) except -1:
    """Count."""
    if not meter.is_booked:
        enter(meter, now)
    meter.last = now
    meter.messages += messages
    meter.body_bytes += body_bytes
    if largest > meter.largest:
        meter.largest = largest
    return 0
