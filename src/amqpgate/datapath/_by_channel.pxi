# What the control plane remembers of channels.

cdef class ByChannel:
    """Objects by channel number; see ``by_channel.ByChannel``. One channel is all that most sessions have: it has
    its place here, and those that come behind it a dict."""

    cdef object make
    cdef object first  # or None: not made yet
    cdef dict more  # or None: no channel has come behind the first
    cdef int number  # of the first, or -1: there is none

    def __init__(self, make):
        self.make = make
        self.number = -1

    def __class_getitem__(cls, item):
        return cls

    def add(self, int number):
        if number in self:
            return
        if self.number < 0 and not self.more:
            self.number = number
            self.more = None
        else:
            if self.more is None:
                self.more = {}
            self.more[number] = None

    def of(self, int number):
        self.add(number)
        return self[number]

    def __contains__(self, int number):
        return self.number == number >= 0 or (self.more is not None and number in self.more)

    def __len__(self):
        return (self.number >= 0) + (0 if self.more is None else len(self.more))

    def __iter__(self):
        return iter(([self.number] if self.number >= 0 else []) + list(self.more or ()))

    def get(self, int number):
        if self.number == number >= 0:
            if self.first is None:
                self.first = self.make()
            return self.first
        if self.more is None or number not in self.more:
            return None
        found = self.more[number]
        if found is None:
            found = self.more[number] = self.make()
        return found

    def remembered(self, int number):
        if self.number == number >= 0:
            return self.first
        return None if self.more is None else self.more.get(number)

    def __getitem__(self, int number):
        found = self.get(number)
        if found is None:
            raise KeyError(number)
        return found

    def __delitem__(self, int number):
        if self.number == number >= 0:
            self.number = -1
            self.first = None
        elif self.more is not None:
            del self.more[number]
        else:
            raise KeyError(number)

    def made(self):
        there = [(self.number, self.first)] if self.first is not None else []
        return there + [pair for pair in (self.more or {}).items() if pair[1] is not None]

    def items(self):
        return [(number, self.get(number)) for number in self]

    def values(self):
        return [self.get(number) for number in self]
