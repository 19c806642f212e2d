# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled scanner. Its contract, name by name, is ``reference``; read that first.

No Python object is made per frame: channels and flows are C tables, a hit touches C fields only.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove, memset

import os

from amqpgate.datapath import tables
from amqpgate.datapath.header_rules import CALL, PATIENCE as _PATIENCE, STEPS as _STEPS
from amqpgate.datapath.properties import PROPERTIES, VALUES
from amqpgate.datapath.tables import Side, ScanResult

include "_bytes.pxi"
include "_numbers.pxi"
include "_meters.pxi"
include "_flows.pxi"
include "_unacked.pxi"
include "_channels.pxi"
include "_properties.pxi"
include "_header_rules.pxi"
include "_trace_context.pxi"
include "_lane.pxi"
include "_rewrites.pxi"
include "_captures.pxi"
include "_by_channel.pxi"
include "_whole.pxi"


cdef int scan_c(
    Lane lane,
    unsigned char* buf,
    Py_ssize_t pos,
    Py_ssize_t end,
    double now,
    Span* spans,
    int room,
    int* counted,
    Py_ssize_t* at,
    Py_ssize_t* stop_out,
    list captured,
    Made* made,
) except -100:
    """As ``scan``, with spans in C; ``V_FULL`` where ``room`` did not suffice: go on from ``at``."""
    cdef Py_ssize_t start = pos
    cdef Py_ssize_t stop = pos
    cdef Py_ssize_t largest = lane.frame_max
    cdef Py_ssize_t out_largest = <Py_ssize_t>lane.out_frame_max - 8
    cdef bint upward = lane.upward
    cdef Channels channels = lane.channels
    cdef FlowTable flows = lane._flows
    cdef PyObject* flow = NULL  # borrowed
    cdef Slot* slot = NULL
    cdef PendingContent* content
    cdef int result = V_MORE
    cdef int n = 0
    cdef int kind, action
    cdef uint16_t number
    cdef Py_ssize_t size
    cdef int64_t due
    cdef uint32_t index
    cdef uint64_t body
    cdef uint64_t frames = 0
    cdef unsigned char* p
    cdef unsigned char* q
    # Of a run of messages: its first method frame, and where in it the bytes begin that may differ.
    cdef unsigned char* method
    cdef Py_ssize_t method_size, gap
    cdef double message_room, byte_room
    cdef uint64_t messages, body_bytes, largest_body
    # Of them, those that the flows before the present one have counted; and of the publish that probably comes
    # next, if it has as much content as this one, where it is, its hash, and its entry, on its way from memory.
    cdef uint64_t told_messages, told_bytes
    cdef unsigned char* ahead
    cdef uint64_t hash, ahead_hash = 0
    cdef Entry* coming
    cdef Py_ssize_t header
    cdef PyObject* other
    cdef bint repeats, begun, renumbers, answers, acked = False
    cdef int peeks
    # What the loop takes for one frame of a message, and passes on as it is.
    cdef Py_ssize_t header_largest = min(largest, out_largest) if upward else largest
    cdef Py_ssize_t body_largest = <Py_ssize_t>min(<uint64_t>max(min(largest, out_largest), 0), lane.most_body)
    # More body than that is shown, or from the broker a violation; and where the last method of a run begins.
    cdef uint64_t most = lane.most_body
    cdef Py_ssize_t mark = 0
    cdef const unsigned char* key
    cdef const unsigned char* mid
    cdef const unsigned char* last
    cdef uint32_t length = 0, length_ahead
    cdef unsigned char joined[1024]
    cdef int spent = 0  # on rules
    cdef int carries  # of a trace context
    cdef Py_ssize_t whole
    cdef int looks = 0  # what for, of the present message
    cdef bint sampled = False  # it is a sample, and captured as such
    cdef bint decides = False  # whether it is traced is for its trace context to say
    cdef unsigned char[24] ids
    while True:
        if end - pos < 7:
            result = V_MORE
            stop = pos
            break
        p = buf + pos
        kind = p[0]
        number = be16(p + 1)
        size = be32(p + 3)
        if kind != 1 and kind != 2 and kind != 3 and kind != 8:
            result = V_BAD_TYPE
            stop = end
            break
        if size > largest:
            result = V_TOO_LARGE
            stop = end
            break
        stop = pos + size + 8
        if stop > end:
            result = V_MORE
            break
        if buf[stop - 1] != FRAME_END:
            result = V_BAD_END
            break
        if kind == 8:
            if number or size:
                result = V_BAD_HEARTBEAT
                break
            if start < pos:
                spans[n].start = start
                spans[n].stop = pos
                n += 1
            pos = start = stop
            if n + 1 >= room:
                result = V_FULL
                break
            continue
        if slot == NULL or slot.number != number:
            slot = channels.find(number)
        if slot == NULL or slot.state == 0:
            slot = NULL
            if kind == 1:
                result = V_METHOD if size >= 4 else V_MALFORMED
            elif number:
                result = V_NOT_OPEN
            else:
                result = V_HEADER_UNASKED if kind == 2 else V_BODY_UNASKED
            break
        if upward and slot.state == DISCARD:
            if kind == 1 and size >= 4:
                index = be32(p + 7)
                if index == CHANNEL_CLOSE or index == CHANNEL_CLOSE_OK:
                    result = V_METHOD
                    break
            if kind == 3:
                lane.dropped += size
            if start < pos:
                spans[n].start = start
                spans[n].stop = pos
                n += 1
            pos = start = stop
            if n + 1 >= room:
                result = V_FULL
                break
            continue
        content = &slot.up if upward else slot.down
        due = content.due
        if kind == 1:
            if due:
                result = V_HEADER_DUE if due == HEADER_NEXT else V_BODY_DUE
                if due == HELD_NEXT:
                    result = V_HELD
                break
            if size < 4:
                result = V_MALFORMED
                break
            action = action_of(upward, be32(p + 7))
            carries = CARRIES_NONE
            if action == UNKNOWN:
                result = V_METHOD
                break
            if content == &NOTHING_SENT and action != FORWARD:
                content = sent_of(slot)
            if action == CONTENT:
                content.kind = be32(p + 7)
            if slot.acks & UNACKED_COUNTED and not upward and (action == CONTENT or be32(p + 7) == GET_EMPTY):
                answer_get(slot, p, size)
            if lane.shows_content and (action == CONTENT or be32(p + 7) == GET_EMPTY):
                result = V_METHOD
                break
            if lane.shows_nacks and be32(p + 7) == NACK:
                result = V_METHOD
                break
            if slot.acks and action == FORWARD:
                answers = not upward and size == ANSWER_SIZE and be32(p + 7) != GET_EMPTY
                if answers and slot.acks & ACKS_TIMED:
                    time_answer(channels, slot, p, now)
                if answers and slot.acks & ACKS_COUNTED:
                    answered(slot.confirms, p)
                if slot.acks & (SETTLES_SHOWN if upward else ACKS_SHOWN):
                    result = V_METHOD
                    break
                if upward and slot.acks & UNACKED_COUNTED and size == ANSWER_SIZE:
                    settle(slot.unacked, be64(p + 11), be32(p + 7) != REJECT and p[19] & 1)
            if upward and size > out_largest:
                result = V_UNSPLITTABLE
                break
            looks = 0
            sampled = decides = False
            if action == PUBLISHES or action == DELIVERS:
                content.kind = 0
                last = buf + stop - 1
                if action == PUBLISHES:
                    key = p + 13
                    length = <uint32_t>(size - 6) if size > 6 else 0
                    if after_shortstr(after_shortstr(key, last), last) + 1 != last:
                        result = V_MALFORMED
                        break
                else:
                    key = p + 11
                    mid = after_shortstr(key, last)
                    if after_shortstr(after_shortstr(mid + 9, last), last) != last:
                        result = V_MALFORMED
                        break
                    if flows is not None:
                        # Channel, and around delivery tag and redelivered three short strings, at most 768 bytes.
                        memcpy(joined, p + 1, 2)
                        memcpy(joined + 2, key, mid - key)
                        memcpy(joined + 2 + (mid - key), mid + 9, last - mid - 9)
                        length = <uint32_t>(last - key - 7)
                        key = joined
                if flows is not None:
                    flow = flows.hit(hash_bytes(key, length), key, length)
                    if flow == NULL:
                        result = V_MISS
                        break
                    content.drop = (<Flow>flow).drop
                    if not content.drop:
                        message_room = least_tokens(<PyObject*>(<Flow>flow).message_buckets, now)
                        byte_room = least_tokens(<PyObject*>(<Flow>flow).byte_buckets, now)
                        if message_room <= 0 or byte_room <= 0:
                            lane.ready_at = flow_ready_at(<Flow>flow, now)
                            if lane.held_since == 0:
                                lane.held_since = now
                            result = V_THROTTLED
                            break
                        looks = (<Flow>flow)._peeks
                        sampled = looks & PEEKS_SAMPLES and is_sample_next(flow)
                        if not sampled:
                            looks &= PEEKS_ALL
                        if looks:
                            # Before the method passes, the header that follows it is looked at.
                            if end - stop < 7:
                                result = V_MORE
                                stop = pos
                                break
                            q = buf + stop
                            size = be32(q + 3)
                            if q[0] != 2 or be16(q + 1) != number or size > PEEKED_HEADER:
                                if sampled:
                                    (<Flow>flow).unsampled = 0
                                result = V_SHOWN
                                break
                            if size + 8 > end - stop:
                                result = V_MORE
                                stop += size + 8
                                break
                            if size >= 14:
                                if trips(<Flow>flow, q, size):
                                    result = V_SHOWN
                                    break
                                if (<Flow>flow).peek_contexts:
                                    carries = carried_by(q, size)
                                    decides = carries == CARRIES_SAMPLED or carries and (<Flow>flow).peek_contexts > 1
                                    if decides and not (<Flow>flow).looks.captures_contexts:
                                        result = V_SHOWN
                                        break
                                    if carries:
                                        # It is none.
                                        sampled = False
                                        looks &= PEEKS_ALL
                                    if decides:
                                        looks |= PEEKS_CAPTURES
                                if (<Flow>flow).looks.header_rules is not None:
                                    if spent >= PATIENCE:
                                        result = V_JUDGED
                                        stop = pos
                                        break
                                    if not passes_rules(<Flow>flow, q, size, True, &spent):
                                        result = V_SHOWN
                                        break
                            if looks & (PEEKS_CAPTURES | PEEKS_SAMPLES):
                                if is_full(captured):
                                    result = V_JUDGED
                                    stop = pos
                                    break
                                whole = whole_message(p, q, end - stop, number, header_largest, body_largest)
                                if whole == 0 or is_shut(flow):
                                    if sampled:
                                        (<Flow>flow).unsampled = 0
                                    result = V_SHOWN
                                    break
                                if whole < 0:
                                    result = V_MORE
                                    stop = pos if whole == -1 else stop - whole
                                    break
                            if looks & PEEKS_STAMPS and (<Flow>flow).sample_every != (<Flow>flow).looks.rewrite.stamps:
                                # Others choose among more, so not each of these is stamped.
                                (<Flow>flow).unsampled = 0
                                result = V_SHOWN
                                break
                            if looks & (PEEKS_REWRITES | PEEKS_STAMPS) and not can_rewrite(
                                (<Flow>flow).looks.rewrite, q, size, out_largest
                            ):
                                if sampled:
                                    (<Flow>flow).unsampled = 0
                                result = V_SHOWN
                                break
                if upward and not content.drop:
                    # Nor does it pass before it is known how large its message is to be.
                    q = buf + stop
                    if end - stop < 7:
                        result = V_MORE
                        stop = pos
                        break
                    if be16(q + 1) != number:
                        result = V_APART
                        break
                    if q[0] == 2 and 14 <= be32(q + 3) <= largest:
                        if end - stop < SIZE_END:
                            result = V_MORE
                            stop += SIZE_END
                            break
                        if be64(q + 11) > most:
                            result = V_APART
                            break
                if flows is not None and (<Flow>flow).sample_every and not content.drop and not carries:
                    (<Flow>flow).unsampled += 1
                    if (<Flow>flow).unsampled >= (<Flow>flow).sample_every:
                        (<Flow>flow).unsampled = 0
                        if not sampled:
                            result = V_SHOWN
                            break
                if looks & PEEKS_STAMPS:
                    new_ids(ids)
                if looks & (PEEKS_CAPTURES | PEEKS_SAMPLES):
                    capture(
                        flow,
                        buf + stop,
                        captured,
                        (<Flow>flow).sample_every if sampled else 0,
                        sampled or decides,
                        content.messages,
                        ids if looks & PEEKS_STAMPS else NULL,
                        now - lane.held_since if lane.held_since else 0,
                    )
                if looks & (PEEKS_REWRITES | PEEKS_STAMPS):
                    add_spans(made, buf, spans, n)
                    n = 0
                    if start < pos:
                        add_made(made, buf + start, pos - start)
                    make_frames(
                        (<Flow>flow).looks.rewrite,
                        buf + stop,
                        slot.to if upward else number,
                        ids if looks & PEEKS_STAMPS else NULL,
                        NULL if upward else p,
                        made,
                    )
                    # Behind the header, which is whole, and passes next.
                    start = stop + be32(buf + stop + 3) + 8
            if action != FORWARD:
                content.due = HEADER_NEXT
                content.show = 0
                acked = action == DELIVERS and counts_delivery(slot, p)
                if acked:
                    note_deliveries(slot, be64(p + 12 + p[11]), 1)
        elif kind == 2:
            if due != HEADER_NEXT:
                result = V_BODY_DUE if due else V_HEADER_UNASKED
                if due == HELD_NEXT:
                    result = V_HELD
                break
            if size < 14:
                result = V_MALFORMED
                break
            if be16(p + 7) != CLASS_BASIC:
                result = V_CLASS_DIFFERS
                break
            if upward and size > out_largest and not content.drop:
                result = V_UNSPLITTABLE
                break
            body = be64(p + 11)
            if body > most and not upward:
                result = V_MALFORMED
                break
            begin(lane, content, min(body, MOST_BODY))
            if slot.acks & ACKS_TIMED and upward and not content.drop:
                time_publish(channels, content.messages, now)
            if content.show >= 2 or body > most:
                result = V_HEADER
                break
            if not body:
                count(lane, content, now)
        else:
            if due <= 0:
                result = V_HEADER_DUE if due else V_BODY_UNASKED
                if due == HELD_NEXT:
                    result = V_HELD
                break
            if size > due:
                result = V_BODY_OVERRUN
                break
            content.due = due - size
            go_on(lane, content, size, now)
            if content.show >= 3:
                result = V_BODY
                break
            if size > out_largest and not content.drop:
                result = V_REFRAME
                break
        frames += 1
        if content.drop:
            if start < pos:
                spans[n].start = start
                spans[n].stop = pos
                n += 1
            start = stop
            if kind == 1:
                Py_INCREF(<Flow>flow)
                content.flow = flow
            content.drop = content.due != 0
            pos = stop
            if n + 1 >= room:
                result = V_FULL
                break
            continue
        renumbers = upward and slot.to != number
        if renumbers:
            renumber(p, slot.to)
        pos = stop
        if kind != 1 or content.due != HEADER_NEXT:
            continue
        # Most messages are there whole, in three frames or two, and the next one is mostly like it: the same
        # method frame, but for a delivery's tag. Such a run is dealt with here, and counted at its end.
        # Whatever is not just as expected is left to the loop above.
        method = p
        method_size = stop - (p - buf)
        gap = 12 + p[11] if action == DELIVERS else method_size
        if action == CONTENT or flows is None:
            flow = NULL
            message_room = byte_room = NO_BOUND
        repeats = action != CONTENT and (
            flow == NULL or not ((<Flow>flow).sample_every or (<Flow>flow)._peeks & PEEKS_REWRITES)
        )
        peeks = (<Flow>flow)._peeks if flow != NULL else 0
        messages = body_bytes = told_messages = told_bytes = largest_body = 0
        ahead, coming = NULL, NULL
        begun = True
        while True:
            if end - pos < WHOLE_HEADER:
                break
            header = pos
            p = buf + pos
            size = be32(p + 3)
            stop = pos + size + 8
            if (
                p[0] != 2
                or be16(p + 1) != number
                or size < 14
                or size > header_largest
                or stop > end
                or buf[stop - 1] != FRAME_END
                or be16(p + 7) != CLASS_BASIC
            ):
                break
            body = be64(p + 11)
            if body == 0:
                frames += 1
            elif body <= <uint64_t>body_largest and <int64_t>body <= end - stop - 8:
                q = buf + stop
                size = <Py_ssize_t>body
                if q[0] != 3 or be16(q + 1) != number or be32(q + 3) != size or q[size + 7] != FRAME_END:
                    break
                if renumbers:
                    renumber(q, slot.to)
                frames += 2
                stop += size + 8
            else:
                break
            if renumbers:
                renumber(p, slot.to)
            messages += 1
            body_bytes += body
            if body > largest_body:
                largest_body = body
            pos = stop
            begun = False
            p = buf + pos
            if not repeats or <double>messages >= message_room or <double>body_bytes >= byte_room:
                break
            if (
                end - pos >= method_size
                and p[0] == 1
                and be16(p + 1) == number
                and same_bytes(p + 3, method + 3, gap - 3)
                and (gap == method_size or same_bytes(p + gap + 9, method + gap + 9, method_size - gap - 9))
            ):
                q = p + method_size
                if peeks and not passes_next(
                    flow, p, q, buf + end - q, number, &spent, header_largest, body_largest, captured
                ):
                    break
            else:
                # Many publish to many keys in turn, which are mostly under the same limits.
                if flow == NULL or not upward:
                    break
                length = publish_key(p, end - pos)
                if not length or be16(p + 1) != number or <Py_ssize_t>length + 6 > body_largest:
                    break
                hash = ahead_hash if p == ahead else hash_bytes(p + 13, length)
                if coming != NULL:
                    # A place without a tag may have anything for a flow, which is nothing to a prefetch.
                    prefetch(coming.flow)
                    prefetch(<unsigned char*>coming.flow + 64)
                q = p + length + 14 + (pos - header)
                length_ahead = publish_key(q, buf + end - q)
                ahead, coming = NULL, NULL
                if length_ahead:
                    ahead = q
                    ahead_hash = hash_bytes(q + 13, length_ahead)
                    coming = flows.coming(ahead_hash)
                other = flows.hit(hash, p + 13, length)
                if not is_kin(flow, other):
                    break
                peeks = (<Flow>other)._peeks
                q = p + length + 14
                if peeks and not passes_next(
                    other, p, q, buf + end - q, number, &spent, header_largest, body_largest, captured
                ):
                    break
                tally(flow, messages - told_messages, body_bytes - told_bytes, largest_body, now)
                told_messages, told_bytes = messages, body_bytes
                largest_body = 0
                flow = other
                method = p
                method_size = gap = <Py_ssize_t>length + 14
            if renumbers:
                renumber(p, slot.to)
            frames += 1
            mark = pos
            pos += method_size
            begun = True
            if peeks & PEEKS_CAPTURES:
                capture(flow, buf + pos, captured, 0, False, content.messages + messages, NULL, 0)
        if begun and messages and upward:
            # Its header was not as expected, or is not there: the loop above looks at both.
            if renumbers:
                renumber(buf + mark, number)
            frames -= 1
            pos = mark
            begun = False
        if acked and messages + begun > 1:
            note_run(slot, method, method_size, gap, messages + begun - 1)
        if messages:
            if slot.acks & ACKS_TIMED and upward:
                time_publish(channels, content.messages + 1, now)
            lane.held_since = 0
            content.messages += messages
            lane.messages += messages
            lane.body_bytes += body_bytes
            if content.kind:
                tell_apart(channels, content.kind, messages, body_bytes)
            if flow != NULL:
                if messages > told_messages:
                    tally(flow, messages - told_messages, body_bytes - told_bytes, largest_body, now)
                charge(flow, messages, body_bytes)
        if not begun:
            content.due = 0
        elif flow != NULL:
            Py_INCREF(<Flow>flow)
            content.flow = flow
    if start < pos:
        spans[n].start = start
        spans[n].stop = pos
        n += 1
    if made.size:
        add_spans(made, buf, spans, n)
        n = 0
    if result == V_SHOWN and not upward and counts_delivery(slot, p):
        # Whatever the control plane makes of it.
        note_deliveries(slot, be64(p + 12 + p[11]), 1)
    lane.frames += frames
    counted[0] = n
    at[0] = pos
    stop_out[0] = stop
    return result


def scan(
    Lane lane not None,
    buf,
    Py_ssize_t pos,
    Py_ssize_t end,
    double now,
    list spans not None,
    list captured=None,
    bytearray made=None,
):
    """See ``reference.scan``; ``buf`` is writable."""
    cdef Py_buffer view
    cdef Span some[16]
    cdef int n = 0, result, i
    cdef Py_ssize_t at = pos, stop = pos
    cdef Made new
    if captured is None:
        captured = []
    if made is None:
        made = bytearray()
    memset(&new, 0, sizeof(Made))
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    try:
        if not 0 <= pos <= end <= view.len:
            raise IndexError("pos and end must lie in the buffer")
        while True:
            result = scan_c(
                lane, <unsigned char*>view.buf, at, end, now, some, 16, &n, &at, &stop, captured, &new
            )
            for i in range(n):
                if spans and spans[len(spans) - 1][1] == some[i].start:
                    spans[len(spans) - 1] = (spans[len(spans) - 1][0], some[i].stop)
                else:
                    spans.append((some[i].start, some[i].stop))
            if new.size or made:
                for first, last in spans:
                    made += PyBytes_FromStringAndSize(<const char*>view.buf + <Py_ssize_t>first, last - first)
                spans.clear()
                made += PyBytes_FromStringAndSize(<const char*>new.data, new.size)
                new.size = 0
            if result != V_FULL:
                return at, SCAN_RESULTS[result], stop
    finally:
        PyMem_RawFree(new.data)
        PyBuffer_Release(&view)
