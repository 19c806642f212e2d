# Whether a message surely passes the rules about its content header; see ``header_rules``, and read that first.

cdef enum:
    A_NO = 0
    A_YES = 1
    A_UNSURE = 2
    A_TOO_MUCH = 3  # no answer: the header asks for more than STEPS
    T_NONE = 0
    T_ANY = 1
    T_LITERAL = 2
    T_PREFIX = 3
    T_CALL = 4
    TEXTS = 14  # places of property flags
    HEADERS_AT = 2
    MODE_AT = 3

cdef int STEPS = _STEPS
cdef int PATIENCE = _PATIENCE
cdef double EXACT = 9007199254740992.0

cdef extern from *:
    """
    #include <math.h>
    #include <stdio.h>

    /* whole >= bound * 10 ** places, and whole <= it; of at most 18 places. */
    static inline __int128 amqpgate_times(int64_t bound, int places) {
        __int128 value = bound;
        while (places-- > 0) value *= 10;
        return value;
    }
    static inline int decimal_at_least(uint32_t whole, int64_t bound, int places) {
        return (__int128)whole >= amqpgate_times(bound, places);
    }
    static inline int decimal_at_most(uint32_t whole, int64_t bound, int places) {
        return (__int128)whole <= amqpgate_times(bound, places);
    }
    static inline double be_double(const unsigned char *p) {
        uint64_t bits = be64(p); double value; memcpy(&value, &bits, 8); return value;
    }
    static inline double be_float(const unsigned char *p) {
        uint32_t bits = be32(p); float value; memcpy(&value, &bits, 4); return value;
    }
    /* Decimal digits of a number and its sign; how many characters. */
    static inline int digits_of(char *text, int is_negative, uint64_t magnitude) {
        return snprintf(text, 24, "%s%llu", is_negative ? "-" : "", (unsigned long long)magnitude);
    }
    """
    bint decimal_at_least(uint32_t whole, int64_t bound, int places) noexcept
    bint decimal_at_most(uint32_t whole, int64_t bound, int places) noexcept
    double be_double(const unsigned char* p) noexcept
    double be_float(const unsigned char* p) noexcept
    int digits_of(char* text, bint is_negative, uint64_t magnitude) noexcept
    double fabs(double value) noexcept
    double trunc(double value) noexcept


# A content header that is asked about: where its properties are, and what it may still cost.
cdef struct Asked:
    uint16_t flags
    uint64_t body
    int mode
    int steps
    const unsigned char* texts[TEXTS]
    uint8_t sizes[TEXTS]
    const unsigned char* table
    const unsigned char* table_end


@cython.final
cdef class TextCheck:
    """A ``TextTest``."""

    cdef int form
    cdef bytes text
    cdef const unsigned char* data
    cdef Py_ssize_t size
    cdef object call

    def __init__(self, test):
        self.form = test.form
        self.text = test.text
        self.data = <const unsigned char*>PyBytes_AS_STRING(self.text)
        self.size = PyBytes_GET_SIZE(self.text)
        self.call = test.call


@cython.final
cdef class NameCheck:
    """A ``NameTest``, or the name of a header."""

    cdef bint is_prefix
    cdef bytes text
    cdef const unsigned char* data
    cdef Py_ssize_t size

    def __init__(self, bytes text not None, bint is_prefix=False):
        self.text = text
        self.is_prefix = is_prefix
        self.data = <const unsigned char*>PyBytes_AS_STRING(text)
        self.size = PyBytes_GET_SIZE(text)


@cython.final
cdef class ValueCheck:
    """A ``ValueTest``."""

    cdef NameCheck name
    cdef TextCheck text  # or None
    cdef bint has_least, has_most
    cdef int64_t least, most

    def __init__(self, test):
        self.name = NameCheck(test.name)
        self.text = None if test.text is None else TextCheck(test.text)
        self.has_least = test.least is not None
        self.has_most = test.most is not None
        self.least = test.least or 0
        self.most = test.most or 0


@cython.final
cdef class ContentChecks:
    """``ContentTests``."""

    cdef bint denies
    cdef tuple properties  # of TextCheck
    cdef uint8_t[TEXTS] places
    cdef uint16_t required
    cdef int mode
    cdef int64_t most_body
    cdef tuple required_headers, denied_headers, allowed_headers  # of NameCheck; the last may be None
    cdef tuple values  # of ValueCheck
    cdef int width

    def __init__(self, tests):
        cdef int i
        self.denies = tests.denies
        if len(tests.properties) > TEXTS:
            raise ValueError("there are no more properties")
        self.properties = tuple([TextCheck(test) for _, test in tests.properties])
        for i, (place, _) in enumerate(tests.properties):
            if not 0 <= place < TEXTS:
                raise ValueError("there is no such property")
            self.places[i] = place
        self.required = tests.required
        self.mode = tests.delivery_mode
        self.most_body = tests.most_body
        self.required_headers = tuple([NameCheck(name) for name in tests.required_headers])
        self.denied_headers = tuple([NameCheck(test.text, test.is_prefix) for test in tests.denied_headers])
        self.allowed_headers = None
        if tests.allowed_headers is not None:
            self.allowed_headers = tuple([NameCheck(test.text, test.is_prefix) for test in tests.allowed_headers])
        self.values = tuple([ValueCheck(test) for test in tests.values])
        self.width = len(tests.required_headers) + len(tests.denied_headers) + len(tests.values)
        self.width += len(tests.allowed_headers or ())


cdef class HeaderRules:
    """See ``header_rules.HeaderRules``."""

    def __init__(self, tuple groups not None, int admitted, peek):
        if not groups or not 0 <= admitted < len(groups[0].allows):
            raise ValueError("no rule admits the messages")
        self.denies = []
        self.allows = []
        self.weight = 1
        for group in groups:
            if len(group.allows) > 64:
                raise ValueError("more than 64 rules that allow")
            for tests in (*group.denies, *group.allows):
                if tests is not None:
                    if len(tests.required_headers) + len(tests.values) > 64:
                        raise ValueError("more than 64 headers in a rule")
                    self.weight += CALL * tests.calls
            self.denies.append(tuple([ContentChecks(tests) for tests in group.denies]))
            self.allows.append(tuple([None if tests is None else ContentChecks(tests) for tests in group.allows]))
        self.admitted = admitted
        self.always = peek.always
        self.flags = peek.flags
        for name in peek.headers:
            if not isinstance(name, bytes) or not 0 < len(name) < 256:
                raise ValueError("headers have names of 1 to 255 bytes")
        self.names = tuple(peek.headers)
        self.body = peek.body

    def passes(self, bytes header not None):
        """See ``header_rules.HeaderRules.passes``."""
        # As a frame has it: its type, channel and size are not looked at.
        cdef bytes frame = b"\2\0\0\0\0\0\0" + header + b"\xce"
        if len(header) < 14:
            return -1
        if not asks(self, <const unsigned char*>PyBytes_AS_STRING(frame), len(header)):
            return self.admitted
        return passed_by(self, <const unsigned char*>PyBytes_AS_STRING(frame), len(header))


cdef inline bint asks(HeaderRules rules, const unsigned char* frame, Py_ssize_t size) noexcept:
    """Whether the rules must be asked about a message whose content header's frame has this payload."""
    return rules.always or has_any(frame, size, rules.flags, <PyObject*>rules.names, rules.body)


cdef int passed_by(HeaderRules rules, const unsigned char* frame, Py_ssize_t size) noexcept:
    """By which rule such a message passes; -1: that cannot be told."""
    cdef Asked asked
    cdef int i, one, passed = -1
    cdef uint16_t flags = be16(frame + 19)
    if not is_message(frame, size):
        return -1
    find_properties(&asked, frame, flags)
    for i in range(items_in_list(<PyObject*>rules.denies)):
        one = passed_group(&asked, list_item(<PyObject*>rules.denies, i), list_item(<PyObject*>rules.allows, i))
        if one < 0:
            return -1
        if i == 0:
            passed = one
    return passed


cdef inline bint is_message(const unsigned char* frame, Py_ssize_t size) noexcept:
    """Whether it is a content header whose properties can be found."""
    return be16(frame + 7) == CLASS_BASIC and not be16(frame + 9) and are_properties_c(frame + 19, frame + 7 + size)


cdef void find_properties(Asked* asked, const unsigned char* frame, uint16_t flags) noexcept:
    """Where they are; they have been checked."""
    cdef const unsigned char* p = frame + 21
    cdef uint16_t left = flags & 0xFFFC
    cdef int place, size
    asked.flags = flags
    asked.body = be64(frame + 11)
    asked.mode = 1
    asked.steps = STEPS
    asked.table = asked.table_end = p
    memset(asked.texts, 0, sizeof(asked.texts))
    while left:
        place = first_flag(left)
        left &= ~(0x8000 >> place)
        size = property_size[place]
        if place == HEADERS_AT:
            asked.table = p + 4
            p += 4 + be32(p)
            asked.table_end = p
        elif size == SHORT_STRING:
            asked.texts[place] = p + 1
            asked.sizes[place] = p[0]
            p += 1 + p[0]
        else:
            if place == MODE_AT:
                asked.mode = p[0]
            p += size


cdef int passed_group(Asked* asked, PyObject* denies, PyObject* allows) noexcept:
    cdef Py_ssize_t i
    cdef int answer
    cdef PyObject* tests
    for i in range(items_in(denies)):
        if rule_holds(asked, item(denies, i)) != A_NO:
            return -1
    for i in range(items_in(allows)):
        tests = item(allows, i)
        if tests == <PyObject*>None:
            return <int>i
        answer = rule_holds(asked, tests)
        if answer == A_YES:
            return <int>i
        if answer != A_NO:
            return -1
    return -1


cdef int rule_holds(Asked* asked, PyObject* rule) noexcept:
    cdef ContentChecks tests = <ContentChecks>rule
    cdef int answer = A_YES, found
    cdef Py_ssize_t i
    cdef uint8_t place
    for i in range(items_in(<PyObject*>tests.properties)):
        place = tests.places[i]
        if asked.texts[place] == NULL:
            if tests.denies:
                return A_NO
            continue
        found = text_holds(item(<PyObject*>tests.properties, i), asked.texts[place], asked.sizes[place])
        if found == A_NO:
            return A_NO
        if found == A_UNSURE:
            answer = A_UNSURE
    if tests.mode >= 0 and asked.mode != tests.mode:
        return A_NO
    if tests.required & ~asked.flags:
        return A_NO
    if tests.most_body >= 0 and asked.body > <uint64_t>tests.most_body:
        return A_NO
    if tests.width or tests.allowed_headers is not None:
        found = headers_hold(asked, tests)
        if found != A_YES:
            return found
    return answer


cdef inline bint is_named(NameCheck test, const unsigned char* name, Py_ssize_t size) noexcept:
    if size < test.size or (size > test.size and not test.is_prefix):
        return False
    return same_bytes(name, test.data, test.size)


cdef inline bint is_any_named(PyObject* tests, const unsigned char* name, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    for i in range(items_in(tests)):
        if is_named(<NameCheck>item(tests, i), name, size):
            return True
    return False


cdef inline const unsigned char* value_at(const unsigned char* letter, const unsigned char** end) noexcept:
    """Where the value with this letter begins, behind its length if it has one, and where it ends."""
    cdef int size = value_size[letter[0]]
    if size >= 0:
        end[0] = letter + 1 + size
        return letter + 1
    end[0] = letter + 5 + be32(letter + 1)
    return letter + 5


cdef int headers_hold(Asked* asked, ContentChecks tests) noexcept:
    cdef const unsigned char* p = asked.table
    cdef const unsigned char* name
    cdef const unsigned char* begin
    cdef const unsigned char* end
    cdef uint64_t there = 0, meant = 0, unsure = 0
    cdef int answer = A_YES, one
    cdef uint8_t length, letter
    cdef Py_ssize_t i
    cdef Py_ssize_t required = items_in(<PyObject*>tests.required_headers)
    cdef Py_ssize_t values = items_in(<PyObject*>tests.values)
    cdef PyObject* test
    while p < asked.table_end:
        asked.steps -= tests.width
        if asked.steps < 0:
            return A_TOO_MUCH
        length = p[0]
        name = p + 1
        letter = name[length]
        begin = value_at(name + length, &end)
        p = end
        if is_any_named(<PyObject*>tests.denied_headers, name, length):
            return A_NO
        if tests.allowed_headers is not None and not is_any_named(<PyObject*>tests.allowed_headers, name, length):
            return A_NO
        for i in range(required):
            if is_named(<NameCheck>item(<PyObject*>tests.required_headers, i), name, length):
                there |= <uint64_t>1 << i
        for i in range(values):
            test = item(<PyObject*>tests.values, i)
            if not is_named((<ValueCheck>test).name, name, length):
                continue
            if tests.denies:
                if meant >> i & 1:
                    continue
                one = within_holds(asked, test, letter, begin, end)
                if one == A_TOO_MUCH:
                    return one
                if one == A_YES:
                    meant |= <uint64_t>1 << i
                elif one == A_UNSURE:
                    unsure |= <uint64_t>1 << i
            else:
                one = value_holds(test, letter, begin, end)
                if one == A_NO:
                    return A_NO
                if one == A_UNSURE:
                    answer = A_UNSURE
    for i in range(required):
        if not there >> i & 1:
            return A_NO
    if tests.denies:
        for i in range(values):
            if meant >> i & 1:
                continue
            if not unsure >> i & 1:
                return A_NO
            answer = A_UNSURE
    return answer


cdef int within_holds(
    Asked* asked, PyObject* test, uint8_t letter, const unsigned char* p, const unsigned char* end
) noexcept:
    """Whether the value is meant, or any within it; the table has been checked."""
    cdef const unsigned char* stops[NESTED]
    cdef bint names[NESTED]
    cdef int opened = 0, answer = A_NO, one
    if letter != c"F" and letter != c"A":
        return value_holds(test, letter, p, end)
    stops[0] = end
    names[0] = letter == c"F"
    opened = 1
    while opened:
        if p == stops[opened - 1]:
            opened -= 1
            continue
        asked.steps -= 1
        if asked.steps < 0:
            return A_TOO_MUCH
        if names[opened - 1]:
            p += 1 + p[0]
        letter = p[0]
        p = value_at(p, &end)
        if letter == c"F" or letter == c"A":
            stops[opened] = end
            names[opened] = letter == c"F"
            opened += 1
            continue
        one = value_holds(test, letter, p, end)
        if one == A_YES:
            return A_YES
        if one == A_UNSURE:
            answer = A_UNSURE
        p = end
    return answer


cdef int value_holds(
    PyObject* of, uint8_t letter, const unsigned char* p, const unsigned char* end
) noexcept:
    """Whether a value is meant. An array, a table and void never are."""
    cdef ValueCheck test = <ValueCheck>of
    cdef PyObject* text = NULL if test.text is None else <PyObject*>test.text
    cdef double number
    cdef bint is_negative = False
    cdef int64_t integer
    cdef uint64_t magnitude
    if letter == c"S" or letter == c"x":
        return number_in_text(test, p, end - p) if text == NULL else text_holds(text, p, end - p)
    if letter == c"t":
        if text == NULL:
            return A_NO
        return text_holds(text, <const unsigned char*>(b"true" if p[0] else b"false"), 4 if p[0] else 5)
    if letter == c"f" or letter == c"d":
        number = be_float(p) if letter == c"f" else be_double(p)
        if not fabs(number) < EXACT:
            return A_UNSURE
        if text == NULL:
            return not (
                (test.has_least and number < <double>test.least) or (test.has_most and number > <double>test.most)
            )
        if trunc(number) != number:
            return A_UNSURE
        is_negative = number < 0
        return digits_hold(text, is_negative, <uint64_t>fabs(number))
    if letter == c"D":
        if p[0] > 18:
            return A_UNSURE
        if text == NULL:
            return (not test.has_least or decimal_at_least(be32(p + 1), test.least, p[0])) and (
                not test.has_most or decimal_at_most(be32(p + 1), test.most, p[0])
            )
        return A_UNSURE if p[0] else digits_hold(text, False, be32(p + 1))
    if letter == c"b":
        integer = <int8_t>p[0]
    elif letter == c"s":
        integer = <int16_t>be16(p)
    elif letter == c"I":
        integer = <int32_t>be32(p)
    elif letter == c"l" or letter == c"L":
        integer = <int64_t>be64(p)
    elif letter == c"B":
        integer = p[0]
    elif letter == c"u":
        integer = be16(p)
    elif letter == c"i":
        integer = be32(p)
    elif letter == c"T":
        magnitude = be64(p)
        if magnitude > <uint64_t>0x7FFFFFFFFFFFFFFF:
            # Beyond every bound.
            return not test.has_most if text == NULL else digits_hold(text, False, magnitude)
        integer = <int64_t>magnitude
    else:
        return A_NO
    if text == NULL:
        return integer_holds(test, integer)
    magnitude = <uint64_t>integer
    return digits_hold(text, integer < 0, 0 - magnitude if integer < 0 else magnitude)


cdef inline int integer_holds(ValueCheck test, int64_t integer) noexcept:
    return not ((test.has_least and integer < test.least) or (test.has_most and integer > test.most))


cdef int digits_hold(PyObject* test, bint is_negative, uint64_t magnitude) noexcept:
    """Whether a whole number's text is meant."""
    cdef char digits[24]
    cdef int size = digits_of(digits, is_negative, magnitude)
    return text_holds(test, <const unsigned char*>digits, size)


cdef int number_in_text(ValueCheck test, const unsigned char* p, Py_ssize_t size) noexcept:
    """Of the number that a text says."""
    cdef bint is_negative = size > 0 and p[0] == c"-"
    cdef int64_t integer = 0
    cdef Py_ssize_t i
    cdef uint8_t first = p[0] if size > 0 else 0
    if is_negative:
        p += 1
        size -= 1
    if 0 < size <= 18:
        for i in range(size):
            if not c"0" <= p[i] <= c"9":
                break
            integer = 10 * integer + (p[i] - c"0")
        else:
            return integer_holds(test, -integer if is_negative else integer)
    # What starts with another letter than infinity is none.
    first |= 32
    return A_NO if c"a" <= first <= c"z" and first != c"i" else A_UNSURE


cdef int text_holds(PyObject* of, const unsigned char* p, Py_ssize_t size) noexcept:
    cdef TextCheck test = <TextCheck>of
    if test.form == T_LITERAL:
        return size == test.size and same_bytes(p, test.data, size)
    if test.form == T_PREFIX:
        return size >= test.size and same_bytes(p, test.data, test.size)
    if test.form == T_CALL:
        return called_with(test.call, p, size)
    return test.form == T_ANY


cdef int called_with(object call, const unsigned char* p, Py_ssize_t size) noexcept:
    try:
        return A_YES if call(PyUnicode_DecodeUTF8(<const char*>p, size, "surrogateescape")) else A_NO
    except Exception:
        # The control plane finds out, and says it where it is heard.
        return A_UNSURE
