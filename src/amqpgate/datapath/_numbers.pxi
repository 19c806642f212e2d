# The numbers of ``tables`` and of the wire, held where C can see them.

cdef enum:
    PUBLISH = 0x003C0028
    ACK = 0x003C0050
    NACK = 0x003C0078
    REJECT = 0x003C005A
    DELIVER = 0x003C003C
    GET_OK = 0x003C0047
    GET_EMPTY = 0x003C0048
    RETURN = 0x003C0032
    CHANNEL_OPEN = 0x0014000A
    CHANNEL_CLOSE = 0x00140028
    CHANNEL_CLOSE_OK = 0x00140029
    CLASS_BASIC = 60
    FRAME_END = 206
    OPEN = 1
    DISCARD = 2
    ACKS_SHOWN = 1
    ACKS_COUNTED = 2
    ACKS_TIMED = 4
    SETTLES_SHOWN = 8
    UNACKED_COUNTED = 16
    UNACKED_LOST = 32
    DELIVERIES_ACKED = 64
    ANSWER_SIZE = 13  # of the payload of an ack, nack or reject
    CONFIRM_WINDOW = 1024
    FIRST_STRETCHES = 4
    KEPT_STRETCHES = 32  # room that stays when nothing is due
    MOST_STRETCHES = 512
    GETS = 64
    SILENT_TAGS = 256
    LONGEST_PUBLISH = 519  # of its payload: ids, ticket, two short strings, bits
    LEAST_GET_OK = 13  # of its payload: up to the bits behind the delivery tag
    HALF_MESSAGES = 16
    NESTED = 64
    HEADER_NEXT = -1
    HELD_NEXT = -2
    FIRST_FLOWS = 1
    MAX_FLOWS = 16384
    WINDOW = 8
    MAX_KEY_BYTES = 524288
    WHOLE_HEADER = 22
    SIZE_END = 19  # of a content header's frame: behind its body size
    PEEKED_HEADER = 4096
    CAPTURED_MESSAGES = 256
    CAPTURED_BYTES = 65536
    PEEKS_HEADER = 1  # of Flow._peeks
    PEEKS_CAPTURES = 2
    PEEKS_REWRITES = 4
    PEEKS_ALL = 7  # of each message; of samples alone:
    PEEKS_SAMPLES = 8
    PEEKS_STAMPS = 16
    PROPERTY_PLACES = 14
    HEADERS_PLACE = 2
    NO_PROPERTIES = 3  # flags
    CONTENT_TYPE = 32768
    CONTENT_ENCODING = 16384
    HEADERS = 8192
    DELIVERY_MODE = 4096
    MORE_FLAGS = 1

cdef enum:
    V_FULL = -1
    V_MORE = 0
    V_METHOD = 1
    V_MISS = 2
    V_SHOWN = 3
    V_HEADER = 4
    V_BODY = 5
    V_REFRAME = 6
    V_THROTTLED = 7
    V_LARGE = 8
    V_APART = 9
    V_OVERSIZE = 10
    V_JUDGED = 11
    V_HELD = 12
    V_BAD_TYPE = 13
    V_TOO_LARGE = 14
    V_BAD_END = 15
    V_NOT_OPEN = 16
    V_MALFORMED = 17
    V_HEADER_DUE = 18
    V_BODY_DUE = 19
    V_HEADER_UNASKED = 20
    V_BODY_UNASKED = 21
    V_CLASS_DIFFERS = 22
    V_BODY_OVERRUN = 23
    V_UNSPLITTABLE = 24
    V_BAD_HEARTBEAT = 25

cdef uint64_t MOST_BODY = (<uint64_t>1 << 62) - 1
cdef double NO_BOUND = float("inf")

cdef enum:
    FORWARD = 0
    CONTENT = 1
    PUBLISHES = 2
    DELIVERS = 3
    UNKNOWN = 4

cdef object SIDE_CLIENT = Side.CLIENT
cdef object SIDE_UPSTREAM = Side.UPSTREAM
cdef tuple SCAN_RESULTS = tuple(ScanResult(n) if n in ScanResult._value2member_map_ else None for n in range(26))


def numbers():
    """The constants that are written out above, for the test that compares them with ``tables``."""
    return {
        "UP": {PUBLISH: PUBLISHES, ACK: FORWARD, NACK: FORWARD, REJECT: FORWARD},
        "DOWN": {
            DELIVER: DELIVERS, GET_OK: CONTENT, RETURN: CONTENT,
            GET_EMPTY: FORWARD, ACK: FORWARD, NACK: FORWARD,
        },
        "CLOSES": {CHANNEL_CLOSE, CHANNEL_CLOSE_OK},
        "OPEN": OPEN, "DISCARD": DISCARD, "HEADER_NEXT": HEADER_NEXT, "HELD_NEXT": HELD_NEXT,
        "PEEKED_HEADER": PEEKED_HEADER,
        "CAPTURED_MESSAGES": CAPTURED_MESSAGES, "CAPTURED_BYTES": CAPTURED_BYTES,
        "HALF_MESSAGES": HALF_MESSAGES, "NESTED": NESTED, "CONFIRM_WINDOW": CONFIRM_WINDOW,
        "MOST_STRETCHES": MOST_STRETCHES, "GETS": GETS, "SILENT_TAGS": SILENT_TAGS,
        "CHANNEL_OPEN": CHANNEL_OPEN,
        "FLOWS": MAX_FLOWS, "FLOW_KEY_BYTES": MAX_KEY_BYTES,
        "MOST_BODY": MOST_BODY,
        "CLASS_BASIC": CLASS_BASIC, "FRAME_END": FRAME_END,
        "SCAN_RESULTS": {
            "MORE": V_MORE, "METHOD": V_METHOD, "MISS": V_MISS, "SHOWN": V_SHOWN, "HEADER": V_HEADER,
            "BODY": V_BODY, "REFRAME": V_REFRAME, "THROTTLED": V_THROTTLED, "LARGE": V_LARGE,
            "APART": V_APART, "OVERSIZE": V_OVERSIZE, "JUDGED": V_JUDGED, "HELD": V_HELD,
            "BAD_TYPE": V_BAD_TYPE,
            "TOO_LARGE": V_TOO_LARGE, "BAD_END": V_BAD_END, "NOT_OPEN": V_NOT_OPEN,
            "MALFORMED": V_MALFORMED, "HEADER_DUE": V_HEADER_DUE, "BODY_DUE": V_BODY_DUE,
            "HEADER_UNASKED": V_HEADER_UNASKED, "BODY_UNASKED": V_BODY_UNASKED,
            "CLASS_DIFFERS": V_CLASS_DIFFERS, "BODY_OVERRUN": V_BODY_OVERRUN,
            "UNSPLITTABLE": V_UNSPLITTABLE, "BAD_HEARTBEAT": V_BAD_HEARTBEAT,
        },
    }
